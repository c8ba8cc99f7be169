package shed

import (
	"cmp"
	"strings"

	"github.com/seed90641741/spillway"
	"github.com/seed90641741/spillway/internal/rejection"
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

// texts are the Unit and the Advice of each reason. A full queue and the maximum wait have no
// Limit: the Level has reached it.
var texts = [...]struct{ unit, advice string }{
	crowded:   {"requests in the waiting queue", "the waiting queue is full of requests that are no less critical"},
	outranked: {"% of more critical requests rejected", "more critical requests were rejected recently"},
	waited:    {"ms waited", "the request waited for the maximum time, and nothing became free"},
	late:      {"% of the fastest recent response time", "the deadline is closer than the fastest recent response"},
	utilized:  {"% utilization", "utilization is above the threshold of this criticality"},
	excessive: {"% of the caller's requests rejected", "the server is overloaded, and this caller asks for more than its fair share"},
}

// rejections holds the rejections that a Shedder returns. Its lock is that of the Shedder.
type rejections struct {
	policy, advice string // of the Config
	tables         [len(texts)][spillway.Criticalities]*rejection.Table[spillway.RejectedError]
	limits         [len(texts)][spillway.Criticalities]float64 // of the tables
}

// at returns the rejection of a class with this Level and Limit, which rarely changes. If the
// Limit is 0, the Level is used.
func (r *rejections) at(why reason, class int, level, limit float64) *spillway.RejectedError {
	t := &r.tables[why][class]
	if *t == nil || r.limits[why][class] != limit {
		r.limits[why][class] = limit
		*t = rejection.NewTable(func(level float64) *spillway.RejectedError {
			return r.rejected(why, class, level, limit)
		})
	}
	return (*t).At(level)
}

func (r *rejections) rejected(why reason, class int, level, limit float64) *spillway.RejectedError {
	if limit == 0 {
		limit = level
	}
	return &spillway.RejectedError{
		Policy:      cmp.Or(r.policy, "shed"),
		Reason:      why,
		Criticality: spillway.Criticality(class) + spillway.Sheddable,
		Level:       level,
		Limit:       limit,
		Unit:        texts[why].unit,
		Advice:      strings.TrimSuffix(texts[why].advice+"; "+r.advice, "; "),
	}
}

// rejection returns the rejection of an arrival, with what was measured for its reason.
func (s *Shedder) rejection(why reason, a *arrival, c *Config) *spillway.RejectedError {
	level, limit := 0.0, 100.0
	switch why {
	case late:
		if a.pace.Fastest > 0 {
			level = 100 * a.left / a.pace.Fastest
		}
	case utilized:
		level, limit = 100*a.state.Utilization, 100*c.Thresholds[a.class]
	case outranked:
		level, limit = 100*a.queue.cascade.above(a.rank), 100*noise
	case crowded:
		level, limit = float64(a.queue.n), 0
	case excessive:
		level = 100 * (1 - a.pass)
	default: // not of an arrival
	}
	return s.rejections.at(why, a.class, level, limit)
}
