package httpproxy

import (
	"cmp"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/seed90641741/spillway/cmd/spillway/internal/gateway/config"
)

// TestAnswersThatBreakOff: nothing of a small answer was sent when it breaks off, so the client gets another one. Of any other
// answer it gets the head and what has come, and then an error.
func TestAnswersThatBreakOff(t *testing.T) {
	quiet(t)
	for _, row := range []struct{ head, body, got string }{
		{"200 OK\r\nContent-Length: 100", "abc", ""},
		{"200 OK\r\nContent-Length: 100", "", ""},
		{"200 OK\r\nContent-Length: 2048", strings.Repeat("a", 2047), ""},
		{"200 OK\r\nContent-Length: 2049", "abc", "abc"},
		{"200 OK\r\nContent-Length: 1000000", strings.Repeat("a", 10000), strings.Repeat("a", 10000)},
		{"200 OK\r\nTransfer-Encoding: chunked", "3\r\nabc\r\n", "abc"},
		{"200 OK\r\nTransfer-Encoding: chunked", "5\r\nabc", "abc"},
		{"200 OK\r\nContent-Type: text/event-stream\r\nContent-Length: 100", "abc", "abc"},
	} {
		for _, second := range []bool{false, true} {
			p := start(t, config.ForUpstream("127.0.0.1:0", saying(t, "HTTP/1.1 "+row.head+"\r\n\r\n"+row.body)))
			resp, err := client(t, second).Post("http://"+p.Addr("").String(), "text/plain", http.NoBody)
			if err != nil {
				t.Errorf("HTTP/2: %v: %q: %v", second, row.head, err)
				continue
			}
			got, err := io.ReadAll(resp.Body)
			_ = resp.Body.Close()
			if row.got == "" {
				if resp.StatusCode != http.StatusBadGateway || err != nil {
					t.Errorf("HTTP/2: %v: %q: %s, %v, want 502", second, row.head, resp.Status, err)
				}
			} else if resp.StatusCode != http.StatusOK || string(got) != row.got || err == nil {
				t.Errorf("HTTP/2: %v: %q: %s with %d bytes, %v, want 200 with %d and an error", second, row.head, resp.Status, len(got), err, len(row.got))
			}
		}
	}
}

// TestSmallAnswersStayWhole: what is read ahead passes, with its trailers.
func TestSmallAnswersStayWhole(t *testing.T) {
	quiet(t)
	url, _ := front(t, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Length", "3")
		w.Header().Set("Trailer", "Checksum")
		fmt.Fprint(w, "abc")
		w.Header().Set("Checksum", "17")
	}), func(c *config.Config) { c.Clusters[0].Protocol = "http2" })
	if resp, got := do(t, client(t, true), http.MethodGet, url, ""); got != "abc" || resp.Trailer.Get("Checksum") != "17" {
		t.Errorf("%q with %v", got, resp.Trailer)
	}
	if resp, _ := do(t, client(t, true), http.MethodHead, url, ""); resp.ContentLength != 3 {
		t.Errorf("HEAD has the length %d, want 3", resp.ContentLength)
	}
}

// TestCallsEndWithTheirDeadline: a call of gRPC whose answer has begun ends with DEADLINE_EXCEEDED, whether its client has ended
// its side or not, and not as one that was reset.
func TestCallsEndWithTheirDeadline(t *testing.T) {
	t.Parallel()
	for _, path := range []string{"/announced", "/plain"} {
		for _, open := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s open %v", path[1:], open), func(t *testing.T) {
				t.Parallel()
				steadily(t, 500*time.Millisecond, func(timeout time.Duration) error { return callEnds(t, path, open, timeout) })
			})
		}
	}
}

// callEnds makes a call whose answer does not end, and whose request ends unless it is open.
func callEnds(t *testing.T, path string, open bool, timeout time.Duration) error {
	t.Helper()
	url, _ := front(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/grpc")
		if r.URL.Path == "/announced" {
			w.Header().Set("Trailer", "Grpc-Status, Grpc-Message")
		}
		fmt.Fprint(w, frame("first"))
		_ = http.NewResponseController(w).Flush()
		<-r.Context().Done()
	}), func(c *config.Config) { c.Routes = []config.Route{{Timeout: timeout}} })
	sent := io.Reader(strings.NewReader(frame("a")))
	if open {
		in, end := io.Pipe()
		defer end.Close()
		sent = in
	}
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, url+path, sent)
	if err != nil {
		return err
	}
	r.Header.Set("Content-Type", "application/grpc")
	c := client(t, true)
	c.Timeout = 0 // the call has an end
	resp, err := c.Do(r)
	if err != nil {
		return err
	}
	got, err := io.ReadAll(resp.Body)
	_ = resp.Body.Close()
	if status := cmp.Or(resp.Trailer.Get("Grpc-Status"), resp.Header.Get("Grpc-Status")); status != "4" || err != nil || string(got) != frame("first") {
		return fmt.Errorf("%q, %v, status %q, want the message and 4", got, err, status)
	}
	return nil
}
