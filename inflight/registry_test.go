package inflight

import (
	"math/rand/v2"
	"sync"
	"testing"
	"time"
)

func TestRegistryShares(t *testing.T) {
	var r Registry
	a, releaseA := r.Share(Key{"cluster", "service"})
	b, releaseB := r.Share(Key{"cluster", "service"})
	if a != b {
		t.Fatal("two limiters for one key")
	}
	for _, other := range []Key{{"cluster", ""}, {"cluster", "moved"}, {"other", "service"}} {
		o, release := r.Share(other)
		if o == a {
			t.Errorf("%+v shares the limiter of another key", other)
		}
		release()
	}
	if got := a.Stats(time.Time{}).MaxInFlight; got != DefaultMaxInFlight {
		t.Errorf("a new limiter has limit %d, want %d", got, DefaultMaxInFlight)
	}

	a.SetMaxInFlight(7)
	b.TryAcquire()
	releaseA()
	releaseA() // does nothing: the reference of b is not a's to give up
	again, releaseAgain := r.Share(Key{"cluster", "service"})
	if got := again.Stats(time.Time{}); again != b || got.MaxInFlight != 7 || got.InFlight != 1 {
		t.Errorf("while referenced: same limiter is %v, %+v; want the same, 1 of 7", again == b, got)
	}
	releaseB()
	releaseAgain()
	if got := r.Stats(time.Time{}); len(got) != 0 {
		t.Errorf("left over after the last release: %v", got)
	}

	fresh, release := r.Share(Key{"cluster", "service"})
	defer release()
	if got := fresh.Stats(time.Time{}); fresh == b || got.MaxInFlight != DefaultMaxInFlight || got.InFlight != 0 {
		t.Errorf("after the last release: same limiter is %v, %+v; want a fresh one", fresh == b, got)
	}
	releaseB() // of the old one: must not take the new one away
	if got := r.Stats(time.Time{})[Key{"cluster", "service"}]; got.MaxInFlight != DefaultMaxInFlight {
		t.Errorf("a stale release took the new limiter: %v", r.Stats(time.Time{}))
	}
	b.Release() // what was in flight ends where it was admitted
	if got := b.Stats(time.Time{}); got.InFlight != 0 || got.SurplusTotal != 0 {
		t.Errorf("old limiter: %+v", got)
	}
}

func TestRegistryConcurrent(t *testing.T) {
	var r Registry
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			for range 2_000 {
				l, release := r.Share(Key{Cluster: string('a' + rune(rand.N(3)))})
				if l.TryAcquire() {
					l.Release()
				}
				var twice sync.WaitGroup
				twice.Go(release)
				release()
				twice.Wait()
			}
		})
	}
	all.Wait()
	if got := r.Stats(time.Time{}); len(got) != 0 {
		t.Errorf("left over: %v", got)
	}
}
