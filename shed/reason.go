package shed

import (
	"cmp"
	"strings"

	"github.com/seed90641741/spillway"
	"github.com/seed90641741/spillway/internal/rejection"
)

// A cause is the reason for which a request was rejected. For a request that waited for too long,
// it is what limited its wait.
type cause uint8

const (
	admitted cause = iota
	queueFull
	higherClass
	late
	utilized
	excessive
	byMaxWait
	byBurst
	byDeadline
	byLatency
	byQueue
)

const (
	msWaited = "ms waited"
	moreWork = "; add capacity, or have clients send less"
)

// causes says what a rejection contains, by cause. For a full queue and the maximum wait, the Limit
// is the same as the Level, which has reached it.
var causes = [...]struct {
	reason                spillway.Reason
	unit, setting, advice string
}{
	queueFull:   {spillway.ReasonQueueFull, "requests in the waiting queue", "", "the waiting queue is full of requests that are no less critical"},
	higherClass: {spillway.ReasonHigherClass, "% of more critical requests rejected", "", "more critical requests were rejected recently"},
	late:        {spillway.ReasonDeadline, "% of the fastest recent response time", "", "the deadline is closer than the fastest recent response"},
	utilized:    {spillway.ReasonUtilization, "% utilization", "", "utilization is above the threshold of this criticality"},
	excessive: {
		spillway.ReasonFairShare, "% of the caller's requests rejected", "",
		"the server is overloaded, and this caller asks for more than its fair share",
	},
	byMaxWait: {
		spillway.ReasonMaxWait, msWaited, ByMaxWait,
		"nothing became free within max_wait, which is for requests without a deadline and for the wait for a processor" + moreWork,
	},
	byBurst: {
		spillway.ReasonMaxWait, msWaited, ByBurst,
		"no processor became free within 1 s, which a request may wait while no overload stands" + moreWork,
	},
	byDeadline: {
		spillway.ReasonMaxWait, msWaited, ByDeadline,
		"nothing became free within the part of the time until its deadline that the request may wait; max_wait does not count" + moreWork,
	},
	byLatency: {
		spillway.ReasonMaxWait, msWaited, ByLatency,
		"nothing became free within 8 usual latencies, or 1 s if that is more; deadline and max_wait do not count" + moreWork,
	},
	byQueue: {
		spillway.ReasonMaxWait, msWaited, ByQueue,
		"its turn did not come within the time in which the waiting queue of its class is served; deadline and max_wait would allow more" + moreWork,
	},
}

// rejections holds the rejections that a Shedder returns. Its lock is that of the Shedder.
type rejections struct {
	policy, advice string // of the Config
	tables         [len(causes)][spillway.Criticalities]*rejection.Table[spillway.RejectedError]
	limits         [len(causes)][spillway.Criticalities]float64 // of the tables
}

// at returns the rejection of a class with this Level and Limit. A Limit of 0 means that the Limit
// is the Level. The Limit rarely changes; at makes a new table then.
func (r *rejections) at(why cause, class int, level, limit float64) *spillway.RejectedError {
	t := &r.tables[why][class]
	if *t == nil || r.limits[why][class] != limit {
		r.limits[why][class] = limit
		*t = rejection.NewTable(func(level float64) *spillway.RejectedError {
			return r.rejected(why, class, level, limit)
		})
	}
	return (*t).At(level)
}

func (r *rejections) rejected(why cause, class int, level, limit float64) *spillway.RejectedError {
	of := &causes[why]
	return &spillway.RejectedError{
		Policy:      cmp.Or(r.policy, "shed"),
		Reason:      of.reason,
		Criticality: spillway.Criticality(class) + spillway.Sheddable,
		Level:       level,
		Limit:       cmp.Or(limit, level),
		Unit:        of.unit,
		Setting:     of.setting,
		Advice:      strings.TrimSuffix(of.advice+"; "+r.advice, "; "),
	}
}

// rejection returns the rejection of an arrival, with what was measured for its reason.
func (s *Shedder) rejection(why cause, a *arrival, c *Config) *spillway.RejectedError {
	level, limit := 0.0, 100.0
	switch why {
	case late:
		if a.pace.Fastest > 0 {
			level = 100 * a.left / a.pace.Fastest
		}
	case utilized:
		level, limit = 100*a.state.Utilization, 100*c.Thresholds[a.class]
	case higherClass:
		level, limit = 100*a.queue.cascade.highest(a.rank), 100*noise
	case queueFull:
		level, limit = float64(a.queue.n), 0
	case excessive:
		level = 100 * (1 - a.pass)
	default: // not of an arrival
	}
	return s.rejections.at(why, a.class, level, limit)
}
