package concurrency

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"
	"time"
)

// After a burst only its slow requests are left, and at the begin of the next one quick requests end first: latency seems to grow with
// the number in flight. Throughput lags behind the number in flight. Neither is a queue.
func TestBurstsAreNoQueue(t *testing.T) {
	for _, c := range []struct {
		service time.Duration
		quiet   int // requests per second
		burst   int
		slower  time.Duration // service at the end
	}{
		{525 * time.Millisecond, 50, 600, 525 * time.Millisecond},
		{100 * time.Millisecond, 500, 4500, 280 * time.Millisecond},
		{20 * time.Millisecond, 1000, 8000, 20 * time.Millisecond},
	} {
		t.Run(fmt.Sprint(c.service), func(t *testing.T) {
			for seed := range uint64(5) {
				p := newPool(t, Config{})
				p.rng = rand.New(rand.NewPCG(seed, 2))
				for i := range 6 {
					if p.service = c.service; i >= 3 {
						p.service = c.slower
					}
					p.run(7*c.service, math.MaxInt, c.quiet)
					p.run(2*c.service, math.MaxInt, c.burst)
				}
				all := p.rejected + p.served
				if p.rejected > all/100 {
					t.Errorf("seed %d: %d of %d rejected, want at most 1 %%", seed, p.rejected, all)
				}
			}
		})
	}
}
