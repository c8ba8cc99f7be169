package spillway

import (
	"errors"
	"fmt"
	"strconv"
	"time"
)

// ErrRejected matches every [RejectedError] under errors.Is: the call was
// refused on this side and never sent.
var ErrRejected = errors.New("spillway: refused locally")

// A RejectedError is the one refusal that Spillway makes. It reports that a
// policy in this process refused an attempt, so that the backend never saw it;
// a refusal by the backend is never a RejectedError. It must not be retried,
// costs nothing from a retry budget, and teaches no policy about the backend.
//
// Refusals are made ahead of time and shared: treat one as read-only.
type RejectedError struct {
	// Policy is the package that refused: "throttle", "inflight".
	Policy string
	// Criticality is the class that was refused, where the policy knows classes.
	Criticality Criticality
	// Level is how full the policy was when it refused, and Limit what it may
	// reach: in flight of max_requests, share refused of 1. Both are zero where
	// the policy has no such measure.
	Level, Limit float64
	// Unit is what Level and Limit count: "requests in flight".
	Unit string
	// Advice says what whoever reads the error can do.
	Advice string
	// RetryAfter is how long the policy expects to go on refusing. Zero means
	// that it does not know.
	RetryAfter time.Duration
}

// Error says who refused, at which level, and what to do.
func (e *RejectedError) Error() string {
	s := "spillway: refused locally by " + e.Policy
	if e.Unit != "" {
		s += " at " + number(e.Level) + " of " + number(e.Limit) + " " + e.Unit
	}
	if e.RetryAfter > 0 {
		s += fmt.Sprintf(", for about %v more", e.RetryAfter)
	}
	if e.Advice != "" {
		s += ": " + e.Advice
	}
	return s
}

func number(f float64) string { return strconv.FormatFloat(f, 'f', -1, 64) }

// Is makes errors.Is(err, ErrRejected) hold.
func (e *RejectedError) Is(target error) bool { return target == ErrRejected }

// Unsent makes package fault see that the attempt never left this process: it
// is not retried, and nothing is charged for it.
func (e *RejectedError) Unsent() bool { return true }
