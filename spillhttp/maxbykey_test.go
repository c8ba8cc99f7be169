package spillhttp

import (
	"net/http"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/seed90641741/spillway"
	"github.com/seed90641741/spillway/concurrency"
	"github.com/seed90641741/spillway/ingress"
)

// TestMaxByKey: twenty streams ask for five places. Five are served, and quick calls lose nothing.
func TestMaxByKey(t *testing.T) {
	const most = 5
	var running, peak atomic.Int64
	handler := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/stream" {
			if n := running.Add(1); n > peak.Load() {
				peak.Store(n)
			}
			defer running.Add(-1)
			time.Sleep(10 * time.Second)
		}
		w.WriteHeader(http.StatusNoContent)
	})
	everyWay(t, func(t *testing.T, protocol string, early bool) {
		peak.Store(0)
		h := mustHandler(t, handler, ingress.Config{Concurrency: concurrency.Config{MaxInFlightByKey: map[string]int{"/stream": most}}}, HandlerConfig{
			Classify: func(r *http.Request) spillway.Call { return spillway.Call{Key: r.URL.Path} },
		})
		s := open(t, protocol, h, early)
		defer s.close()
		var all sync.WaitGroup
		var streams, quick atomic.Int64
		ask := func(path string, served *atomic.Int64) {
			r := newRequest(t, t.Context(), http.MethodGet, nil)
			r.URL.Path = path
			resp := must(s.base.RoundTrip(r))
			if readAll(t, resp); resp.StatusCode == http.StatusNoContent {
				served.Add(1)
			}
		}
		for range 20 {
			all.Go(func() { ask("/stream", &streams) })
		}
		for range 100 {
			time.Sleep(20 * time.Millisecond)
			all.Go(func() { ask("/quick", &quick) })
		}
		all.Wait()
		if peak.Load() != most || streams.Load() != most || quick.Load() != 100 {
			t.Errorf("at most %d streams at once, %d served, and %d quick calls", peak.Load(), streams.Load(), quick.Load())
		}
		nothingLeft(t, h)
	})
}
