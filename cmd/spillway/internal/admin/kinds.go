package admin

import (
	"errors"
	"slices"

	"github.com/seed90641741/spillway"
	"github.com/seed90641741/spillway/retry"
)

// A kind is what an event can report: one row of the table of reasons.
type kind struct{ policy, outcome, reason string }

// The policies, in the order in which a request meets them. The last is any other.
var policies = [...]string{"ratelimit", "quota", "shed", "batch", "throttle", "inflight", "retry", "other"}

const batchPolicy, retryPolicy, otherPolicy = 3, 6, len(policies) - 1

// The kinds that each policy has, in this order; then its rejections.
const (
	admitted = iota
	late
	failed
	declined
	left
	plainKinds
)

var plain = [plainKinds]struct{ outcome, reason string }{
	{"admitted", ""}, {"late", "deadline"}, {"failed", "failed"}, {"failed", "overloaded"}, {"abandoned", "left"},
}

// A rejection is a reason to reject: the value that the policy gives, its label in the
// metrics, and its text.
type rejection struct {
	why          spillway.Reason
	reason, text string
}

// The rejections of each policy. The first is that of all reasons that have no row.
var rejections = [len(policies)][]rejection{
	{{spillway.ReasonRateLimit, "rate", "the request rate was above the limit"}},
	{{spillway.ReasonQuota, "quota", "the customer has used up its quota"}},
	{
		{spillway.ReasonNone, "other", "the server was overloaded"},
		{spillway.ReasonQueueFull, "crowded", "the waiting queue was full of requests no less critical"},
		{spillway.ReasonHigherClass, "outranked", "more critical requests were rejected recently"},
		{spillway.ReasonMaxWait, "waited", "the request waited for the maximum time"},
		{spillway.ReasonDeadline, "deadline", "the deadline was closer than the fastest recent response"},
		{spillway.ReasonUtilization, "utilization", "utilization was above the threshold of the class"},
		{spillway.ReasonFairShare, "fair_share", "the caller asked for more than its fair share"},
	},
	{
		{spillway.ReasonQueueFull, "queue_full", "the queue was full"},
		{spillway.ReasonMaxWait, "turn_late", "the request waited for the maximum time"},
	},
	{{spillway.ReasonThrottle, "probability", "the upstream accepts too few of the requests that it receives"}},
	{{spillway.ReasonMaxInFlight, "max_requests", "the maximum number of requests was in flight"}},
	{ // not rejections of requests, but of one more attempt at them
		{spillway.ReasonNone, "other", "rejected"},
		{spillway.ReasonNone, "budget", "failed, and the retry budget did not pay for another attempt"},
		{spillway.ReasonNone, "attempts", "failed, and the maximum number of attempts was made"},
		{spillway.ReasonNone, "retry_after", "failed, and the upstream asked for a longer wait than is allowed"},
		{spillway.ReasonNone, "no_time", "failed, and another attempt would have come too late"},
	},
	{{spillway.ReasonNone, "other", "rejected by another policy"}},
}

// kindCount is how many kinds there are.
const kindCount = 59

// All kinds, and where the kinds of each policy begin.
var kinds, kindsFrom = makeKinds()

func makeKinds() (all [kindCount]kind, from [len(policies)]int) {
	n := 0
	add := func(k kind) {
		all[n] = k
		n++
	}
	for p, policy := range policies {
		from[p] = n
		for _, x := range plain {
			add(kind{policy, x.outcome, x.reason})
		}
		outcome := "refused"
		if p == retryPolicy {
			outcome = "failed"
		}
		for _, x := range rejections[p] {
			add(kind{policy, outcome, x.reason})
		}
	}
	return all, from
}

// words returns what a kind means.
func (k kind) words() string {
	for p, policy := range policies {
		for _, x := range rejections[p] {
			if policy == k.policy && x.reason == k.reason {
				return x.text
			}
		}
	}
	switch k.reason {
	case "deadline":
		return "no answer before the deadline"
	case "failed":
		return "the upstream failed or could not be reached"
	case "overloaded":
		return "the upstream itself had no room"
	case "left":
		return "the client went away, or another gate refused"
	default:
		return "let in, and answered"
	}
}

// policyOf returns the index of a policy.
func policyOf(name string) int {
	switch name {
	case "ratelimit":
		return 0
	case "quota":
		return 1
	case "shed":
		return 2
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

// kindOf returns the index of the kind of an event.
func kindOf(e *spillway.Event) int {
	p := policyOf(e.Policy)
	switch {
	case e.Refused:
		return kindsFrom[p] + plainKinds + reasonOf(p, e.Reason)
	case e.Outcome == spillway.Served:
		return kindsFrom[p] + admitted
	case p == retryPolicy && (e.Outcome == spillway.Failed || e.Outcome == spillway.Overloaded || e.Outcome == spillway.OverQuota):
		if why := gaveUp(e); why > 0 {
			return kindsFrom[p] + plainKinds + why
		}
	}
	return kindsFrom[p] + outcomeOf(e.Outcome)
}

func outcomeOf(o spillway.Outcome) int {
	switch o {
	case spillway.Served:
		return admitted
	case spillway.TimedOut:
		return late
	case spillway.Overloaded, spillway.OverQuota:
		return declined
	case spillway.Abandoned, spillway.NotStarted:
		return left
	default:
		return failed
	}
}

// gaveUp returns the index of the reason why the retry policy made no other attempt, 0
// if it was not asked for one.
func gaveUp(e *spillway.Event) int {
	stopped, ok := errors.AsType[*retry.Error](e.Err)
	if !ok {
		return 0
	}
	switch stopped.Reason {
	case retry.ReasonBudget:
		return 1
	case retry.ReasonAttempts:
		if stopped.Attempts > 1 { // else there were to be none
			return 2
		}
	case retry.ReasonRetryAfter:
		return 3
	case retry.ReasonDeadline:
		return 4
	default:
	}
	return 0
}

// reasonOf returns the index of a reason among the rejections of a policy.
func reasonOf(policy int, why spillway.Reason) int {
	return max(0, slices.IndexFunc(rejections[policy], func(x rejection) bool { return x.why == why }))
}
