package spillhttp

import (
	"math/rand/v2"
	"net/http"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/seed90641741/spillway"
	"github.com/seed90641741/spillway/ingress"
	"github.com/seed90641741/spillway/quota"
)

// TestFairness: of two customers with the same quota one asks for twenty times as
// much as it may, in all classes. It gets what it may, and the other loses nothing.
func TestFairness(t *testing.T) {
	const (
		rate    = 50.0 // of each quota
		seconds = 5
	)
	everyWay(t, func(t *testing.T, protocol string, early bool) {
		local := must(quota.NewLocal(quota.LocalConfig{Customers: map[string]quota.Limit{
			"modest": {Rate: rate}, "greedy": {Rate: rate},
		}}))
		h := mustHandler(t, bare, ingress.Config{
			Quota: quota.Config{Allocator: local}, Shed: patient,
			Trust: ingress.Trust{Boundary: ingress.Internal, Others: spillway.CriticalPlus},
		}, HandlerConfig{Classify: func(r *http.Request) spillway.Call {
			return spillway.Call{Customer: r.URL.Path[1:]}
		}})
		s := open(t, protocol, h, early)
		defer s.close()
		var served, refused [2]atomic.Int64
		var all sync.WaitGroup
		for i, name := range []string{"modest", "greedy"} {
			random := rand.New(rand.NewPCG(uint64(i), 1))
			all.Go(func() {
				// The modest one comes evenly: bursts are its own to bear.
				gap, jitter := float64(time.Second)/rate*1.1, 0.1
				if name == "greedy" {
					gap, jitter = float64(time.Second)/rate/20, 2
				}
				for start := time.Now(); time.Since(start) < seconds*time.Second; {
					time.Sleep(time.Duration(gap * (1 - jitter/2 + jitter*random.Float64())))
					r := newRequest(t, t.Context(), http.MethodGet, nil)
					r.URL.Path = "/" + name
					class := spillway.Critical
					if name == "greedy" {
						class = spillway.Criticality(random.IntN(4)) - 2
					}
					r.Header.Set(headerCriticality, class.String())
					all.Go(func() {
						resp := must(s.base.RoundTrip(r))
						switch readAll(t, resp); resp.StatusCode {
						case http.StatusNoContent:
							served[i].Add(1)
						case http.StatusTooManyRequests:
							refused[i].Add(1)
						default:
							t.Errorf("%s: %d", name, resp.StatusCode)
						}
					})
				}
			})
		}
		all.Wait()
		const fair = rate * seconds
		n, lost := float64(served[0].Load()), refused[0].Load()
		if n < 0.85*fair || lost != 0 {
			t.Errorf("of the modest one's %v were served and %d refused", n, lost)
		}
		n, lost = float64(served[1].Load()), refused[1].Load()
		if n < 0.95*fair || n > fair+2*rate || lost < 17*fair {
			t.Errorf("of the greedy one's %v were served and %d refused, want %v served", n, lost, fair)
		}
		nothingLeft(t, h)
	})
}
