package spillhttp

import (
	"context"
	"net/http"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// TestAllEndAtTheirDeadlines sends five times what a pool of 8 × 20 ms can do. Requests end after 65 ms, in the pool as well. It serves
// first in, first out, so that each request that gets a slot ends before it is answered, once the pool was away for a second. Behind a
// Handler nearly as many are answered as the pool can do, whether clients send their deadlines or hang up. All time is that of a bubble.
func TestAllEndAtTheirDeadlines(t *testing.T) {
	for _, headers := range [][]string{{headerDeadline, "65"}, nil} {
		inBubble(t, func(t *testing.T) {
			alone := answeredInTime(t, false, headers)
			protected := answeredInTime(t, true, headers)
			t.Logf("%v: %d, behind a Handler %d", headers, alone, protected)
			if alone > 200 || protected < 1600 {
				t.Errorf("%v: %d and %d behind a Handler of 2000 that the pool can answer, want at most 200 and at least 1600", headers, alone, protected)
			}
		})
	}
}

// answeredInTime returns how many requests are answered in the last 5 of 10 s, of which the first is quiet.
func answeredInTime(t *testing.T, protected bool, headers []string) int64 {
	t.Helper()
	var (
		answered atomic.Int64
		clients  sync.WaitGroup
		slots    = make(chan struct{}, 8)
	)
	time.AfterFunc(time.Second, func() { // the pool is away for a second
		for range cap(slots) {
			slots <- struct{}{}
		}
		time.Sleep(time.Second) // in the bubble: the outage
		for range cap(slots) {
			<-slots
		}
	})
	var h http.Handler = http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		select {
		case slots <- struct{}{}:
			defer func() { <-slots }()
		case <-r.Context().Done():
			return
		}
		select {
		case <-time.After(20 * time.Millisecond):
			answered.Add(1)
		case <-r.Context().Done():
		}
	})
	if protected {
		h = mustHandler(t, h, internal, HandlerConfig{})
	}
	defer clients.Wait()
	var before int64
	for begin := time.Now(); time.Since(begin) < 10*time.Second; {
		if time.Since(begin) < 5*time.Second {
			before = answered.Load()
		}
		clients.Go(func() {
			ctx, hangUp := context.WithCancel(t.Context())
			defer time.AfterFunc(65*time.Millisecond, hangUp).Stop()
			h.ServeHTTP(nowhere{http.Header{}}, incoming(t, headers...).WithContext(ctx))
		})
		if time.Sleep(time.Second / 2000); time.Since(begin) < time.Second {
			time.Sleep(time.Second / 200) // in the bubble, as the one above: the time between requests
		}
	}
	return answered.Load() - before
}
