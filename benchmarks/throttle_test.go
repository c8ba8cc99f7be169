package benchmarks

import (
	"testing"
	"time"

	"github.com/failsafe-go/failsafe-go/adaptivethrottler"
	"github.com/go-kratos/aegis/circuitbreaker"
	"github.com/go-kratos/aegis/circuitbreaker/sre"

	"github.com/seed90641741/spillway"
	"github.com/seed90641741/spillway/throttle"
)

// A throttler makes a call to a backend that would serve it, or not, and reports
// whether it was sent.
type throttler interface{ call(served bool) bool }

// throttleWindow is the default of ours.
const throttleWindow = 30 * time.Second

// throttlers are told the same: send up to two for each that is accepted (K = 2,
// a rate of success of a half), in the same window, after 10 calls at least.
var throttlers = []impl[throttler]{
	{"spillway", func(tb testing.TB) throttler {
		return ourThrottle{newThrottle(tb), time.Now}
	}},
	{"spillway-given-time", func(tb testing.TB) throttler { return ourThrottle{newThrottle(tb), givenTime()} }},
	{"failsafe", func(testing.TB) throttler {
		return failsafeThrottle{adaptivethrottler.NewBuilder[any]().
			WithFailureRateThreshold(.5, 10, throttleWindow).
			WithMaxRejectionRate(1).
			Build()}
	}},
	{"aegis", func(testing.TB) throttler {
		return aegisThrottle{sre.NewBreaker(sre.WithSuccess(.5), sre.WithRequest(10), sre.WithWindow(throttleWindow))}
	}},
}

func newThrottle(tb testing.TB) *throttle.Throttle {
	tb.Helper()
	return must(throttle.New(throttle.Config{K: 2, Window: throttleWindow, MinRequests: 10}))(tb)
}

type ourThrottle struct {
	*throttle.Throttle

	now func() time.Time
}

func (t ourThrottle) call(served bool) bool {
	now := t.now()
	ticket, err := t.Admit(now, spillway.Call{})
	if err != nil {
		return false
	}
	outcome := spillway.OutcomeOverloaded
	if served {
		outcome = spillway.OutcomeServed
	}
	ticket.Settle(now, outcome)
	return true
}

type failsafeThrottle struct {
	adaptivethrottler.AdaptiveThrottler[any]
}

func (t failsafeThrottle) call(served bool) bool {
	if !t.TryAcquirePermit() {
		return false
	}
	if served {
		t.RecordSuccess()
	} else {
		t.RecordFailure()
	}
	return true
}

type aegisThrottle struct{ circuitbreaker.CircuitBreaker }

func (t aegisThrottle) call(served bool) bool {
	if t.Allow() != nil {
		t.MarkFailed() // as its middleware does, else the equation does not hold
		return false
	}
	if served {
		t.MarkSuccess()
	} else {
		t.MarkFailed()
	}
	return true
}

func BenchmarkThrottleHealthy(b *testing.B) {
	bench(b, throttlers, func(b *testing.B, t throttler) {
		for b.Loop() {
			t.call(true)
		}
	})
}

func BenchmarkThrottleHalfFailing(b *testing.B) {
	bench(b, throttlers, func(b *testing.B, t throttler) {
		for i := 0; b.Loop(); i++ {
			t.call(i%2 == 0)
		}
	})
}

func BenchmarkThrottleRejected(b *testing.B) {
	bench(b, throttlers, func(b *testing.B, t throttler) {
		sent(t, never)
		for b.Loop() {
			t.call(false)
		}
	})
}

// TestThrottlers expects calls to be sent to a backend that serves all or half of
// them, and not to one that is down.
func TestThrottlers(t *testing.T) {
	each(t, "healthy", throttlers, func(t *testing.T, th throttler) {
		if n := sent(th, always); n != 1000 {
			t.Errorf("sent %d of 1000 calls, want all", n)
		}
	})
	each(t, "half failing", throttlers, func(t *testing.T, th throttler) {
		if n := sent(th, func(i int) bool { return i%2 == 0 }); n < 500 {
			t.Errorf("sent %d of 1000 calls, want 500 or more", n)
		}
	})
	each(t, "down", throttlers, func(t *testing.T, th throttler) {
		sent(th, never)
		if n := sent(th, never); n > 50 {
			t.Errorf("sent %d of 1000 calls, want at most 50", n)
		}
	})
}

func always(int) bool { return true }
func never(int) bool  { return false }

// sent makes 1000 calls and returns how many were sent.
func sent(t throttler, served func(i int) bool) (sent int) {
	for i := range 1000 {
		if t.call(served(i)) {
			sent++
		}
	}
	return sent
}
