package spillway

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// Mode says whether a gate enforces its decisions.
type Mode uint8

// The modes of a gate. The zero Mode is ModeEnforce.
const (
	// ModeEnforce decides, reports, and rejects.
	ModeEnforce Mode = iota
	// ModeObserve decides and reports, and admits every call.
	ModeObserve
	// ModeOff disables the gate.
	ModeOff
)

var modeNames = [...]string{"enforce", "observe", "off"}

// String returns the text form: enforce, observe or off.
func (m Mode) String() string {
	if int(m) >= len(modeNames) {
		return fmt.Sprintf("Mode(%d)", uint8(m))
	}
	return modeNames[m]
}

// MarshalText implements [encoding.TextMarshaler].
func (m Mode) MarshalText() ([]byte, error) {
	if int(m) >= len(modeNames) {
		return nil, fmt.Errorf("spillway: %v has no text form", m)
	}
	return []byte(m.String()), nil
}

// UnmarshalText implements [encoding.TextUnmarshaler].
func (m *Mode) UnmarshalText(text []byte) error {
	for i, name := range modeNames {
		if string(text) == name {
			*m = Mode(i)
			return nil
		}
	}
	return fmt.Errorf("spillway: mode %.32q is not one of enforce, observe, off", text)
}

// An Event reports the decision of one policy on one attempt, or the result of
// one call at the retry policy. It is a flat value that the receiver may keep.
type Event struct {
	// Time is the clock reading that the decision was made with.
	Time time.Time
	// Latency is how long the attempt, or the whole call at the retry policy,
	// took; zero for a rejection.
	Latency time.Duration
	// Context is that of the call: it has the active span and the request id. It is nil
	// where the policies run without one, as in a simulator. A receiver that keeps the Event
	// sets it to nil, so that the request is not kept too.
	Context context.Context //nolint:containedctx // the Event is an argument
	// Call is the attempt that was decided on.
	Call Call
	// Policy is the package that decided: "throttle", "inflight", "retry". Hedges are
	// reported by the policy "hedge"; they are no decision on an attempt.
	Policy string
	// Err is the rejection, the error of the attempt, or the reason why the call
	// was not retried any further. Nil after success.
	Err error
	// Level and Limit are as in the [RejectedError], in its Unit. Both are zero
	// where the policy has no such measure, and where nothing was rejected. Level is zero
	// where the policy is Unmeasured.
	Level, Limit float64
	// Outcome is the result of an admitted attempt. It is OutcomeNotStarted where an
	// attempt was admitted here and rejected further on. Zero for a rejection.
	Outcome Outcome
	// Mode is that of the gate. A rejection in the mode ModeObserve is one that would
	// have been made; the attempt went on, and there is no other event of it
	// from this policy.
	Mode Mode
	// Rejected says that the policy rejected, or in the mode ModeObserve would have.
	Rejected bool
	// Reason is why. It is [ReasonNone] where nothing was rejected.
	Reason Reason
	// Unmeasured is as in the [RejectedError]: a rate limit has a Limit, and no Level.
	Unmeasured bool
}

// Rejection returns the Event of a rejection with the error err: it sets Rejected and
// Err, and, where err is a [RejectedError], its Reason, Level, Limit and Unmeasured. The caller adds
// Time, Call, Policy and Mode.
func Rejection(err error) Event {
	e := Event{Rejected: true, Err: err}
	if r, ok := errors.AsType[*RejectedError](err); ok {
		e.Reason, e.Level, e.Limit, e.Unmeasured = r.Reason, r.Level, r.Limit, r.Unmeasured
	}
	return e
}

// An Observer receives the decisions of the policies. Observe is called on the path
// of the call, by many goroutines at once, and no lock is held: it must
// be safe for concurrent use and quick, and must not call back into the stack
// that called it. For each attempt and policy that was asked it is called
// exactly once. Levels (limits, probabilities, budgets) are not sent; they are
// pulled with the policies' Stats methods.
type Observer interface {
	Observe(Event)
}

// ObserverFunc is a func that is an Observer.
type ObserverFunc func(Event)

// Observe calls f.
func (f ObserverFunc) Observe(e Event) { f(e) }
