package shed

import (
	"cmp"
	"strings"

	"github.com/seed90641741/spillway"
)

// reason is why a request was rejected.
type reason = spillway.Reason

const (
	admitted  = spillway.ReasonNone
	crowded   = spillway.ReasonQueueFull
	outranked = spillway.ReasonHigherClass
	waited    = spillway.ReasonMaxWait
	late      = spillway.ReasonDeadline
	utilized  = spillway.ReasonUtilization
	excessive = spillway.ReasonFairShare
)

var advice = [...]string{
	crowded:   "the waiting queue is full of requests that are no less critical",
	outranked: "more critical requests were rejected recently",
	waited:    "the request waited for the maximum time, and nothing became free",
	late:      "the deadline is closer than the fastest recent response",
	utilized:  "utilization is above the threshold of this criticality",
	excessive: "the server is overloaded, and this caller asks for more than its fair share",
}

// rejections holds each rejection that a Shedder returns.
type rejections [len(advice)][spillway.Criticalities]*spillway.RejectedError

func newRejections(c *Config) (r rejections) {
	for why, text := range advice {
		if text == "" {
			continue // of other policies
		}
		for class := range r[why] {
			r[why][class] = &spillway.RejectedError{
				Policy:      cmp.Or(c.Policy, "shed"),
				Reason:      reason(why),
				Criticality: spillway.Criticality(class) + spillway.Sheddable,
				Advice:      strings.TrimSuffix(text+"; "+c.Advice, "; "),
			}
		}
	}
	return r
}
