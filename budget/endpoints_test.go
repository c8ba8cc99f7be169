package budget_test

import (
	"math/rand/v2"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/seed90641741/spillway/budget"
)

func TestEndpointsAreApart(t *testing.T) {
	e := must(budget.NewEndpoints(budget.EndpointsConfig{Bucket: budget.Config{Capacity: 2}}))
	e.Withdraw(t0, "bad", 1)
	e.Withdraw(t0, "bad", 1)
	if left, capacity, ok := e.Withdraw(t0, "bad", 1); ok || left != 0 || capacity != 2 {
		t.Errorf("a third retry at bad: %v of %v left, %v", left, capacity, ok)
	}
	if left, _, ok := e.Withdraw(t0, "good", 1); !ok || left != 1 {
		t.Errorf("the first retry at good: %v left, %v", left, ok)
	}
	e.Deposit("bad", 1)
	if got := e.Bucket("bad").Stats(time.Time{}); got.Tokens != 1 || got.RejectedTotal != 1 {
		t.Errorf("bad has %+v", got)
	}
}

// recently is the naive memory: the known keys, the one used first at the front.
type recently struct {
	max     int
	keys    []string
	spent   map[string]float64
	evicted uint64
}

func (r *recently) use(key string) {
	if i := slices.Index(r.keys, key); i >= 0 {
		r.keys = slices.Delete(r.keys, i, i+1)
	} else if len(r.keys) == r.max {
		delete(r.spent, r.keys[0])
		r.keys = r.keys[1:]
		r.evicted++
	}
	r.keys = append(r.keys, key)
}

// TestEndpointsForget runs random uses against the naive memory. What an
// endpoint has spent shows whether it was forgotten.
func TestEndpointsForget(t *testing.T) {
	for seed := range uint64(20) {
		rng := rand.New(rand.NewPCG(seed, 0))
		size := 1 + rng.IntN(8)
		e := must(budget.NewEndpoints(budget.EndpointsConfig{MaxEndpoints: size, Bucket: budget.Config{Capacity: 1e6}}))
		model := recently{max: size, spent: map[string]float64{}}
		for i := range 2000 {
			key := strconv.Itoa(rng.IntN(12))
			model.use(key)
			model.spent[key]++
			if left, _, ok := e.Withdraw(t0, key, 1); !ok || left != 1e6-model.spent[key] {
				t.Fatalf("seed %d, use %d of %s: %v left, want %v", seed, i, key, left, 1e6-model.spent[key])
			}
		}
		if got, want := e.Stats(time.Time{}), (budget.EndpointsStats{Known: len(model.keys), EvictedTotal: model.evicted}); got != want {
			t.Fatalf("seed %d: %+v, want %+v", seed, got, want)
		}
	}
}

func TestEndpointsConcurrent(t *testing.T) {
	e := must(budget.NewEndpoints(budget.EndpointsConfig{MaxEndpoints: 4, Bucket: budget.Config{Capacity: 3}}))
	var wg sync.WaitGroup
	for w := range 8 {
		wg.Go(func() {
			for i := range 500 {
				key := strconv.Itoa((w + i) % 7)
				if left, _, ok := e.Withdraw(t0, key, 1); left < 0 || left > 3 || !ok && left >= 1 {
					t.Errorf("%v left, %v", left, ok)
				}
				e.Deposit(key, .5)
			}
		})
	}
	wg.Wait()
	if got := e.Stats(time.Time{}).Known; got != 4 {
		t.Errorf("%d endpoints are known, want 4", got)
	}
}
