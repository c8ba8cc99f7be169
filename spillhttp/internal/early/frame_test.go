package early

import (
	"bufio"
	"bytes"
	"io"
	"maps"
	"math/rand/v2"
	"net/http"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/seed90641741/spillway/spillhttp/internal/early/earlytest"
)

// names are the fields that the tests ask for.
var names = Names{
	"X-Request-Criticality", "X-Request-Level", "X-Request-Progress", "Baggage", "Traceparent", "X-Envoy-Expected-Rq-Timeout-Ms",
	"X-Envoy-Attempt-Count", "Amz-Sdk-Request", "Grpc-Timeout", "Grpc-Previous-Rpc-Attempts",
}

var known = newTable(&names)

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
		f, ok := frame(known, []byte(row.text))
		if ok != row.ok || ok && (f.head != len(row.text) || f.body != row.body) {
			t.Errorf("%q: %+v, %v; want %v, body %d", row.text, f, ok, row.ok, row.body)
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
	for i, text := range earlytest.Corpus() {
		if i%60 == 0 { // the rest is tested without fuzzing
			f.Add([]byte(text))
		}
	}
	f.Fuzz(func(t *testing.T, b []byte) { agrees(t, b) })
}

// TestFrameAgreesWithNetHTTP is the same for all of the corpus.
func TestFrameAgreesWithNetHTTP(t *testing.T) {
	accepted := 0
	for _, text := range earlytest.Corpus() {
		if agrees(t, []byte(text)) {
			accepted++
		}
	}
	if accepted < 100 {
		t.Errorf("only %d were accepted: the test shows little", accepted)
	}
}

// agrees fails if net/http reads what frame accepts otherwise. It reports whether it does.
func agrees(t *testing.T, b []byte) bool {
	t.Helper()
	found, ok := frame(known, b)
	if !ok {
		return false
	}
	tail := bufio.NewReader(bytes.NewReader(b))
	want, err := http.ReadRequest(tail)
	x := newHead(known)
	x.framing, x.text = found, b
	got, ok := x.Request("")
	if !ok {
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
	agreesAtAGlance(t, x, b, want)
	return true
}

// agreesAtAGlance fails if x has a path or fields that net/http does not.
func agreesAtAGlance(t *testing.T, x *Head, b []byte, want *http.Request) {
	t.Helper()
	path, plain := x.Path()
	if plain != !strings.Contains(want.RequestURI[:len(path)], "%") || plain && string(path) != want.URL.Path {
		t.Fatalf("%q: path %q, by net/http %q", b, path, want.URL.Path)
	}
	repeats := false
	for i, key := range names {
		var values []string
		if value, ok := x.Field(i); ok {
			values = []string{string(value)}
		}
		if n := len(want.Header[key]); n > 1 {
			repeats, values = true, append(slices.Clone(want.Header[key][:n-1]), values...)
		}
		if !slices.Equal(values, want.Header[key]) {
			t.Fatalf("%q: %s: %q, by net/http %q", b, key, values, want.Header[key])
		}
	}
	if x.Repeats() != repeats || string(x.Method()) != want.Method {
		t.Fatalf("%q: repeats %v, want %v; method %q, want %q", b, x.Repeats(), repeats, x.Method(), want.Method)
	}
}

// TestFrameAgreesOnShapes is [TestFrameAgreesWithNetHTTP] for these requests and for random
// mutations of them.
func TestFrameAgreesOnShapes(t *testing.T) {
	all := append(earlytest.BodyShapes(), earlytest.HeadShapes()...)
	for seed := range uint64(3) {
		random := rand.New(rand.NewPCG(seed, 17))
		accepted := 0
		for range 6_000 {
			if agrees(t, []byte(earlytest.Mutate(random, all[random.IntN(len(all))], all))) {
				accepted++
			}
		}
		if accepted < 100 {
			t.Errorf("seed %d: only %d were accepted: the test shows little", seed, accepted)
		}
	}
	for _, text := range all {
		agrees(t, []byte(text))
	}
}

func BenchmarkFrame(b *testing.B) {
	const line, class = "GET /search?q=go HTTP/1.1\r\nHost: example.com:8080\r\n", "X-Request-Criticality: SHEDDABLE\r\n"
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
				if _, ok := frame(known, head); !ok {
					b.Fatal("rejected")
				}
			}
		})
	}
}
