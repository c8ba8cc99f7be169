package admin

import (
	"errors"

	"github.com/seed90641741/spillway"
	"github.com/seed90641741/spillway/retry"
)

// A kind is what an event can say: one line of the table of reasons.
type kind struct{ policy, outcome, reason string }

// The policies, in the order in which a request meets them. The last is any other.
var policies = [...]string{"ratelimit", "quota", "shed", "batch", "throttle", "inflight", "retry", "other"}

const batchPolicy, retryPolicy, otherPolicy = 3, 6, len(policies) - 1

// The kinds that each policy has, in this order; then its refusals.
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

// A refusal is a reason to refuse: its name for machines, and in words.
type refusal struct{ reason, words string }

// The refusals of each policy; the first is any that is not known by its advice.
var refusals = [len(policies)][]refusal{
	{{"rate", "more came than the rate limit lets in"}},
	{{"quota", "the customer has used up its quota"}},
	{
		{"other", "there was no room"},
		{"crowded", "the waiting queue was full of requests no less critical"},
		{"outranked", "more critical requests were refused of late"},
		{"waited", "the request waited as long as it may"},
		{"deadline", "the deadline was closer than the fastest recent response"},
		{"utilization", "utilization was above the threshold of the class"},
		{"fair_share", "the caller asked for more than its fair share"},
	},
	{
		{"queue_full", "the queue was full"},
		{"turn_late", "the turn did not come in time"},
	},
	{{"probability", "the upstream accepts too few of what is sent"}},
	{{"max_requests", "as many were in flight as may be"}},
	{ // not refusals of requests, but of one more attempt at them
		{"other", "refused"},
		{"budget", "failed, and the retry budget did not pay for another attempt"},
		{"attempts", "failed as often as may be tried"},
		{"retry_after", "failed, and the upstream asked for a longer wait than is allowed"},
		{"no_time", "failed, and another attempt would have come too late"},
	},
	{{"other", "refused by another policy"}},
}

// kindCount is how many kinds there are.
const kindCount = 59

// The kinds there are, and where those of each policy begin.
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
		for _, x := range refusals[p] {
			add(kind{policy, outcome, x.reason})
		}
	}
	return all, from
}

// words says what a kind means.
func (k kind) words() string {
	for p, policy := range policies {
		for _, x := range refusals[p] {
			if policy == k.policy && x.reason == k.reason {
				return x.words
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
		return kindsFrom[p] + plainKinds + reasonOf(p, e.Err)
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
	case spillway.Abandoned:
		return left
	default:
		return failed
	}
}

// gaveUp returns which of its refusals the retry policy made of another attempt, 0
// if nobody asked for one.
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

// reasonOf returns the index of the refusal of a policy that an error is.
func reasonOf(policy int, err error) int {
	if policies[policy] != "shed" && policies[policy] != "batch" {
		return 0
	}
	r, ok := errors.AsType[*spillway.RejectedError](err)
	if !ok {
		return 0
	}
	switch r.Advice {
	case "the waiting queue is full of requests that are no less critical":
		return 1
	case "more critical requests were rejected recently":
		return 2
	case "the request waited as long as it may, and nothing became free":
		return 3
	case "the deadline is closer than the fastest recent response":
		return 4
	case "utilization is above the threshold of this criticality":
		return 5
	case "the server is overloaded, and this caller asks for more than its fair share":
		return 6
	case "the turn did not come in time": // of a batch cluster
		return 1
	default:
		return 0
	}
}
