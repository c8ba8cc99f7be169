package inflight_test

import (
	"context"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/seed90641741/spillway"
	"github.com/seed90641741/spillway/inflight"
	"github.com/seed90641741/spillway/internal/race"
)

func held(t *testing.T, l *inflight.Limiter, ctx context.Context, after func()) *inflight.Hold {
	t.Helper()
	ticket, err := l.Admit(time.Now(), spillway.Call{})
	if err != nil {
		t.Fatal(err)
	}
	h := new(inflight.Hold)
	h.Begin(ctx, ticket, l, after)
	return h
}

func limiter(t *testing.T, n int) *inflight.Limiter {
	t.Helper()
	l, err := inflight.New(inflight.Config{MaxInFlight: n})
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// TestHoldEndsWithItsContext: from all places forgotten, each way to ask finds them free when the context has
// ended, at once.
func TestHoldEndsWithItsContext(t *testing.T) {
	for name, served := range map[string]func(*inflight.Limiter) bool{
		"admit":   func(l *inflight.Limiter) bool { _, err := l.Admit(time.Now(), spillway.Call{}); return err == nil },
		"try":     func(l *inflight.Limiter) bool { return l.TryAcquire() },
		"full":    func(l *inflight.Limiter) bool { return !l.Full() },
		"stats":   func(l *inflight.Limiter) bool { return l.Stats(time.Now()).InFlight == 0 },
		"acquire": func(l *inflight.Limiter) bool { return l.Acquire(context.Background()) == nil },
	} {
		for _, n := range []int{1, 50, 1024} {
			l := limiter(t, n)
			ctx, cancel := context.WithCancel(t.Context())
			all := make([]*inflight.Hold, n)
			for i := range all {
				all[i] = held(t, l, ctx, nil)
			}
			if name != "acquire" && served(l) {
				t.Errorf("%s, %d: served while all places are held", name, n)
			}
			cancel()
			if !served(l) {
				t.Errorf("%s, %d: not served when the context has ended", name, n)
			}
			before := l.Stats(time.Now())
			for _, h := range all {
				h.End()
				h.End()
			}
			if after := l.Stats(time.Now()); after.SurplusTotal != 0 || after.InFlight != before.InFlight || after.InFlight > 1 {
				t.Errorf("%s, %d: %+v, then %+v", name, n, before, after)
			}
		}
	}
}

// TestForgottenHoldsDoNotAddUp: without a limit nobody is rejected, and new places find the forgotten ones.
func TestForgottenHoldsDoNotAddUp(t *testing.T) {
	l := limiter(t, -1)
	live := held(t, l, t.Context(), nil)
	for i := range 1000 {
		ctx, cancel := context.WithCancel(t.Context())
		h := held(t, l, ctx, nil)
		if cancel(); i%2 == 0 {
			h.End()
		}
	}
	if n := l.InFlightWithoutSweep(); n > 4 {
		t.Errorf("%d in flight after 1,000 calls that have ended, want at most 4", n)
	}
	live.End()
	if n := l.Stats(time.Now()).InFlight; n != 0 {
		t.Errorf("%d in flight at the end", n)
	}
}

// TestHoldWithoutEnd: a context that never ends needs End, which is called once, and after with it.
func TestHoldWithoutEnd(t *testing.T) {
	l := limiter(t, 1)
	calls := 0
	h := held(t, l, context.Background(), func() { calls++ })
	if !l.Full() {
		t.Error("the place is not held")
	}
	h.GiveBack()
	if l.Full() || calls != 0 {
		t.Errorf("full %v, %d calls", l.Full(), calls)
	}
	if h.End(); calls != 1 || l.Stats(time.Now()).SurplusTotal != 0 {
		t.Errorf("%d calls, %+v", calls, l.Stats(time.Now()))
	}
	new(inflight.Hold).End() // holds nothing
}

// TestHoldsRace: contexts and answers end at the same time; nothing is given back twice, or kept.
func TestHoldsRace(t *testing.T) {
	l := limiter(t, 20)
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			for range 500 {
				ctx, cancel := context.WithCancel(t.Context())
				ticket, err := l.Admit(time.Now(), spillway.Call{})
				if err != nil {
					cancel()
					continue
				}
				h := new(inflight.Hold)
				h.Begin(ctx, ticket, l, nil)
				all.Go(func() {
					if rand.IntN(2) == 0 {
						h.End()
					}
				})
				all.Go(cancel)
			}
		})
	}
	all.Wait()
	if s := l.Stats(time.Now()); s.InFlight != 0 || s.SurplusTotal != 0 {
		t.Errorf("%+v", s)
	}
}

func TestHoldAllocatesNothing(t *testing.T) {
	if race.Enabled {
		t.Skip("the race detector allocates")
	}
	l := limiter(t, 1)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var h *inflight.Hold
	holds := make([]inflight.Hold, 2000)
	i := 0
	if n := testing.AllocsPerRun(1000, func() {
		h, i = &holds[i], i+1
		ticket, _ := l.Admit(time.Now(), spillway.Call{})
		h.Begin(ctx, ticket, l, nil)
		_, _ = l.Admit(time.Now(), spillway.Call{})
		h.End()
	}); n > 0 {
		t.Errorf("%v allocations", n)
	}
}

func BenchmarkHold(b *testing.B) {
	l, _ := inflight.New(inflight.Config{})
	ctx, cancel := context.WithCancel(b.Context())
	defer cancel()
	b.ReportAllocs()
	now := time.Now()
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			var h inflight.Hold
			ticket, _ := l.Admit(now, spillway.Call{})
			h.Begin(ctx, ticket, l, nil)
			h.End()
		}
	})
}
