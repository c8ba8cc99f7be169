package httpproxy

import (
	"net/http"
	"testing"
	"time"

	"github.com/seed90641741/spillway/cmd/spillway/internal/gateway/config"
)

// TestTuningEndsWithItsCluster takes a tuning away, and another one with its cluster, while the tuner
// waits for the change to end: it must not look for what is gone.
func TestTuningEndsWithItsCluster(t *testing.T) {
	quiet(t)
	address, _ := upstreamAt(t, http.NotFoundHandler())
	with := func(cluster string, tune *config.Tune) *config.Config {
		c := config.ForUpstream("127.0.0.1:0", address)
		x := &c.Clusters[0]
		x.Name, x.RateLimit.Rate, x.Tune = cluster, 100, tune
		return c
	}
	tune := &config.Tune{Latency: time.Second, Reaction: time.Millisecond}
	p := start(t, with("a", tune))
	for _, next := range []*config.Config{with("a", nil), with("a", tune), with("b", nil)} {
		n, err := p.Prepare(next.Defaulted())
		if err != nil {
			t.Fatal(err)
		}
		<-time.After(20 * time.Millisecond) // in which the tuner wakes up
		n.Commit()
		if got, want := len(p.Stats(time.Now()).Tuners) == 1, next.Clusters[0].Tune != nil; got != want {
			t.Errorf("tuned: %v, want %v", got, want)
		}
	}
}
