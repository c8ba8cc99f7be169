package early

import (
	"reflect"
	"strings"
	"testing"
)

// A head that is used again, for requests with the same fields and with others, reads each as a
// new one does.
func TestHeadIsUsedAgain(t *testing.T) {
	x, again := newHead(known), 0
	for _, fields := range []string{
		"Host: x\r\n\r\n", "Host: y\r\n\r\n", "Host: x\r\nHost: x\r\n\r\n", "Host: x\r\n", "\r\n", "",
		"Host: x\r\nX-Request-Criticality: SHEDDABLE\r\n\r\n", "Host: x\r\nX-Request-Criticality: CRITICAL\r\nX: y\r\n\r\n",
		"Host: x\r\nGrpc-Timeout: 5S\r\nGrpc-Previous-Rpc-Attempts: 1\r\n\r\n", "Host: x\r\nX-Envoy-Attempt-Count: 3\r\n\r\n",
		"Host: x\r\nBaggage: criticality=SHEDDABLE\r\nBaggage: a=b\r\n\r\n", "Host: x\r\nContent-Length: 2\r\n\r\nab", "Host: x\r\n\r\nab",
		"Host: x\r\nCookie: " + strings.Repeat("c", remembered) + "\r\n\r\n",
	} {
		for _, line := range []string{"GET / HTTP/1.1\r\n", "POST /a HTTP/1.1\r\n", "GET /%20 HTTP/1.1\r\n", "GET\r\n", "GET /%zz HTTP/1.1\r\n", "GET /%zz HTTP/1.1\r\n", "DELETE /long/path?q HTTP/1.1\r\n", "DELETE /long/path? HTTP/1.1\r\n", "POST /a HTTP/1.1\r\n"} {
			if readsAgain(t, x, []byte(line+fields)) {
				again++
			}
		}
	}
	if again < 30 {
		t.Errorf("only %d requests had the fields of the one before", again)
	}
}

// readsAgain fails if x reads b otherwise than a new Head. It reports whether it knew the fields.
func readsAgain(t *testing.T, x *Head, b []byte) (again bool) {
	t.Helper()
	fresh := newHead(known)
	before, version, framing, post := string(x.before), x.Version(), x.framing, x.post
	ok := x.parse(b)
	if want := fresh.parse(b); ok != want {
		t.Fatalf("%q: %v, want %v", b, ok, want)
	}
	if !ok {
		return false
	}
	if x.framing != fresh.framing || x.post != fresh.post {
		t.Fatalf("%q: %+v, %v; want %+v, %v", b, x.framing, x.post, fresh.framing, fresh.post)
	}
	if x.Version() == version && (x.spans != framing.spans || x.repeats != framing.repeats || x.post != post || before != string(x.text[x.line:x.head])) {
		t.Fatalf("%q: fields have changed, and the version has not", b)
	}
	got, read := x.Request("")
	if want, ok := fresh.Request(""); read != ok || read && !reflect.DeepEqual(got, want) {
		t.Fatalf("%q: %v, %+v, want %+v", b, read, got, want)
	}
	return string(b[x.line:x.head]) == before
}
