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
	for want, why := range map[string]ingress.Refusal{
		"HTTP/1.1 503 Service Unavailable\r\nContent-Length: 0\r\nX-Envoy-Overloaded: true\r\nX-Overload-Scope: task\r\nRetry-After: 2\r\nRetry-After-Ms: 1250\r\n\r\n": {
			Outcome: spillway.OutcomeOverloaded, RetryAfter: 1250 * time.Millisecond,
		},
		"HTTP/1.1 503 Service Unavailable\r\nContent-Length: 0\r\nX-Envoy-Overloaded: true\r\nX-Overload-Scope: service\r\nX-Should-Retry: false\r\n\r\n": {
			Outcome: spillway.OutcomeOverloaded, RetryAfter: time.Second, DontRetry: true,
		},
		"HTTP/1.1 429 Too Many Requests\r\nContent-Length: 0\r\nX-Overload-Scope: customer\r\nX-Envoy-Ratelimited: true\r\n" +
			"Ratelimit: \"quota\";r=0;t=2\r\nRetry-After: 2\r\nRetry-After-Ms: 1250\r\nX-Request-Accept-Ratio: 0.50\r\n\r\n": {
			Outcome: spillway.OutcomeOverQuota, RetryAfter: 1250 * time.Millisecond, AcceptRatio: "0.50",
		},
	} {
		if got := string(x.refusal(&why)); got != want {
			t.Errorf("%q, want %q", got, want)
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
	if !x.read(b, &found, "") {
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
	if got.Method != want.Method || !reflect.DeepEqual(got.URL, want.URL) || got.Host != want.Host ||
		!maps.EqualFunc(got.Header, want.Header, func(a, b []string) bool { return strings.Join(a, "\n") == strings.Join(b, "\n") }) {
		t.Fatalf("%q: read as %+v, by net/http as %+v", b, got, want)
	}
	agreesAtAGlance(t, y, b, &found, want)
	return true
}

// agreesAtAGlance fails if a glance reads a path or claims that net/http does not.
func agreesAtAGlance(t *testing.T, x *head, b []byte, found *framing, want *http.Request) {
	t.Helper()
	path, ok := x.glance(b, found)
	if !ok {
		if !found.repeats && !strings.Contains(want.RequestURI, "%") {
			t.Fatalf("%q: a glance was not enough", b)
		}
		return
	}
	if string(path) != want.URL.Path {
		t.Fatalf("%q: at a glance %q, by net/http %q", b, path, want.URL.Path)
	}
	for i, key := range claimHeaders {
		values := want.Header[key]
		if i >= claimGRPCTimeout && want.Method != http.MethodPost {
			values = nil
		}
		if !slices.Equal(x.said[i], values) {
			t.Fatalf("%q: at a glance %s: %q, by net/http %q", b, key, x.said[i], values)
		}
	}
}

func BenchmarkFrame(b *testing.B) {
	text := []byte("GET /search?q=go HTTP/1.1\r\nHost: example.com:8080\r\nUser-Agent: Go-http-client/1.1\r\n" +
		"Accept: application/json\r\nX-Request-Criticality: SHEDDABLE\r\nAccept-Encoding: gzip\r\n\r\n")
	b.ReportAllocs()
	for b.Loop() {
		if _, ok := frame(text); !ok {
			b.Fatal("refused")
		}
	}
}
