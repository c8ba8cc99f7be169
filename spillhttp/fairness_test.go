package spillhttp

import (
	"math/rand/v2"
	"net/http"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/seed90641741/spillway"
	"github.com/seed90641741/spillway/ingress"
	"github.com/seed90641741/spillway/quota"
)

// inBrief returns how many seconds a test lasts: fewer by -short.
func inBrief(seconds float64) float64 {
	if testing.Short() {
		return 2
	}
	return seconds
}

// TestFairness: of two customers with the same quota one asks for twenty times as
// much as it may, in all classes. It gets what it may, and the other loses nothing.
func TestFairness(t *testing.T) {
	const rate = 50.0 // of each quota
	seconds := inBrief(5)
	everyWay(t, func(t *testing.T, protocol string, early bool) {
		local := must(quota.NewLocal(quota.LocalConfig{Customers: map[string]quota.Limit{
			"modest": {Rate: rate}, "greedy": {Rate: rate},
		}}))
		h := mustHandler(t, bare, ingress.Config{
			Quota: quota.Config{Allocator: local}, Shed: patient,
			Trust: ingress.Trust{Boundary: ingress.Internal, DefaultMax: spillway.CriticalPlus},
		}, HandlerConfig{Classify: func(r *http.Request) spillway.Call {
			return spillway.Call{Customer: r.URL.Path[1:]}
		}})
		s := open(t, protocol, h, early)
		defer s.close()
		var served, rejected [2]atomic.Int64
		var all sync.WaitGroup
		for i, name := range []string{"modest", "greedy"} {
			random := rand.New(rand.NewPCG(uint64(i), 1))
			all.Go(func() {
				// The modest one comes evenly: bursts are its own to bear.
				gap, jitter := float64(time.Second)/rate*1.1, 0.1
				if name == "greedy" {
					gap, jitter = float64(time.Second)/rate/20, 2
				}
				for start := time.Now(); time.Since(start).Seconds() < seconds; {
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
							rejected[i].Add(1)
						default:
							t.Errorf("%s: %d", name, resp.StatusCode)
						}
					})
				}
			})
		}
		all.Wait()
		fair := rate * seconds
		n, lost := float64(served[0].Load()), rejected[0].Load()
		if n < 0.85*fair || lost != 0 {
			t.Errorf("of the modest one's %v were served and %d rejected", n, lost)
		}
		n, lost = float64(served[1].Load()), rejected[1].Load()
		if n < 0.95*fair || n > fair+2*rate || float64(lost) < 17*fair {
			t.Errorf("of the greedy one's %v were served and %d rejected, want %v served", n, lost, fair)
		}
		nothingLeft(t, h)
	})
}

// TestGreedyCaller: one caller asks for ten times what the server can do, and twenty others
// for 60 % of it, without any quota.
func TestGreedyCaller(t *testing.T) {
	const (
		places = 4
		takes  = 20 * time.Millisecond
	)
	seconds := inBrief(4)
	const capacity = places * float64(time.Second) / float64(takes)
	slow := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		time.Sleep(takes)
		w.WriteHeader(http.StatusNoContent)
	})
	everyWay(t, func(t *testing.T, protocol string, early bool) {
		h := mustHandler(t, slow, ingress.Config{MaxInFlight: places, ShedMode: spillway.ModeOff}, HandlerConfig{
			Classify: func(r *http.Request) spillway.Call { return spillway.Call{Customer: r.URL.Path[1:]} },
		})
		s := open(t, protocol, h, early)
		defer s.close()
		start := time.Now()
		var offered, served [2]atomic.Int64
		var all sync.WaitGroup
		ask := func(kind int, name string) {
			counts := time.Since(start) > time.Second
			r := newRequest(t, t.Context(), http.MethodGet, nil)
			r.URL.Path = "/" + name
			resp := must(s.base.RoundTrip(r))
			if readAll(t, resp); counts {
				offered[kind].Add(1)
				if resp.StatusCode == http.StatusNoContent {
					served[kind].Add(1)
				}
			}
		}
		for i := range 21 {
			random, kind, rate := rand.New(rand.NewPCG(uint64(i), 1)), 0, 0.03*capacity
			if i == 0 {
				kind, rate = 1, 10*capacity
			}
			all.Go(func() {
				for time.Since(start).Seconds() < seconds {
					time.Sleep(time.Duration(random.ExpFloat64() / rate * float64(time.Second)))
					all.Go(func() { ask(kind, strconv.Itoa(i)) })
				}
			})
		}
		all.Wait()
		share := float64(served[0].Load()) / float64(offered[0].Load())
		total := float64(served[0].Load()+served[1].Load()) / (seconds - 1) / capacity
		t.Logf("%.3f of the honest requests served, in all %.2f of the capacity", share, total)
		if share < 0.98 {
			t.Errorf("%.3f of the requests of honest callers served", share)
		}
		if total < 0.95 {
			t.Errorf("%.2f of the capacity is used", total)
		}
		nothingLeft(t, h)
	})
}
