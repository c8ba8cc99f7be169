package spillgrpc

import (
	"context"
	"sync/atomic"
	"time"

	"google.golang.org/grpc/tap"

	"github.com/seed90641741/spillway/internal/claims"
)

// lookOn is the number of calls that the tap examines after the last rejection for overload.
// Otherwise it examines none.
const lookOn = 1000

// tapped is the key under which the tap leaves a rejection for the interceptors.
type tapped struct{}

// drawn is the key under which the tap leaves the level that a call has passed with. A second draw would have it pass twice what
// others pass once.
type drawn struct{}

// unrecovered is the key under which the tap leaves what code of the user has panicked with.
type unrecovered struct{}

// goOn continues what has panicked in the tap, where an interceptor in front can recover.
func (s *Server) goOn(ctx context.Context) {
	if !s.panicked.Load() {
		return
	}
	if p := ctx.Value(unrecovered{}); p != nil {
		panic(p) //nolint:forbidigo // it goes on where the caller expects it
	}
}

// Tap is a [tap.ServerInHandle]: it rejects a call when only its metadata has arrived, before
// there is a goroutine for it and before its message is read, which halves the cost of a
// rejection. It begins when an interceptor has rejected a call for overload, and ends a
// thousand calls after the last such rejection. It never waits, and asks all gates that the
// interceptors ask.
//
// An answer of a tap has no trailer. So it has the retry delay in its RetryInfo only, and
// cannot say "don't retry" to clients that do not know Spillway. Such rejections are left to
// the interceptors, as are rejections that would leave too many timers behind: grpc does not
// stop the timer of a call that a tap has rejected. If code of the user panics, such as Classify, the panic goes on in the
// interceptor, in front of which another one can recover.
func (s *Server) Tap(ctx context.Context, info *tap.Info) (out context.Context, err error) {
	defer func() {
		if p := recover(); p != nil {
			s.panicked.Store(true)
			out, err = context.WithValue(ctx, unrecovered{}, p), nil
		}
	}()
	return s.tap(ctx, info)
}

func (s *Server) tap(ctx context.Context, info *tap.Info) (context.Context, error) {
	looks := s.looks.Load() > 0
	if !looks && !claims.HasBaggage(info.Header[keyBaggage]) || s.exempt(info.FullMethodName) {
		return ctx, nil
	}
	now := s.clock.Now()
	var a arrival
	s.judge(ctx, now, info.FullMethodName, &a)
	a.Said = claims.Fields{Baggage: a.Said.Baggage} // the interceptors judge by the others again, and restate them
	ctx = restate(ctx, &a)                          // before stats handlers read the baggage
	if !looks {
		return ctx, nil
	}
	known := a.Call.Level.Valid()
	r := s.ingress.RejectAt(ctx, now, &a.Call, &a.Caller)
	if !r.Rejected() {
		s.looks.Add(-1)
		if known {
			return ctx, nil
		}
		return context.WithValue(ctx, drawn{}, a.Call.Level), nil
	}
	s.looks.Store(lookOn)
	if r.DontRetry || !s.timers.leave(ctx, now) {
		s.handed.Store(true)
		return context.WithValue(ctx, tapped{}, r), nil
	}
	return ctx, s.answerTo(&r).status.Err()
}

// timers bounds how many timers are left behind at a time, some 280 bytes each.
// Clients choose for how long. Each counts for its own time, a second at least,
// and the sum may grow by maxTimers seconds in each second, with as much at once.
// So there are never more than twice maxTimers.
type timers struct {
	paid atomic.Int64 // up to when, in nanoseconds since the epoch
}

const maxTimers = 1 << 15

// leave reports whether the timer of a call with ctx may be left behind.
func (t *timers) leave(ctx context.Context, now time.Time) bool {
	deadline, ok := ctx.Deadline()
	if !ok {
		return true // there is none
	}
	price := int64(max(deadline.Sub(now), time.Second)) / maxTimers
	for {
		paid, at := t.paid.Load(), now.UnixNano()
		from := max(paid, at)
		if paid-at > int64(time.Second) { // the clock has stepped back: so much is never paid ahead
			from = at
		}
		next := from + price
		if next-at > int64(time.Second) {
			return false
		}
		if t.paid.CompareAndSwap(paid, next) {
			return true
		}
	}
}

var _ tap.ServerInHandle = (*Server)(nil).Tap
