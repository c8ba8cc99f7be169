package spilltest

import (
	"context"
	"errors"
	"testing"

	"github.com/seed90641741/spillway"
)

// A Setup is the configuration of a tested stack. All else has its default.
type Setup struct {
	// Limit is how many calls may be in flight: MaxInFlight of package ingress, MaxRequests
	// of package egress.
	Limit int
	// Mode is that of this limit.
	Mode spillway.Mode
	// Observer is that of the stack.
	Observer spillway.Observer
}

// A Stack is what [TestStack] tests. Its functions are called by several goroutines at once.
type Stack struct {
	// Do makes a call, and returns when it has ended. The call runs work exactly once, unless
	// it is rejected: as the handler of a server, or as the backend of a client. The
	// context of work ends if ctx does. Do returns an error if the call was rejected and if
	// work has failed. Do may panic if work does.
	Do func(ctx context.Context, work func(context.Context) error) error
	// InFlight returns how many calls are in flight.
	InFlight func() int
	// Update changes the configuration while calls are in flight. Nil skips its clause.
	Update func(Setup) error
	// Rejected reports whether the caller can tell from an error of Do that the call was
	// rejected. Nil means that the error matches [spillway.ErrRejected].
	Rejected func(error) bool
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
		{"cancel", testCancel},
		{"cancel while it waits", testCancelWaiting},
		{"limit", testLimit},
		{"update in flight", testUpdate},
		{"observe equals enforce", testObserve},
		{"concurrent calls", testConcurrent},
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
		if err := b.call(context.Background(), func(context.Context) error { panic(errWork) }); err == nil {
			b.t.Error("a call whose work panics returns no error")
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

func testObserve(b *bench) {
	enforced := b.overload()
	b.settled()
	observing := b.reopen(spillway.ModeObserve)
	observed := observing.overload()
	observing.settled()
	for i, want := range enforced {
		if got := observed[i]; got != want {
			b.t.Errorf("call %d over the limit: observe decides %v, enforce %v", i, got, want)
		}
	}
}
