package ingress

import (
	"slices"
	"testing"
	"time"

	"github.com/seed90641741/spillway"
	"github.com/seed90641741/spillway/concurrency"
	"github.com/seed90641741/spillway/internal/race"
)

// Requests of two keys wait for one thing: they share one limit and its cap, also after an
// update. Another key has its own. Their calls keep their keys.
func TestLimitKey(t *testing.T) {
	pool := func(key string) string {
		if key == "cache" {
			return key
		}
		return "pool"
	}
	observed := make(map[string]bool)
	c := Config{
		Concurrency: concurrency.Config{MaxInFlightByKey: map[string]int{"pool": 2}}, LimitKey: pool,
		Observer: spillway.ObserverFunc(func(e spillway.Event) { observed[e.Call.Key] = true }),
	}
	s := must(t, c)
	for range 2 {
		var all []Slot
		for _, x := range []struct {
			key   string
			waits bool
		}{{"/a", false}, {"/b", false}, {"/a", true}, {"/c", true}, {"cache", false}} {
			p, r := enter(s, spillway.Call{Key: x.key, Deadline: time.Now().Add(20 * time.Millisecond)})
			if r.Rejected() != x.waits {
				t.Errorf("%s: rejected %v, want %v", x.key, r.Rejected(), x.waits)
			}
			if !r.Rejected() {
				all = append(all, p)
			}
		}
		var keys []string
		for _, k := range s.Stats(time.Now()).Concurrency.Keys {
			if k.InFlight > 0 {
				keys = append(keys, k.Key)
			}
		}
		if slices.Sort(keys); !slices.Equal(keys, []string{"cache", "pool"}) {
			t.Errorf("limits of %q", keys)
		}
		for i := range all {
			all[i].Done(spillway.OutcomeServed)
		}
		if err := s.Update(c); err != nil {
			t.Fatal(err)
		}
	}
	if !observed["/a"] || !observed["/c"] || observed["pool"] {
		t.Errorf("events are of %v", observed)
	}
}

func TestLimitKeyAllocates(t *testing.T) {
	if race.Enabled {
		t.Skip("the race detector allocates")
	}
	s := must(t, Config{LimitKey: func(string) string { return "pool" }})
	if n := testing.AllocsPerRun(1000, func() {
		p, _ := enter(s, spillway.Call{Key: "/a"})
		p.Done(spillway.OutcomeServed)
	}); n != 0 {
		t.Errorf("%v allocations to admit", n)
	}
}
