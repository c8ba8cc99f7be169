package spillhttp

import (
	"bufio"
	"bytes"
	"io"
	"maps"
	"net/http"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/seed90641741/spillway"
	"github.com/seed90641741/spillway/ingress"
)

const plainRequest = "GET /search?q=go HTTP/1.1\r\nHost: example.com\r\n\r\n"

func TestFrame(t *testing.T) {
	const line, host = "GET / HTTP/1.1\r\n", "Host: x\r\n"
	for _, row := range []struct {
		text string
		ok   bool
		body int64
	}{
		{plainRequest, true, 0},
		{line + host + "\r\n", true, 0},
		{line + host + "X-A:\tb \r\nx-a: c\r\nConnection: Keep-Alive\r\n\r\n", true, 0},
		{"POST /a HTTP/1.1\r\n" + host + "Content-Length: 12\r\n\r\n", true, 12},
		{"POST /a HTTP/1.1\r\n" + host + "content-length:0\r\n\r\n", true, 0},
		{"", false, 0},
		{line, false, 0},
		{line + host, false, 0},
		{line + "\r\n", false, 0},
		{line + host + host + "\r\n", false, 0},
		{line + "Host:\r\n\r\n", false, 0},
		{line + "Host: a b\r\n\r\n", false, 0},
		{line + "Host: x\n\n", false, 0},
		{line + host + "X: a\r\n b\r\n\r\n", false, 0},
		{line + host + "X : a\r\n\r\n", false, 0},
		{line + host + "X: \x00\r\n\r\n", false, 0},
		{line + host + "X: a\rb\r\n\r\n", false, 0},
		{line + host + "no colon\r\n\r\n", false, 0},
		{line + host + ": v\r\n\r\n", false, 0},
		{line + host + "Connection: close\r\n\r\n", false, 0},
		{line + host + "Connection: keep-alive, X-Drop\r\n\r\n", false, 0},
		{line + host + "Connection: Upgrade\r\nUpgrade: websocket\r\n\r\n", false, 0},
		{line + host + "Transfer-Encoding: chunked\r\n\r\n", false, 0},
		{line + host + "transfer-encoding: identity\r\n\r\n", false, 0},
		{line + host + "Expect: 100-continue\r\n\r\n", false, 0},
		{line + host + "Trailer: X\r\n\r\n", false, 0},
		{line + host + "Content-Length: 1\r\nContent-Length: 1\r\n\r\n", false, 0},
		{line + host + "Content-Length: +1\r\n\r\n", false, 0},
		{line + host + "Content-Length:\r\n\r\n", false, 0},
		{line + host + "Content-Length: 9999999999999999999\r\n\r\n", false, 0},
		{"GET / HTTP/1.0\r\n" + host + "\r\n", false, 0},
		{"GET  / HTTP/1.1\r\n" + host + "\r\n", false, 0},
		{"GET / / HTTP/1.1\r\n" + host + "\r\n", false, 0},
		{"GET http://x/ HTTP/1.1\r\n" + host + "\r\n", false, 0},
		{"OPTIONS * HTTP/1.1\r\n" + host + "\r\n", false, 0},
		{"CONNECT /rpc HTTP/1.1\r\n" + host + "\r\n", false, 0},
		{"get / HTTP/1.1\r\n" + host + "\r\n", false, 0},
		{" / HTTP/1.1\r\n" + host + "\r\n", false, 0},
		{"\r\n" + plainRequest, false, 0},
		{"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", false, 0},
		{"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03", false, 0},
	} {
		f, ok := frame([]byte(row.text))
		if ok != row.ok || ok && (f.head != len(row.text) || f.body != row.body) {
			t.Errorf("%q: %+v, %v; want %v, body %d", row.text, f, ok, row.ok, row.body)
		}
	}
}

func TestRefusalBytes(t *testing.T) {
	x := heads.Get().(*head)
	const told = "X-Overload-Reason: overload\r\nContent-Type: text/plain; charset=utf-8\r\nContent-Length: 19\r\n"
	for want, why := range map[string]ingress.Rejection{
		"HTTP/1.1 503 Service Unavailable\r\nX-Envoy-Overloaded: true\r\n" + told + "X-Overload-Scope: task\r\nRetry-After: 2\r\nRetry-After-Ms: 1250\r\n\r\nrejected: overload\n": {
			Outcome: spillway.OutcomeOverloaded, RetryAfter: 1250 * time.Millisecond,
		},
		"HTTP/1.1 503 Service Unavailable\r\nX-Envoy-Overloaded: true\r\n" + told + "X-Overload-Scope: service\r\nX-Should-Retry: false\r\n\r\nrejected: overload\n": {
			Outcome: spillway.OutcomeOverloaded, RetryAfter: time.Second, DontRetry: true,
		},
		"HTTP/1.1 429 Too Many Requests\r\nX-Overload-Scope: customer\r\nX-Envoy-Ratelimited: true\r\n" +
			"X-Overload-Reason: quota\r\nContent-Type: text/plain; charset=utf-8\r\nContent-Length: 16\r\n" +
			"Ratelimit: \"quota\";r=0;t=2\r\nRetry-After: 2\r\nRetry-After-Ms: 1250\r\nX-Request-Accept-Ratio: 0.50\r\n\r\nrejected: quota\n": {
			Outcome: spillway.OutcomeOverQuota, RetryAfter: 1250 * time.Millisecond, AcceptRatio: "0.50",
		},
	} {
		text := wordingOf(ingress.ReasonsCoarse, &why)
		if got := string(x.refusal(&why, text, []byte("GET"))); got != want {
			t.Errorf("%q, want %q", got, want)
		}
		head, _, _ := strings.Cut(want, "rejected:")
		if got := string(x.refusal(&why, text, []byte("HEAD"))); got != head {
			t.Errorf("HEAD: %q, want %q", got, head)
		}
	}
}

// FuzzFrame: what frame accepts net/http reads as the same one request, with
// nothing after it, on a connection that is kept.
func FuzzFrame(f *testing.F) {
	for _, s := range []string{
		plainRequest,
		"DELETE /%2e%zz HTTP/1.1\r\nHost: x\r\n\r\n",
		"GET //x/..?#a HTTP/1.1\r\nHost: [::1]:80\r\nX-Request-Criticality: SHEDDABLE\r\nbaggage: criticality=CRITICAL\r\n\r\n",
		"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 3\r\n\r\nabc",
		"GET / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\nConnection: close\r\n\r\n",
	} {
		f.Add([]byte(s))
	}
	for i, text := range corpus() {
		if i%60 == 0 { // the rest is tested without fuzzing
			f.Add([]byte(text))
		}
	}
	f.Fuzz(func(t *testing.T, b []byte) { agrees(t, b) })
}

// TestFrameAgreesWithNetHTTP is the same for all of the corpus.
func TestFrameAgreesWithNetHTTP(t *testing.T) {
	accepted := 0
	for _, text := range corpus() {
		if agrees(t, []byte(text)) {
			accepted++
		}
	}
	if accepted < 100 {
		t.Errorf("only %d were accepted: the test shows little", accepted)
	}
}

// corpus combines what requests are made of that servers have read in different ways:
// request lines, fields that say where the body ends, and how lines end.
func corpus() (all []string) {
	lines := []string{
		"GET / HTTP/1.1", "POST /a?b=c HTTP/1.1", "GET  / HTTP/1.1", "GET /\t HTTP/1.1", "GET / HTTP/1.1 ", "GET / http/1.1", "GET / HTTP/1.10", "GET / HTTP/2.0",
		"GET /%00 HTTP/1.1", "GET /a\x80 HTTP/1.1", "GET http://b/ HTTP/1.1", "GET //b/c HTTP/1.1", "G\x00T / HTTP/1.1", "OPTIONS * HTTP/1.1", "GET /../a HTTP/1.1", "GET /a#b HTTP/1.1",
	}
	fields := []string{
		"", "Content-Length: 0", "Content-Length: 5", "Content-Length: 05", "Content-Length: +5", "Content-Length: -1", "Content-Length: 5,5", "Content-Length: 5\r\nContent-Length: 5",
		"Content-Length: 5\r\ncontent-length: 6", "Content-Length : 5", "Content-Length\t: 5", " Content-Length: 5", "Content-Length: 5 ", "Content-Length:\x0b5", "Content-Length: 0x5", "Content-Length: 5_0",
		"Transfer-Encoding: chunked", "Transfer-Encoding : chunked", "Transfer-Encoding: identity", "Transfer-Encoding: chunked, gzip", "Transfer-Encoding:\tchunked", "transfer-encoding: CHUNKED",
		"Transfer-Encoding: chunked\r\nContent-Length: 5", "X: y\r\n z: w", "X: y\rZ: w", "X: y\nZ: w", "X\x00: y", "X: \x00", "X: \x7f", ": y", "X", "X: \xff", "Host: b", "Host : b", "Connection: close",
		"Connection: keep-alive", "Connection: content-length", "Expect: 100-continue", "Upgrade: h2c", "Trailer: Content-Length", "Pragma: no-cache", "X_Y: z", "X-Request-Criticality: SHEDDABLE",
		"X-REQUEST-CRITICALITY:\tsheddable ", "x-request-criticality: CRITICAL\r\nX-Request-Criticality: SHEDDABLE", "X-Request-Criticality:",
		"baggage: a=b\r\nX-Envoy-Expected-Rq-Timeout-Ms: 250", "Grpc-Timeout: 5S\r\ngrpc-previous-rpc-attempts: 1", "Amz-Sdk-Request: attempt=2\r\nx-envoy-attempt-count: 3",
	}
	for _, line := range lines {
		for _, field := range fields {
			for _, end := range []string{"\r\n", "\n", "\r"} {
				text := line + end + "Host: a" + end
				if field != "" {
					text += field + end
				}
				all = append(all, text+end, text+end+"12345", text+end+"0\r\n\r\nGET /inner HTTP/1.1\r\nHost: a\r\n\r\n")
			}
		}
	}
	return all
}

// agrees fails if net/http reads what frame accepts otherwise. It reports whether it does.
func agrees(t *testing.T, b []byte) bool {
	t.Helper()
	x, y := new(head), new(head)
	x.request.Header = make(http.Header)
	found, ok := frame(b)
	if !ok {
		return false
	}
	tail := bufio.NewReader(bytes.NewReader(b))
	want, err := http.ReadRequest(tail)
	x.framing = found
	if !x.read(b, "") {
		if err == nil {
			t.Fatalf("%q: only net/http can read it", b)
		}
		return false
	}
	if err != nil {
		t.Fatalf("%q: net/http says %v", b, err)
	}
	if rest, err := io.ReadAll(tail); err != nil || !bytes.Equal(rest, b[found.head:]) || want.ContentLength != found.body {
		t.Fatalf("%q: %q remain after the head (%v) and a body of %d", b, rest, err, want.ContentLength)
	}
	got := &x.request
	if want.Close || want.ProtoMinor != 1 || want.TransferEncoding != nil || want.Trailer != nil || want.Header["Upgrade"] != nil {
		t.Fatalf("%q is unusual: %+v", b, want)
	}
	if len(want.Header["Pragma"]) > 0 { // for which net/http adds another
		delete(want.Header, "Cache-Control")
		delete(got.Header, "Cache-Control")
	}
	if got.ContentLength != want.ContentLength || got.Method != want.Method || !reflect.DeepEqual(got.URL, want.URL) || got.Host != want.Host ||
		!maps.EqualFunc(got.Header, want.Header, func(a, b []string) bool { return strings.Join(a, "\n") == strings.Join(b, "\n") }) {
		t.Fatalf("%q: read as %+v, by net/http as %+v", b, got, want)
	}
	agreesAtAGlance(t, y, b, &found, want)
	return true
}

// agreesAtAGlance fails if a glance reads a path or claims that net/http does not.
func agreesAtAGlance(t *testing.T, x *head, b []byte, found *framing, want *http.Request) {
	t.Helper()
	x.framing, x.post = *found, want.Method == http.MethodPost
	path, ok := x.glance(b)
	if !ok {
		if !found.repeats && !strings.Contains(want.RequestURI, "%") {
			t.Fatalf("%q: a glance was not enough", b)
		}
		return
	}
	x.claimed(b)
	if string(path) != want.URL.Path {
		t.Fatalf("%q: at a glance %q, by net/http %q", b, path, want.URL.Path)
	}
	for i, key := range claimHeaders {
		values := want.Header[key]
		if i >= claimGRPCTimeout && !x.post {
			values = nil
		}
		if !slices.Equal(x.said[i], values) {
			t.Fatalf("%q: at a glance %s: %q, by net/http %q", b, key, x.said[i], values)
		}
	}
}

// A head that is used again, for requests with the same fields and with others, reads each as a
// new one does.
func TestHeadIsUsedAgain(t *testing.T) {
	x, again := newHead(), 0
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

// readsAgain fails if x reads b otherwise than a new head. It reports whether it knew the fields.
func readsAgain(t *testing.T, x *head, b []byte) (again bool) {
	t.Helper()
	fresh := newHead()
	before := string(x.before)
	ok := x.frame(b)
	if want := fresh.frame(b); ok != want {
		t.Fatalf("%q: %v, want %v", b, ok, want)
	}
	if !ok {
		return false
	}
	path, seen := x.glance(b)
	wantPath, wantSeen := fresh.glance(b)
	if x.framing != fresh.framing || seen != wantSeen || !bytes.Equal(path, wantPath) {
		t.Fatalf("%q: %+v, %q, %v; want %+v, %q, %v", b, x.framing, path, seen, fresh.framing, wantPath, wantSeen)
	}
	if !x.repeats && (*x.claimed(b) != *fresh.claimed(b) || !reflect.DeepEqual(x.said, fresh.said)) {
		t.Fatalf("%q says %+v, want %+v", b, x.claims, fresh.claims)
	}
	if read := x.read(b, ""); read != fresh.read(b, "") || read && !reflect.DeepEqual(x.request, fresh.request) {
		t.Fatalf("%q: %v, %+v, want %+v", b, read, x.request, fresh.request)
	}
	return string(b[x.line:x.head]) == before
}

func BenchmarkFrame(b *testing.B) {
	const line, class = "GET /search?q=go HTTP/1.1\r\nHost: example.com:8080\r\n", headerCriticality + ": SHEDDABLE\r\n"
	for name, text := range map[string]string{
		"service": line + "User-Agent: Go-http-client/1.1\r\nAccept: application/json\r\n" + class + "Accept-Encoding: gzip\r\n\r\n",
		"browser": line + "User-Agent: Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/130.0.0.0 Safari/537.36\r\n" +
			"Accept: text/html,application/xhtml+xml,application/xml;q=0.9,image/avif,image/webp,*/*;q=0.8\r\n" +
			"Accept-Encoding: gzip, deflate, br, zstd\r\nAccept-Language: en-GB,en;q=0.9,de;q=0.8\r\n" +
			"Cookie: session=" + strings.Repeat("0123456789abcdef", 8) + "\r\n\r\n",
	} {
		b.Run(name, func(b *testing.B) {
			head := []byte(text)
			b.ReportAllocs()
			for b.Loop() {
				if _, ok := frame(head); !ok {
					b.Fatal("refused")
				}
			}
		})
	}
}
