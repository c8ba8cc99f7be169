package spilltest

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"

	"github.com/seed90641741/spillway"
	"github.com/seed90641741/spillway/internal/race"
)

// A Setup is the configuration of a tested stack. All else has its default.
type Setup struct {
	// Limit is how many calls may be in flight: MaxInFlight of package ingress, MaxInFlight
	// of package egress.
	Limit int
	// Mode is that of this limit.
	Mode spillway.Mode
	// Observer is that of the stack.
	Observer spillway.Observer
}

// A Do makes a call, and returns when it has ended. Each attempt runs work once, unless it is
// rejected: as the handler of a server, or as the backend of a client. The context of work ends
// if ctx does. A Do returns an error if the call was rejected and if work has failed. If work
// panics, so does Do, unless Stack.Recovers is set.
type Do func(ctx context.Context, work func(context.Context) error) error

// A Stack is what [TestStack] tests. Its functions are called by several goroutines at once.
type Stack struct {
	// Do makes a call.
	Do Do
	// InFlight returns how many calls are in flight.
	InFlight func() int
	// Update changes the configuration while calls are in flight. Nil skips its clause.
	Update func(Setup) error
	// Rejected reports whether the caller can tell from an error of Do that the call was
	// rejected. Nil means that the error matches [spillway.ErrRejected].
	Rejected func(error) bool
	// Recovers says that Do returns an error if work panics.
	Recovers bool
	// Bare is Do without the tested code, to compare allocations with. Nil means that work is
	// called and nothing else.
	Bare Do
	// Allocations is how many allocations Do may make more than Bare: for a call that is
	// served, and for one that is rejected. A negative number skips that part, for code that
	// allocates in other goroutines, too.
	Allocations struct{ Served, Rejected float64 }
}

// TestStack tests a stack of policies, or an adapter on top of one. open returns a new one
// each time, and closes it with t.Cleanup. The calls of a Stack have no deadline and are
// not idempotent, so that none is retried.
func TestStack(t *testing.T, open func(t *testing.T, s Setup) Stack) {
	for _, clause := range []struct {
		name string
		test func(b *bench)
	}{
		{"each call is settled once", testSettled},
		{"panic", testPanic},
		{"panic of the observer", testObserverPanic},
		{"cancel", testCancel},
		{"cancel while it waits", testCancelWaiting},
		{"limit", testLimit},
		{"update in flight", testUpdate},
		{"observe equals enforce", testObserve},
		{"concurrent calls", testConcurrent},
		{"no allocations", testStackAllocations},
	} {
		t.Run(clause.name, func(t *testing.T) {
			b := newBench(t, open)
			clause.test(b)
			b.settled()
		})
	}
}

var errWork = errors.New("spilltest: the work has failed")

func works(context.Context) error { return nil }

func fails(context.Context) error { return errWork }

func panics(context.Context) error { panic(errWork) }

// panicked is the error of a call that has panicked.
type panicked struct{ value any }

func (p panicked) Error() string { return fmt.Sprintf("spilltest: panic: %v", p.value) }

// recovered turns a panic into an error. Its caller defers it.
func recovered(err *error) {
	if p := recover(); p != nil {
		*err = panicked{p}
	}
}

func testSettled(b *bench) {
	for range 5 {
		b.served()
		if err := b.call(context.Background(), fails); err == nil {
			b.t.Error("a call whose work fails returns no error")
		}
	}
	b.settled()
	for policy, n := range b.outcomes(spillway.OutcomeServed) {
		if n != 5 {
			b.t.Errorf("%s reports %d of 10 calls as served, must be 5", policy, n)
		}
	}
}

func testPanic(b *bench) {
	for range 3 {
		if err := b.call(context.Background(), panics); err == nil || errors.As(err, new(panicked)) == b.Recovers {
			b.t.Errorf("a call whose work panics ends with %v, Recovers is %v", err, b.Recovers)
		}
	}
	b.settled()
	for policy, n := range b.outcomes(spillway.OutcomeServed) {
		b.t.Errorf("%s reports %d calls as served whose work has panicked", policy, n)
	}
	b.served()
}

func testCancel(b *bench) {
	for range 3 {
		ctx, cancel := context.WithCancel(context.Background())
		err := b.call(ctx, func(ctx context.Context) error {
			cancel()
			<-ctx.Done()
			return ctx.Err()
		})
		if err == nil {
			b.t.Error("a call that is canceled while it runs returns no error")
		}
	}
	b.settled()
	b.served()
}

// testCancelWaiting cancels a call while others hold all places. A stack may have a queue
// for it, or reject it at once.
func testCancelWaiting(b *bench) {
	release := b.hold(b.setup.Limit)
	ran := b.runs.Load()
	ctx, cancel := context.WithCancel(context.Background())
	result := make(chan error)
	go func() { result <- b.call(ctx, works) }()
	cancel()
	if err := <-result; err == nil {
		b.t.Error("a call that is canceled before it runs returns no error")
	}
	if b.runs.Load() != ran {
		b.t.Error("a call that is canceled before it runs, runs")
	}
	b.withdrawn = 1
	release()
}

func testLimit(b *bench) {
	release := b.hold(b.setup.Limit)
	for range 3 {
		b.rejected()
	}
	release()
	b.served()
}

func testUpdate(b *bench) {
	if b.Update == nil {
		b.t.Skip("the stack has no Update")
	}
	release := b.hold(b.setup.Limit)
	b.update(1)
	b.rejected()
	release()
	b.settled()
	first := b.hold(1)
	b.rejected()
	b.update(3)
	second := b.hold(2)
	b.rejected()
	second()
	first()
	b.settled()
	b.served()
}

// testObserve: a call that is rejected after a wait is served in the mode observe, where no call waits.
func testObserve(b *bench) {
	enforced := b.overload()
	b.settled()
	observing := b.reopen(spillway.ModeObserve)
	release := observing.hold(b.setup.Limit)
	defer release()
	for i, want := range enforced {
		before := len(observing.rejections())
		observing.served()
		if want.reason == spillway.ReasonMaxWait {
			continue
		}
		if got := observing.rejection(before); got != want {
			b.t.Errorf("call %d over the limit: observe decides %v, enforce %v", i, got, want)
		}
	}
	release()
	observing.settled()
}

// testStackAllocations counts in a process whose other goroutines wait. Its second part takes
// seconds, as a server has each call wait before it rejects it.
func testStackAllocations(b *bench) {
	if race.Enabled {
		b.t.Skip("the race detector allocates")
	}
	bare := 0.0
	if b.Bare != nil {
		bare = b.allocations(b.Bare)
		b.runs.Store(0)
	}
	b.allocates("served", b.allocations(b.Do)-bare, b.Allocations.Served)
	if b.Allocations.Rejected < 0 || testing.Short() {
		return
	}
	release := b.hold(b.setup.Limit)
	var many sync.WaitGroup
	for range 100 { // so that the policies have made all that they keep
		many.Go(func() { _ = b.Do(context.Background(), works) })
	}
	many.Wait()
	b.allocates("rejected", b.allocations(b.Do)-bare, b.Allocations.Rejected)
	release()
}
