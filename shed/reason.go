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
	waited:    {"ms waited", ""}, // see bounds
	late:      {"% of the fastest recent response time", "the deadline is closer than the fastest recent response"},
	utilized:  {"% utilization", "utilization is above the threshold of this criticality"},
	excessive: {"% of the caller's requests rejected", "the server is overloaded, and this caller asks for more than its fair share"},
}

// rejections holds the rejections that a Shedder returns. Its lock is that of the Shedder.
type rejections struct {
	policy, advice string // of the Config
	tables         [causes][spillway.Criticalities]*rejection.Table[spillway.RejectedError]
	limits         [causes][spillway.Criticalities]float64 // of the tables
}

// A cause is why a request was rejected, and what limited its wait if it waited for too long.
type cause struct {
	why reason
	by  bound
}

const causes = len(texts) + len(bounds)

// row returns the table of a cause.
func (c cause) row() int {
	if c.why == waited {
		return len(texts) + int(c.by)
	}
	return int(c.why)
}

// at returns the rejection of a class with this Level and Limit, which rarely changes. If the
// Limit is 0, the Level is used.
func (r *rejections) at(of cause, class int, level, limit float64) *spillway.RejectedError {
	t := &r.tables[of.row()][class]
	if *t == nil || r.limits[of.row()][class] != limit {
		r.limits[of.row()][class] = limit
		*t = rejection.NewTable(func(level float64) *spillway.RejectedError {
			return r.rejected(of, class, level, limit)
		})
	}
	return (*t).At(level)
}

func (r *rejections) rejected(of cause, class int, level, limit float64) *spillway.RejectedError {
	if limit == 0 {
		limit = level
	}
	setting, advice := "", texts[of.why].advice
	if of.why == waited {
		setting, advice = bounds[of.by].setting, bounds[of.by].advice+moreWork
	}
	return &spillway.RejectedError{
		Policy:      cmp.Or(r.policy, "shed"),
		Reason:      of.why,
		Criticality: spillway.Criticality(class) + spillway.Sheddable,
		Level:       level,
		Limit:       limit,
		Unit:        texts[of.why].unit,
		Setting:     setting,
		Advice:      strings.TrimSuffix(advice+"; "+r.advice, "; "),
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
	return s.rejections.at(cause{why: why}, a.class, level, limit)
}
