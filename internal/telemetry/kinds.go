package telemetry

import (
	"errors"

	"github.com/seed90641741/spillway"
	"github.com/seed90641741/spillway/retry"
)

// Policies are the values of the label policy, in the order in which a request meets the
// policies. The last is any other policy.
var Policies = [...]string{"ratelimit", "quota", "shed", "batch", "throttle", "inflight", "retry", "other"}

const (
	quotaPolicy = 1
	shedPolicy  = 2
	retryPolicy = 6
	otherPolicy = len(Policies) - 1
)

// A Code is the result of a decision, without the policy.
type Code uint8

// The codes. Those from Rejected on are a rejection for a [spillway.Reason]; for the
// policy retry, they say why a failed call was not retried.
const (
	Admitted  Code = iota // and served in time; by ratelimit and quota, whatever the result
	Late                  // the deadline passed first
	Failed                // the backend failed or could not be reached
	Declined              // the backend was overloaded
	OverQuota             // the backend says that the customer has used up its quota
	Gone                  // the client went away
	Elsewhere             // another policy rejected the request
	Rejected
)

// codes is how many codes exist.
const codes = Rejected + Code(spillway.ReasonFairShare) + 1

// plain are the outcomes and reasons of the codes before Rejected.
var plain = [Rejected]struct{ outcome, reason string }{
	{"admitted", ""},
	{"late", "deadline"},
	{"failed", "failed"},
	{"failed", "overloaded"},
	{"failed", "over_quota"},
	{"abandoned", "client_gone"},
	{"abandoned", "other_policy"},
}

// stops are why failed calls were not retried, after Rejected.
var stops = [...]string{"other", "budget", "attempts", "retry_after", "no_time"}

// reasons are the usual reasons of each policy.
var reasons = [len(Policies)][]spillway.Reason{
	{spillway.ReasonRateLimit},
	{spillway.ReasonQuota},
	{
		spillway.ReasonQueueFull, spillway.ReasonHigherClass, spillway.ReasonMaxWait,
		spillway.ReasonDeadline, spillway.ReasonUtilization, spillway.ReasonFairShare,
	},
	{spillway.ReasonQueueFull, spillway.ReasonMaxWait},
	{spillway.ReasonThrottle},
	{spillway.ReasonMaxInFlight},
	{}, {},
}

// ReasonsOf returns the usual reasons of a policy.
func ReasonsOf(policy string) []spillway.Reason { return reasons[policyOf(policy)] }

// A Kind is a policy and a code: one combination of labels.
type Kind uint8

// Kinds is how many kinds exist.
const Kinds = len(Policies) * int(codes)

// KindOf returns the kind of an event.
func KindOf(e *spillway.Event) Kind {
	p := policyOf(e.Policy)
	return Kind(p*int(codes)) + Kind(codeOf(e, p))
}

// Code returns the code of a kind.
func (k Kind) Code() Code { return Code(k) % codes }

// Policy returns the label policy.
func (k Kind) Policy() string { return Policies[int(k)/int(codes)] }

// Outcome returns the label outcome.
func (k Kind) Outcome() string {
	switch c := k.Code(); {
	case c < Rejected:
		return plain[c].outcome
	case int(k)/int(codes) == retryPolicy:
		return "failed"
	default:
		return "rejected"
	}
}

// Reason returns the label reason. It is empty for calls that were served.
func (k Kind) Reason() string {
	c := k.Code()
	if c < Rejected {
		return plain[c].reason
	}
	c -= Rejected
	switch {
	case int(k)/int(codes) != retryPolicy:
		return ReasonLabel(spillway.Reason(c))
	case int(c) < len(stops):
		return stops[c]
	default:
		return "other"
	}
}

// ReasonLabel returns the label of a reason.
func ReasonLabel(r spillway.Reason) string {
	if r == spillway.ReasonNone || Rejected+Code(r) >= codes {
		return "other"
	}
	return r.String()
}

// policyOf returns the index of a policy.
func policyOf(name string) int {
	switch name {
	case "ratelimit":
		return 0
	case "quota":
		return quotaPolicy
	case "shed":
		return shedPolicy
	case "batch":
		return 3
	case "throttle":
		return 4
	case "inflight":
		return 5
	case "retry":
		return retryPolicy
	default:
		return otherPolicy
	}
}

func codeOf(e *spillway.Event, policy int) Code {
	if e.Rejected {
		if Rejected+Code(e.Reason) >= codes || policy == retryPolicy {
			return Rejected
		}
		return Rejected + Code(e.Reason)
	}
	if policy <= quotaPolicy && e.Outcome != spillway.OutcomeAbandoned {
		return Admitted // the result of the request is that of the shedder, and need not be counted again
	}
	switch e.Outcome {
	case spillway.OutcomeServed:
		return Admitted
	case spillway.OutcomeTimedOut:
		return Late
	case spillway.OutcomeNotStarted:
		return Elsewhere
	case spillway.OutcomeAbandoned:
		if e.Err != nil && errors.Is(e.Err, spillway.ErrRejected) {
			return Elsewhere
		}
		return Gone
	case spillway.OutcomeOverloaded:
		return stopped(e, policy, Declined)
	case spillway.OutcomeOverQuota:
		return stopped(e, policy, OverQuota)
	default:
		return stopped(e, policy, Failed)
	}
}

// stopped returns why a failed call was not retried, or the code of the failure if no
// retry was to be made.
func stopped(e *spillway.Event, policy int, failure Code) Code {
	if policy != retryPolicy {
		return failure
	}
	s, ok := errors.AsType[*retry.Error](e.Err)
	switch {
	case !ok:
		return failure
	case s.Reason == retry.ReasonBudget:
		return Rejected + 1
	case s.Reason == retry.ReasonAttempts && s.Attempts > 1: // else no retry was configured
		return Rejected + 2
	case s.Reason == retry.ReasonRetryAfter:
		return Rejected + 3
	case s.Reason == retry.ReasonDeadline:
		return Rejected + 4
	default:
		return failure
	}
}
