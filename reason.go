package spillway

import "fmt"

// Reason says why a policy rejected a call. Metrics and code use the Reason, people read
// the text of the [RejectedError]. The zero value is [ReasonNone].
type Reason uint8

// The reasons. Each is used by the policies that its comment names.
const (
	// ReasonNone: no call was rejected, or the policy gives no reason.
	ReasonNone Reason = iota
	// ReasonRateLimit: calls arrive at a higher rate than the limit. Package ratelimit.
	ReasonRateLimit
	// ReasonQuota: the customer has used up its quota. Package quota.
	ReasonQuota
	// ReasonThrottle: the backend accepts too few of the calls that it receives.
	// Package throttle.
	ReasonThrottle
	// ReasonMaxInFlight: the maximum number of calls is in flight, and none may wait.
	// Packages inflight and concurrency.
	ReasonMaxInFlight
	// ReasonQueueFull: the waiting queue is full of calls that are no less critical.
	// Package shed and batch clusters of the proxy, as ReasonMaxWait.
	ReasonQueueFull
	// ReasonMaxWait: the call has waited for the maximum time.
	ReasonMaxWait
	// ReasonDeadline: the deadline is too close. Packages shed and ingress.
	ReasonDeadline
	// ReasonHigherClass: calls of a higher criticality were rejected recently. Package
	// shed, as the other two.
	ReasonHigherClass
	// ReasonUtilization: utilization is above the threshold of the criticality.
	ReasonUtilization
	// ReasonFairShare: the caller asks for more than its fair share.
	ReasonFairShare
)

var reasonNames = [...]string{
	"none", "rate_limit", "quota", "throttle", "max_in_flight", "queue_full", "max_wait",
	"deadline", "higher_class", "utilization", "fair_share",
}

// String returns the text form: the name of the constant in snake case, such as
// queue_full.
func (r Reason) String() string {
	if int(r) >= len(reasonNames) {
		return fmt.Sprintf("Reason(%d)", uint8(r))
	}
	return reasonNames[r]
}

// MarshalText implements [encoding.TextMarshaler].
func (r Reason) MarshalText() ([]byte, error) {
	if int(r) >= len(reasonNames) {
		return nil, fmt.Errorf("spillway: %v has no text form", r)
	}
	return []byte(r.String()), nil
}
