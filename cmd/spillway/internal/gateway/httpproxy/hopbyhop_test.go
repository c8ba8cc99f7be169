package httpproxy

import (
	"bufio"
	"encoding/pem"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/seed90641741/spillway/cmd/spillway/internal/gateway/config"
)

// hopFields are the fields of a message whose Connection lists X-Hop and Checksum, as a trailer, and an option.
func hopFields(option string) string {
	return "Connection: " + option + ", X-Hop\r\nConnection: checksum\r\nX-Hop: 1\r\nX-End: 1\r\nKeep-Alive: timeout=5\r\nTransfer-Encoding: chunked\r\n" +
		"Trailer: Checksum, X-Sum\r\n\r\n1\r\na\r\n0\r\nChecksum: 1\r\nX-Sum: 2\r\nUpgrade: h2c\r\n\r\n"
}

// passed are the names of the fields and trailers with an X or C, sorted.
func passed(header, trailer http.Header) string {
	var names []string
	for _, h := range []http.Header{header, trailer} {
		for name := range maps.Keys(h) {
			if slices.Contains([]string{"Connection", "Keep-Alive", "X-Hop", "X-End", "Checksum", "X-Sum", "Upgrade"}, name) && h[name] != nil {
				names = append(names, name)
			}
		}
	}
	slices.Sort(names)
	return strings.Join(names, " ")
}

// TestHopByHopFieldsOfAnswers: what the Connection of an answer lists stays on the connection to the endpoint, with every option,
// in headers and trailers: net/http removes Connection itself where it has close.
func TestHopByHopFieldsOfAnswers(t *testing.T) {
	quiet(t)
	for _, option := range []string{"close", "keep-alive", "X-Other"} {
		for _, second := range []bool{false, true} {
			p := start(t, config.ForUpstream("127.0.0.1:0", saying(t, "HTTP/1.1 103 Early Hints\r\nA: b\r\n\r\nHTTP/1.1 200 OK\r\n"+hopFields(option))))
			resp, body := do(t, client(t, second), http.MethodGet, "http://"+p.Addr("").String(), "")
			if got := passed(resp.Header, resp.Trailer); got != "X-End X-Sum" || body != "a" {
				t.Errorf("%s, HTTP/2: %v: the client gets %q and %q", option, second, got, body)
			}
		}
	}
}

// TestHopByHopFieldsOfRequests: the same for a request.
func TestHopByHopFieldsOfRequests(t *testing.T) {
	quiet(t)
	got := make(chan string, 1)
	url, _ := front(t, http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		got <- passed(r.Header, r.Trailer)
	}), nil)
	exchange(t, strings.TrimPrefix(url, "http://"), "POST / HTTP/1.1\r\nHost: a\r\n"+hopFields("close"))
	if names := <-got; names != "X-End X-Sum" {
		t.Errorf("the upstream gets %q, want X-End and X-Sum", names)
	}
}

// TestHopByHopFieldsOverTLS: the proxy reads the heads of answers above TLS.
func TestHopByHopFieldsOverTLS(t *testing.T) {
	quiet(t)
	s := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Connection", "close, X-Hop")
		w.Header().Set("X-Hop", "1")
	}))
	t.Cleanup(s.Close)
	ca := filepath.Join(t.TempDir(), "ca.pem")
	if err := os.WriteFile(ca, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: s.Certificate().Raw}), 0o600); err != nil {
		t.Fatal(err)
	}
	c := config.ForUpstream("127.0.0.1:0", s.Listener.Addr().String())
	c.Clusters[0].TLS = &config.ClientTLS{CA: ca, ServerName: "example.com"}
	resp, _ := do(t, client(t, false), http.MethodGet, "http://"+start(t, c).Addr("").String(), "")
	if resp.StatusCode != http.StatusOK || resp.Header["X-Hop"] != nil {
		t.Errorf("%s, %v, want 200 without X-Hop", resp.Status, resp.Header)
	}
}

// TestHopByHopFieldsOfUpgrades: an answer that switches protocols keeps only the fields that say so.
func TestHopByHopFieldsOfUpgrades(t *testing.T) {
	quiet(t)
	p := start(t, config.ForUpstream("127.0.0.1:0", saying(t, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade, X-Hop\r\nUpgrade: websocket\r\n"+
		"X-Hop: 1\r\nX-End: 1\r\nKeep-Alive: timeout=5\r\nEndpoint-Load-Metrics: cpu_utilization=0.5\r\n\r\n")))
	answer := exchange(t, p.Addr("").String(), "GET / HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n")
	resp, err := http.ReadResponse(bufio.NewReader(strings.NewReader(answer)), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if got := passed(resp.Header, nil); got != "Connection Upgrade X-End" || resp.Header.Get("Connection") != "Upgrade" || resp.Header["Endpoint-Load-Metrics"] != nil {
		t.Errorf("the client gets %v", resp.Header)
	}
}
