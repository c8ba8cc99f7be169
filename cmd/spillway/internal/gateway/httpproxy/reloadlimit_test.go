package httpproxy

import (
	"net/http"
	"testing"
	"time"

	"github.com/seed90641741/spillway/cmd/spillway/internal/gateway/config"
)

// TestReloadKeepsTheCountOfRequestsInFlight: requests that were sent before a cluster is changed count against its max_requests
// after that, too.
func TestReloadKeepsTheCountOfRequestsInFlight(t *testing.T) {
	quiet(t)
	begun, end := make(chan bool, 9), make(chan bool)
	address, _ := upstreamAt(t, http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		begun <- true
		select { // else it is one too many
		case <-end:
		case <-time.After(5 * time.Second):
		}
	}))
	of := func(change func(*config.Cluster)) *config.Config {
		c := config.ForUpstream("127.0.0.1:0", address)
		c.Mode, c.Clusters[0].Inflight.MaxInFlight = "enforce", 2
		change(&c.Clusters[0])
		return c
	}
	p := start(t, of(func(*config.Cluster) {}))
	url, x, answers := "http://"+p.Addr("").String(), client(t, false), make(chan int, 9)
	send := func() {
		go func() {
			resp, _ := do(t, x, http.MethodGet, url, "")
			answers <- resp.StatusCode
		}()
		<-begun
	}
	rejected := func(when string) {
		if resp, _ := do(t, x, http.MethodGet, url, ""); resp.StatusCode != http.StatusServiceUnavailable {
			t.Errorf("one request too many %s is answered with %s", when, resp.Status)
		}
	}
	update := func(change func(*config.Cluster)) {
		if err := p.Update(of(change)); err != nil {
			t.Fatal(err)
		}
	}
	send()
	update(func(c *config.Cluster) { c.ConnectTimeout = time.Minute })
	send()
	rejected("after another change")
	update(func(c *config.Cluster) { c.Inflight.MaxInFlight = 3 })
	send()
	rejected("for a higher limit")
	update(func(c *config.Cluster) { c.Inflight.MaxInFlight = 1 })
	rejected("for a lower limit")
	if s := p.Stats(time.Now()).Clusters["upstream"].Egress.InFlight; s.InFlight != 3 || s.MaxInFlight != 1 {
		t.Errorf("%d of %d are in flight, want 3 of 1", s.InFlight, s.MaxInFlight)
	}
	for range 3 {
		end <- true
		if status := <-answers; status != http.StatusOK {
			t.Errorf("a request is answered with %d", status)
		}
	}
}
