package spillhttp

import (
	"fmt"
	"math/rand/v2"
	"net/http"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/seed90641741/spillway"
	"github.com/seed90641741/spillway/ingress"
)

// TestQuickBesideSlow: callers of a path of one second ask for three times the places, and one
// client of a quick path in the same class asks for a fiftieth of them.
func TestQuickBesideSlow(t *testing.T) {
	const (
		places  = 24
		slow    = time.Second
		quick   = 20 * time.Millisecond
		seconds = 8
		ignored = 3 * time.Second
	)
	handler := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		takes := quick
		if r.URL.Path != "/quick" {
			takes = slow
		}
		time.Sleep(takes)
		w.WriteHeader(http.StatusNoContent)
	})
	for _, callers := range []int{2, 20} {
		t.Run(fmt.Sprint(callers), func(t *testing.T) {
			everyWay(t, func(t *testing.T, protocol string, early bool) {
				h := mustHandler(t, handler, ingress.Config{MaxInFlight: places, ShedMode: spillway.ModeOff}, HandlerConfig{
					Classify: func(r *http.Request) spillway.Call { return spillway.Call{Customer: r.URL.Path[1:]} },
				})
				s := open(t, protocol, h, early)
				defer s.close()
				start := time.Now()
				var offered, served atomic.Int64
				var all sync.WaitGroup
				ask := func(name string) {
					counts := time.Since(start) > ignored && name == "quick"
					r := newRequest(t, t.Context(), http.MethodGet, nil)
					r.URL.Path = "/" + name
					resp := must(s.base.RoundTrip(r))
					if readAll(t, resp); counts {
						offered.Add(1)
						if resp.StatusCode == http.StatusNoContent {
							served.Add(1)
						}
					}
				}
				for i := range callers + 1 {
					random, name, rate := rand.New(rand.NewPCG(uint64(i), 1)), strconv.Itoa(i), 3*places/float64(callers)
					if i == 0 {
						name, rate = "quick", 0.02*places/quick.Seconds()
					}
					all.Go(func() {
						for time.Since(start) < seconds*time.Second {
							time.Sleep(time.Duration(random.ExpFloat64() / rate * float64(time.Second)))
							all.Go(func() { ask(name) })
						}
					})
				}
				all.Wait()
				share := float64(served.Load()) / float64(offered.Load())
				t.Logf("%.3f of %d quick requests served", share, offered.Load())
				if share < 0.95 {
					t.Errorf("%.3f of the quick requests served", share)
				}
				nothingLeft(t, h)
			})
		})
	}
}
