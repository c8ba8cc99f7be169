package httpproxy

import (
	"fmt"
	"net"
	"net/http"
	"sync"
	"testing"
	"time"

	"github.com/seed90641741/spillway/cmd/spillway/internal/gateway/config"
)

// TestWholeRequestsPassLongBodies: while a client uses up the share of requests with long
// bodies, requests without a body or with a short one are served, in each protocol.
func TestWholeRequestsPassLongBodies(t *testing.T) {
	quiet(t)
	url, p := front(t, swallow, func(c *config.Config) {
		c.Clusters[0].Protocol, c.Clusters[0].Batch = "http1", &config.Batch{Connections: 2, Queue: 10, MaxWait: 10 * time.Second}
	})
	c := dial(t, p)
	fmt.Fprint(c, "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nx\r\n")
	until(t, "the long body has a place", func() bool { return p.Stats(time.Now()).Clusters["upstream"].Queue.Busy == 1 })
	for _, second := range []bool{false, true} {
		for _, body := range []string{"", "short"} {
			method := map[bool]string{true: http.MethodGet, false: http.MethodPost}[body == ""]
			if resp, text := do(t, client(t, second), method, url, body); resp.StatusCode != http.StatusOK || text != fmt.Sprint(len(body)) {
				t.Errorf("HTTP/2 %v, body %q: %d %q", second, body, resp.StatusCode, text)
			}
		}
	}
}

// TestAddressesTakeTurns: an address that fills the queue of a batch cluster does not keep
// others out of it, nor from the next turn.
func TestAddressesTakeTurns(t *testing.T) {
	quiet(t)
	turns, served := make(chan struct{}), make(chan string, 20)
	url, p := front(t, http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		select {
		case <-turns:
			served <- r.Header.Get("X-From")
		case <-r.Context().Done():
		}
	}), func(c *config.Config) {
		c.Clusters[0].Protocol, c.Clusters[0].Batch = "http1", &config.Batch{Connections: 1, Queue: 6}
	})
	var all sync.WaitGroup
	ask := func(from string) {
		all.Go(func() {
			r, _ := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
			r.Header.Set("X-From", from)
			c := client(t, false)
			c.Transport.(*http.Transport).DialContext = (&net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(from)}}).DialContext
			resp, err := c.Do(r)
			if err != nil {
				t.Error(from, err)
				return
			}
			_ = resp.Body.Close()
		})
	}
	waiting := func(n int, rejected uint64) {
		t.Helper()
		until(t, fmt.Sprintf("%d wait and %d are rejected", n, rejected), func() bool {
			q := p.Stats(time.Now()).Clusters["upstream"].Queue
			return q.Busy == 1 && q.Waiting == n && q.RejectedTotal == rejected
		})
	}
	for i := range 7 {
		ask("127.0.0.2")
		waiting(i, 0)
	}
	ask("127.0.0.2")
	waiting(6, 1)
	ask("127.0.0.3")
	waiting(6, 2) // one of the others
	for i, want := range []string{"127.0.0.2", "127.0.0.2", "127.0.0.3"} {
		turns <- struct{}{}
		if got := <-served; got != want {
			t.Errorf("turn %d is that of %s, want %s", i, got, want)
		}
	}
	close(turns)
	all.Wait()
}
