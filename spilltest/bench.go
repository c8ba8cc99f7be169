package spilltest

import (
	"context"
	"errors"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/seed90641741/spillway"
)

// patience is how long a clause waits for what must happen.
var patience = 30 * time.Second

// A bench is a Stack under test, with what was seen of it.
type bench struct {
	Stack

	t     *testing.T
	open  func(*testing.T, Setup) Stack
	setup Setup

	runs      atomic.Int64 // of work
	withdrawn int          // calls that were canceled while they waited

	mu     sync.Mutex
	events []spillway.Event
	fuse   int // the event, counted from now, at which Observe panics; zero: it does not
}

// A decision is what the policies say of a call that is over the limit.
type decision struct {
	policy string
	reason spillway.Reason
}

func newBench(t *testing.T, open func(*testing.T, Setup) Stack) *bench {
	b := &bench{t: t, open: open, setup: Setup{Limit: 2}}
	b.setup.Observer = b
	b.Stack = open(t, b.setup)
	return b
}

// reopen returns a bench with a new Stack in another mode.
func (b *bench) reopen(mode spillway.Mode) *bench {
	o := &bench{t: b.t, open: b.open, setup: Setup{Limit: b.setup.Limit, Mode: mode}}
	o.setup.Observer = o
	o.Stack = b.open(b.t, o.setup)
	return o
}

// Observe implements [spillway.Observer].
func (b *bench) Observe(e spillway.Event) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.events = append(b.events, e)
	if b.fuse > 0 {
		if b.fuse--; b.fuse == 0 {
			panic(errObserver)
		}
	}
}

// allocations returns how many a call makes, without those for its events.
func (b *bench) allocations(do Do) float64 {
	const runs = 200
	b.mu.Lock()
	b.events = slices.Grow(b.events, 10*runs)
	b.mu.Unlock()
	ctx, work := context.Background(), func(ctx context.Context) error {
		b.runs.Add(1)
		return ctx.Err()
	}
	return testing.AllocsPerRun(runs, func() { _ = do(ctx, work) })
}

func (b *bench) allocates(what string, n, most float64) {
	b.t.Helper()
	if most >= 0 && n > most {
		b.t.Errorf("a call that is %s makes %v allocations more than without the tested code, must be %v at most", what, n, most)
	}
}

// count returns how many events there are of each policy that decides on attempts, of
// those that match.
func (b *bench) count(matches func(*spillway.Event) bool) map[string]int {
	b.mu.Lock()
	defer b.mu.Unlock()
	n := make(map[string]int)
	for i := range b.events {
		if e := &b.events[i]; e.Policy != "retry" && matches(e) {
			n[e.Policy]++
		}
	}
	return n
}

func (b *bench) outcomes(o spillway.Outcome) map[string]int {
	return b.count(func(e *spillway.Event) bool { return e.Outcome == o })
}

// rejections returns the decisions against calls.
func (b *bench) rejections() (all []decision) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, e := range b.events {
		if e.Rejected && e.Mode == b.setup.Mode {
			all = append(all, decision{e.Policy, e.Reason})
		}
	}
	return all
}

// call makes a call. A panic is an error.
func (b *bench) call(ctx context.Context, work func(context.Context) error) (err error) {
	defer recovered(&err)
	return b.Do(ctx, func(ctx context.Context) error {
		b.runs.Add(1)
		return work(ctx)
	})
}

// served makes a call that must succeed.
func (b *bench) served() {
	b.t.Helper()
	ran := b.runs.Load()
	if err := b.call(context.Background(), works); err != nil || b.runs.Load() != ran+1 {
		b.t.Errorf("a call under the limit: %v, and its work has run %d times", err, b.runs.Load()-ran)
	}
}

// rejected makes a call that must be rejected.
func (b *bench) rejected() decision {
	b.t.Helper()
	ran, before := b.runs.Load(), len(b.rejections())
	err := b.call(context.Background(), works)
	if isRejected := b.Rejected; err == nil || isRejected == nil && !errors.Is(err, spillway.ErrRejected) || isRejected != nil && !isRejected(err) {
		b.t.Errorf("a call over the limit: %v, must be a rejection", err)
	}
	if b.runs.Load() != ran {
		b.t.Error("a call that was rejected has run")
	}
	return b.rejection(before)
}

// rejection returns the one decision after so many others, when it is reported.
func (b *bench) rejection(before int) decision {
	b.t.Helper()
	b.await("the event of a rejection", func() bool { return len(b.rejections()) > before })
	all := b.rejections()
	if len(all) != before+1 || all[before].reason == spillway.ReasonNone {
		b.t.Errorf("the rejection of one call is reported as %v, must be one event with a reason", all[before:])
	}
	return all[before]
}

// overload makes calls while others hold all places, and returns the decisions on them.
func (b *bench) overload() (all []decision) {
	b.t.Helper()
	release := b.hold(b.setup.Limit)
	defer release()
	for range 3 {
		all = append(all, b.rejected())
	}
	return all
}

// hold starts calls that run until release is called.
func (b *bench) hold(n int) (release func()) {
	b.t.Helper()
	ran, end := b.runs.Load(), make(chan struct{})
	var all sync.WaitGroup
	for range n {
		all.Go(func() {
			err := b.call(context.Background(), func(context.Context) error {
				<-end
				return nil
			})
			if err != nil {
				b.t.Errorf("a call under the limit: %v", err)
			}
		})
	}
	b.await("calls under the limit", func() bool { return b.runs.Load() == ran+int64(n) })
	if inFlight := b.InFlight(); inFlight < n {
		b.t.Errorf("%d calls run, and InFlight is %d", n, inFlight)
	}
	return sync.OnceFunc(func() {
		close(end)
		all.Wait()
	})
}

func (b *bench) update(limit int) {
	b.t.Helper()
	b.setup.Limit = limit
	if err := b.Update(b.setup); err != nil {
		b.t.Errorf("Update: %v", err)
	}
}

// settled checks that nothing is in flight, and that each policy has reported each run
// of work exactly once.
func (b *bench) settled() {
	b.t.Helper()
	b.await("the end of all calls", func() bool { return b.InFlight() == 0 })
	ran := func() map[string]int {
		return b.count(func(e *spillway.Event) bool {
			return !e.Rejected && e.Outcome != spillway.OutcomeNotStarted || e.Rejected && e.Mode == spillway.ModeObserve
		})
	}
	runs := int(b.runs.Load())
	b.await("the events of all calls", func() bool {
		for _, n := range ran() {
			if n < runs {
				return false
			}
		}
		return len(ran()) > 0 || runs == 0
	})
	for policy, n := range ran() {
		if n > runs+b.withdrawn {
			b.t.Errorf("%s reports %d results of %d calls", policy, n, runs)
		}
	}
}

// await waits until something is so.
func (b *bench) await(what string, isSo func() bool) {
	b.t.Helper()
	for begin := time.Now(); !isSo(); {
		if time.Since(begin) > patience {
			b.t.Fatalf("waited %v for %s: %d in flight, %d runs, events %v", patience, what, b.InFlight(), b.runs.Load(),
				b.count(func(*spillway.Event) bool { return true }))
		}
		time.Sleep(time.Millisecond)
	}
}

func testConcurrent(b *bench) {
	var all sync.WaitGroup
	var running, highest atomic.Int64
	work := func(ctx context.Context) error {
		n := running.Add(1)
		defer running.Add(-1)
		h := highest.Load()
		for n > h && !highest.CompareAndSwap(h, n) {
			h = highest.Load()
		}
		if n%2 == 0 {
			return fails(ctx)
		}
		return nil
	}
	for range 8 {
		all.Go(func() {
			for range 20 {
				_ = b.call(context.Background(), work)
			}
		})
	}
	all.Wait()
	if n := highest.Load(); n > int64(b.setup.Limit) {
		b.t.Errorf("%d calls run at once, must be at most %d", n, b.setup.Limit)
	}
}
