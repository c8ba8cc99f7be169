package shed

import (
	"cmp"
	"strings"

	"github.com/seed90641741/spillway"
)

// reason is why a request was rejected.
type reason uint8

const (
	admitted reason = iota
	crowded
	outranked
	waited
	late
	utilized
	excessive
	reasons
)

var advice = [reasons]string{
	crowded:   "the waiting queue is full of requests that are no less critical",
	outranked: "more critical requests were rejected recently",
	waited:    "the request waited as long as it may, and nothing became free",
	late:      "the deadline is closer than the fastest recent response",
	utilized:  "utilization is above the threshold of this criticality",
	excessive: "the server is overloaded, and this caller asks for more than its fair share",
}

// rejections holds each rejection that a Shedder returns.
type rejections [reasons][spillway.Criticalities]*spillway.RejectedError

func newRejections(c *Config) (r rejections) {
	for why, text := range advice {
		for class := range r[why] {
			r[why][class] = &spillway.RejectedError{
				Policy:      cmp.Or(c.Policy, "shed"),
				Criticality: spillway.Criticality(class) + spillway.Sheddable,
				Advice:      strings.TrimSuffix(text+"; "+c.Advice, "; "),
			}
		}
	}
	return r
}
