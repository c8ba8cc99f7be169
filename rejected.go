package spillway

import (
	"errors"
	"fmt"
	"strconv"
	"time"
)

// ErrRejected matches every [RejectedError] under errors.Is: the call, or its next
// attempt, was rejected on this side and not sent. Earlier attempts were sent if the
// error of package retry is in the chain, too; it has their number.
var ErrRejected = errors.New("spillway: rejected locally")

// A RejectedError reports that a policy in this process rejected an attempt, so
// that the backend never received it. A rejection by the backend is never a
// RejectedError. It must not be retried, costs nothing from a retry budget, and
// says nothing about the backend.
//
// Policies create their errors once and share them: treat one as read-only.
type RejectedError struct {
	// Policy is the package that rejected the call: "throttle", "inflight".
	Policy string
	// Reason is why, for code and metrics.
	Reason Reason
	// Criticality is the class that was rejected, where the policy knows classes.
	Criticality Criticality
	// Level is what the policy measured when it rejected the call, and Limit the maximum: in
	// flight of max_requests, percent rejected of 100. Limit is zero if the policy has none. A
	// Level may be rounded to two significant digits, so that errors can be shared.
	Level, Limit float64
	// Unmeasured says that the policy measures nothing that it could compare with Limit, such as a token
	// bucket, which does not know the rate of arrivals. Level is then zero.
	Unmeasured bool
	// Unit is what Level and Limit count: "requests in flight".
	Unit string
	// Setting names the limit that the call was rejected for, where a policy has several: of a
	// quota "unlisted_total" or "capacity", which customers share; of [ReasonMaxWait] what limited the
	// wait, such as "deadline" or "max_wait" (the constants of package shed). It is empty for the
	// customer's own limit, and for policies with one limit.
	Setting string
	// Advice says what the reader of the error can do. It is text for people only.
	Advice string
	// RetryAfter is how long the policy expects to continue rejecting. Zero means
	// that it does not know.
	RetryAfter time.Duration
}

// Measured reports whether Level is what the policy measured. It is not for a policy without a Unit, and
// for one that is Unmeasured.
func (e *RejectedError) Measured() bool { return e.Unit != "" && !e.Unmeasured }

// Error returns the policy, the level and the advice.
func (e *RejectedError) Error() string {
	s := "spillway: rejected locally by " + e.Policy
	switch {
	case e.Unit == "":
	case e.Unmeasured:
		s += " above the limit of " + number(e.Limit) + " " + e.Unit
	default:
		s += " at " + number(e.Level)
		if (e.Limit > 0 || e.Level == 0) && e.Reason != ReasonThrottle { // a share, whose limit says nothing
			s += " of " + number(e.Limit)
		}
		s += " " + e.Unit
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
