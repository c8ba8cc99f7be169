package httpproxy

import (
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/seed90641741/spillway/cmd/spillway/internal/gateway/config"
)

// TestOddRequestsAreNoFailuresOfTheUpstream: what net/http takes from a client and does not send, or what an upstream takes for a
// violation of its protocol, would have clients take endpoints out of use.
func TestOddRequestsAreNoFailuresOfTheUpstream(t *testing.T) {
	quiet(t)
	for _, protocol := range []string{"auto", "http1", "http2"} {
		_, p := front(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			_, _ = io.Copy(io.Discard, r.Body)
			w.Header().Set("Proto", r.Proto)
		}), func(c *config.Config) { c.Clusters[0].Protocol = protocol })
		for _, text := range []string{
			"GET / HTTP/1.1\r\nHost: a\r\nConnection: Upgrade, close\r\nUpgrade: websocket\r\n\r\n",
			"POST / HTTP/1.1\r\nHost: a\r\nConnection: Upgrade, close\r\nUpgrade: websocket\r\nContent-Type: application/grpc\r\nContent-Length: 0\r\n\r\n",
			"GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\nTE: trailers, deflate\r\n\r\n",
			"GET /\x80 HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n",
			"GET /?\x80\xff HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n",
			"GET /?a=\"<> HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n",
			"OPTIONS * HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n",
			"GET http://b/x HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n",
			"GET http://b HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n",
			"GET http://b?x HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n",
			"GET / HTTP/1.1\r\nHost: a:99999\r\nConnection: close\r\n\r\n",
			"GET / HTTP/1.1\r\nHost: [::1\r\nConnection: close\r\n\r\n",
			"GET / HTTP/1.1\r\nHost: a_b%20\r\nConnection: close\r\n\r\n",
			"GET / HTTP/1.1\r\nHost: \x80\xff\r\nConnection: close\r\n\r\n",
			"GET / HTTP/1.1\r\nHost:\r\nConnection: close\r\n\r\n",
			"GET / HTTP/1.0\r\n\r\n",
			"HEAD / HTTP/1.1\r\nHost: a\r\nConnection: close\r\nContent-Length: 3\r\n\r\nabc",
			"GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\nContent-Length: 3\r\n\r\nabc",
			"GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\nTransfer-Encoding: chunked\r\n\r\n3;ext=\"\x80\r\nabc\r\n0\r\n\r\n",
			"TRACE / HTTP/1.1\r\nHost: a\r\nConnection: close\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
			"PRI / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n",
			"GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\nA: \x80\xff\r\nUser-Agent: \t\r\n\r\n",
			"GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\nCookie: " + strings.Repeat("a=b; ", 3000) + "\r\n\r\n",
			"GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n" + strings.Repeat("A: b\r\n", 5000) + "\r\n",
			"GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\nProxy-Connection: x\r\nKeep-Alive: 3\r\nHttp2-Settings: x\r\n\r\n",
			"GET / HTTP/1.1\r\nHost: a\r\nConnection: keep-alive, close, te\r\nTe: trailers\r\n:path: /x\r\n\r\n",
			"GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\nGrpc-Timeout: 99999999999H\r\nX-Envoy-Expected-Rq-Timeout-Ms: 20000\r\n\r\n",
			"GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n" +
				"Content-Type: application/grpc\r\nTransfer-Encoding: chunked\r\nTrailer: A\r\n\r\n3\r\nabc\r\n0\r\nA: \xff\r\n\r\n",
			"GET /" + strings.Repeat("a", 30000) + " HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n",
		} {
			before := p.Stats(time.Now()).Clusters["upstream"].Endpoints[0].Errors
			answer := exchange(t, p.Addr("").String(), text)
			after := p.Stats(time.Now()).Clusters["upstream"].Endpoints[0].Errors
			line, _, _ := strings.Cut(answer, "\r\n")
			if after != before || strings.Contains(line, " 50") {
				t.Errorf("%s: %d failures: %.80q: %s", protocol, after-before, text, line)
			}
		}
	}
}

// TestBeginningsOfRequests: one empty line before the first request is ignored (RFC 9112, section 2.2), and a request has to name a
// host, as the endpoint would else get its own address as the host.
func TestBeginningsOfRequests(t *testing.T) {
	quiet(t)
	url, p := front(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { w.Header().Set("X-Host", r.Host) }), nil)
	for text, want := range map[string]string{
		"\r\nGET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n":     "HTTP/1.1 200 ",
		"\r\n\r\nGET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n": "HTTP/1.1 400 ",
		"\nGET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n":       "HTTP/1.1 400 ",
		"GET / HTTP/1.1\r\nHost:\r\nConnection: close\r\n\r\n":           "HTTP/1.1 400 ",
		"GET / HTTP/1.1\r\nHost: \t\r\nConnection: close\r\n\r\n":        "HTTP/1.1 400 ",
		"GET http://a/ HTTP/1.1\r\nHost:\r\nConnection: close\r\n\r\n":   "HTTP/1.1 200 ",
		"GET / HTTP/1.0\r\n\r\n":                                         "HTTP/1.0 200 ",
	} {
		if answer := exchange(t, p.Addr("").String(), text); !strings.HasPrefix(answer, want) {
			t.Errorf("%q: %.60q, want %q", text, answer, want)
		}
	}
	c := dial(t, p) // the line comes alone
	for _, text := range []string{"\r\n", "GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n"} {
		_, _ = io.WriteString(c, text)
		<-time.After(20 * time.Millisecond)
	}
	if answer, _ := io.ReadAll(c); !strings.HasPrefix(string(answer), "HTTP/1.1 200 ") {
		t.Errorf("an empty line, and then a request: %.60q, want 200", answer)
	}
	if resp, _ := do(t, client(t, false), http.MethodPost, url, "\r\nabc"); resp.StatusCode != http.StatusOK {
		t.Errorf("a body that begins with an empty line: %s", resp.Status)
	}
}
