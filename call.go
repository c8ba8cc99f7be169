package spillway

import "time"

// Call is what a policy may know about a call before an attempt is made. It is passed by
// value, and kept to 64 bytes for that. The zero Call is an ordinary call to an unnamed
// backend.
type Call struct {
	// Key names the backend, method or route that the policy groups by.
	Key string
	// Customer is the customer that the call is made for. Quotas use it.
	Customer string
	// Deadline is the time after which the answer has no value. Zero means never.
	Deadline time.Time
	// Attempt is 0 for the first attempt, 1 for its first retry, and so on.
	Attempt int16
	// Level and Progress order the calls of a class: first the calls of tasks with more
	// progress, then those with the higher level. Zero for calls that belong to no known task.
	Level    Level
	Progress Progress
	// Criticality says how much the call matters.
	Criticality Criticality
	// Kind says whether the call reads or writes.
	Kind Kind
	// Idempotent says that doing the call twice has the effect of doing it
	// once. A call whose failure may or may not have been processed is retried
	// only if this is set.
	Idempotent bool
	// LongPoll says that the call waits at the server for work to arrive, so
	// that a failed one is best repeated late rather than at once.
	LongPoll bool
}

// Kind says whether a call reads or writes.
type Kind uint8

// The kinds of a Call.
const (
	KindUnknown Kind = iota // a command of which nothing is known
	KindRead
	KindWrite
)

// Outcome says what a finished call tells about the load of its backend.
type Outcome uint8

// The results of a call. The zero Outcome is not valid.
const (
	// OutcomeServed means that the backend did the work.
	OutcomeServed Outcome = iota + 1
	// OutcomeFailed means that the backend answered, but not for lack of capacity.
	OutcomeFailed
	// OutcomeOverloaded means that the backend, or something on the way to it,
	// rejected the call before doing any of its work.
	OutcomeOverloaded
	// OutcomeTimedOut means that no answer came before the deadline.
	OutcomeTimedOut
	// OutcomeAbandoned means that the caller left: nothing is learnt of the backend.
	OutcomeAbandoned
	// OutcomeOverQuota means that the backend rejected this customer, whatever its load:
	// nothing is learnt of the load of the backend.
	OutcomeOverQuota
	// OutcomeNotStarted means that a gate admitted the call and nothing was done for it: a later
	// gate of this process rejected it, or its caller left before it was sent or served.
	// Nothing is learnt of the backend, and a gate gives back what it took for the call.
	OutcomeNotStarted
	outcomes
)

// Outcomes is how many values an [Outcome] can have, the invalid 0 included, for tables.
const Outcomes = int(outcomes)

var outcomeNames = [Outcomes]string{"invalid", "served", "failed", "overloaded", "timed out", "abandoned", "over quota", "not started"}

// String returns a lower-case word for o.
func (o Outcome) String() string {
	if int(o) >= len(outcomeNames) {
		o = 0
	}
	return outcomeNames[o]
}

// Informs reports whether o says anything about the load of the backend. A throttle
// ignores the outcomes that do not.
func (o Outcome) Informs() bool {
	return o != OutcomeAbandoned && o != OutcomeOverQuota && o != OutcomeNotStarted
}

// Accepted reports whether the backend took the call on: whether it had the
// capacity for it, however the call then ended.
func (o Outcome) Accepted() bool { return o == OutcomeServed || o == OutcomeFailed }
