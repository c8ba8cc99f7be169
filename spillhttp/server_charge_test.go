package spillhttp

import (
	"context"
	"math"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"time"

	"github.com/seed90641741/spillway"
	"github.com/seed90641741/spillway/ingress"
	"github.com/seed90641741/spillway/internal/race"
	"github.com/seed90641741/spillway/quota"
)

// newCharged returns a Handler whose requests all are of one customer and cost nothing by themselves, and
// what returns the cost that was charged.
func newCharged(t *testing.T, serve http.HandlerFunc) (*Handler, func() float64) {
	t.Helper()
	local := must(quota.NewLocal(quota.LocalConfig{Customers: map[string]quota.Limit{"mail": {Rate: 0.01}}}))
	h := mustHandler(t, serve, ingress.Config{
		Quota: quota.Config{Allocator: local, BurstSeconds: 3600, Cost: -1}, Shed: patient,
	}, HandlerConfig{Classify: func(*http.Request) spillway.Call { return spillway.Call{Customer: "mail"} }})
	return h, func() float64 {
		for _, c := range h.ingress.Stats(time.Now()).Quota {
			if c.Customer == "mail" {
				return c.Debt * 36
			}
		}
		return 0
	}
}

func TestCharge(t *testing.T) {
	var kept context.Context
	h, used := newCharged(t, func(_ http.ResponseWriter, r *http.Request) {
		kept = r.Context() //nolint:fatcontext // it outlives the request on purpose
		Charge(r.Context(), 5)
		derived, cancel := context.WithTimeout(r.Context(), time.Minute)
		defer cancel()
		Charge(derived, 3) // adds up
		Charge(r.Context(), -2)
		Charge(r.Context(), math.NaN())
		Charge(r.Context(), math.Inf(1))
	})
	for _, r := range []*http.Request{
		httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/", nil),
		httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/", http.NoBody),
	} {
		before := used()
		h.ServeHTTP(httptest.NewRecorder(), r)
		if got := used() - before; math.Abs(got-6) > 0.1 {
			t.Errorf("%s: %v is charged, want 6", r.Method, got)
		}
		before = used()
		Charge(kept, 10) // the handler has returned
		h.ServeHTTP(httptest.NewRecorder(), r.WithContext(t.Context()))
		if got := used() - before; math.Abs(got-6) > 0.1 {
			t.Errorf("%s: %v is charged after the end, want 6", r.Method, got)
		}
	}
	Charge(t.Context(), 1) // no request
}

// Late charges never reach a later request that uses the same memory.
func TestChargesAfterTheEnd(t *testing.T) {
	h, used := newCharged(t, func(_ http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/charged" {
			Charge(r.Context(), 0.01)
		}
		r.Context().Value(keptKey{}).(chan context.Context) <- r.Context()
	})
	var all sync.WaitGroup
	for _, path := range []string{"/", "/charged", "/", "/charged"} {
		all.Go(func() {
			kept := make(chan context.Context, 1)
			ctx := context.WithValue(t.Context(), keptKey{}, kept)
			for range 50 {
				h.ServeHTTP(httptest.NewRecorder(), httptest.NewRequestWithContext(ctx, http.MethodGet, path, nil))
				last := <-kept
				all.Go(func() { Charge(last, 10) }) // while others are served
			}
		})
	}
	all.Wait()
	if got := used(); math.Abs(got-1) > 0.1 {
		t.Errorf("%v is charged, want 1", got)
	}
}

type keptKey struct{}

func TestChargeAllocatesNothing(t *testing.T) {
	if race.Enabled {
		t.Skip("the race detector allocates")
	}
	h, _ := newCharged(t, func(_ http.ResponseWriter, r *http.Request) {
		if n := testing.AllocsPerRun(100, func() { Charge(r.Context(), 1e-6) }); n > 0 {
			t.Errorf("%v allocations", n)
		}
	})
	h.ServeHTTP(httptest.NewRecorder(), httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/", nil))
}
