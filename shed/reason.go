package shed

import "github.com/seed90641741/spillway"

// reason is why a request was refused.
type reason uint8

const (
	admitted reason = iota
	crowded
	outranked
	waited
	late
	utilized
	reasons
)

var advice = [reasons]string{
	crowded:   "the room is full of requests that are no less critical",
	outranked: "more critical requests were refused lately",
	waited:    "no place became free in time",
	late:      "the deadline is nearer than any request was quick",
	utilized:  "utilization is above the threshold of this criticality",
}

// refusals holds each refusal there is.
var refusals = makeRefusals()

func makeRefusals() (r [reasons][spillway.Criticalities]*spillway.RejectedError) {
	for why, text := range advice {
		for class := range r[why] {
			r[why][class] = &spillway.RejectedError{
				Policy:      "shed",
				Criticality: spillway.Criticality(class) + spillway.Sheddable,
				Advice:      text,
			}
		}
	}
	return r
}

func (why reason) refusal(class int) error { return refusals[why][class] }
