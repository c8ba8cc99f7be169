package inflight

import (
	"math"
	"math/rand/v2"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/seed90641741/spillway"
)

// gauge counts independently of the Limiter how many are inside at once, and
// remembers the most that came in during a round.
type gauge struct {
	inside, round atomic.Int64
	highest       atomic.Int64 // round in the upper half, so that a late entry of an earlier round changes nothing
}

func (g *gauge) enter() {
	round := g.round.Load()
	n := round<<32 | g.inside.Add(1)
	for {
		high := g.highest.Load()
		if n <= high || g.highest.CompareAndSwap(high, n) {
			return
		}
	}
}

// begin starts a round.
func (g *gauge) begin() { g.highest.Store(g.round.Add(1) << 32) }

// most returns how many were inside at once in the round.
func (g *gauge) most() int64 { return int64(int32(g.highest.Load())) }

func (g *gauge) leave() { g.inside.Add(-1) }

// crowd runs f in n goroutines, again and again, until stop is called.
func crowd(n int, f func()) (stop func()) {
	var done atomic.Bool
	var all sync.WaitGroup
	for range n {
		all.Go(func() {
			for !done.Load() {
				f()
			}
		})
	}
	return func() { done.Store(true); all.Wait() }
}

// TestNeverAboveTheLimit lets eight goroutines compete while the limit moves.
// Once a lowered limit is reached, no instant may see more inside than it allows.
func TestNeverAboveTheLimit(t *testing.T) {
	l := mustNew(t, 8)
	var inside gauge
	var admitted atomic.Int64
	stop := crowd(8, func() {
		if !l.TryAcquire() {
			runtime.Gosched()
			return
		}
		admitted.Add(1)
		inside.enter()
		runtime.Gosched()
		inside.leave()
		l.Release()
	})
	defer stop()
	for round := range 60 {
		limit := []int64{3, 7, 1, 5, 2, 0}[round%6]
		l.SetMaxInFlight(uint32(limit))
		for int64(l.Stats(time.Time{}).InFlight) > limit {
			runtime.Gosched()
		}
		inside.begin()
		end := time.Now().Add(time.Minute)
		for start, n := admitted.Load(), 0; limit == 0 && n < 500 || limit > 0 && admitted.Load() < start+500; n++ {
			if runtime.Gosched(); time.Now().After(end) { // however late the crowd gets a processor
				t.Fatalf("round %d: %d admitted in a minute, limit %d", round, admitted.Load()-start, limit)
			}
		}
		if high := inside.most(); high > limit {
			t.Fatalf("round %d: %d inside at once, limit %d", round, high, limit)
		}
	}
}

// TestNoTransient shows that a rejection leaves no trace, however short, by which
// another caller could be rejected.
func TestNoTransient(t *testing.T) {
	const limit = 3
	l := mustNew(t, limit)
	acquire(l, limit)
	stop := crowd(4, func() { l.TryAcquire() })
	defer stop()
	for range 200_000 {
		if got := l.Stats(time.Time{}).InFlight; got != limit {
			t.Fatalf("%d in flight during a storm of rejections, want %d", got, limit)
		}
	}
}

// TestRoomForAll lets goroutines compete for the limit that fits them all: none is rejected.
func TestRoomForAll(t *testing.T) {
	l := mustNew(t, 8)
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			for range 20_000 {
				if !l.TryAcquire() {
					t.Error("rejected with room for all")
					return
				}
				l.Release()
			}
		})
	}
	all.Wait()
}

// TestChaos ends calls in every way, among them panics and double settling, while
// the limit moves and drops are reported, and looks for what is left.
func TestChaos(t *testing.T) {
	l := mustNew(t, 4)
	var rejected, reported atomic.Uint64
	stopReports := crowd(2, func() {
		n := l.TakeRejected()
		if rand.N(2) == 0 {
			l.PutBackRejected(n)
		} else {
			reported.Add(n)
		}
		l.SetMaxInFlight(rand.Uint32N(6))
		runtime.Gosched()
	})
	call := func() {
		defer func() { _ = recover() }()
		ticket, err := l.Admit(t0, spillway.Call{})
		if err != nil {
			rejected.Add(1)
			return
		}
		defer ticket.Settle(t0, spillway.OutcomeFailed)
		switch rand.N(3) {
		case 0:
			panic("handler")
		case 1:
			ticket.Settle(t0, spillway.OutcomeAbandoned)
		}
		runtime.Gosched()
	}
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			for range 5_000 {
				call()
			}
		})
	}
	all.Wait()
	stopReports()
	l.SetMaxInFlight(77)
	got, want := l.Stats(time.Time{}), Stats{MaxInFlight: 77, RejectedTotal: rejected.Load()}
	if got != want {
		t.Errorf("left over: %+v, want %+v", got, want)
	}
	if sum := reported.Load() + l.TakeRejected(); sum != rejected.Load() {
		t.Errorf("reports carried %d drops, of %d", sum, rejected.Load())
	}
}

// TestSurplusRace storms an empty limiter with releases: the limit survives, and
// what would be admitted in between is still bounded by it.
func TestSurplusRace(t *testing.T) {
	const each = 20_000
	l := mustNew(t, 0)
	stop := crowd(1, func() { l.SetMaxInFlight(rand.Uint32()); l.SetMaxInFlight(math.MaxUint32) })
	var all sync.WaitGroup
	for range 4 {
		all.Go(func() {
			for range each {
				l.Release()
			}
		})
	}
	all.Wait()
	stop()
	l.SetMaxInFlight(2)
	if got, want := l.Stats(time.Time{}), (Stats{MaxInFlight: 2, SurplusTotal: 4 * each}); got != want {
		t.Errorf("%+v, want %+v", got, want)
	}
	if n := acquire(l, 5); n != 2 {
		t.Errorf("%d admitted of a limit of 2", n)
	}
}
