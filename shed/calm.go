package shed

import (
	"math"
	"time"

	"github.com/seed90641741/spillway"
)

// calm is the share below which rejections are over and done with.
const calm = noise / 20

// Pass admits a request at once, if no request waits, none was rejected recently, no limit was
// found and a processor is free. Otherwise it returns false and decides nothing, and
// [Shedder.Arrive] must be called. Arrive admits every request that Pass admits, but takes
// longer. Pass sets t, which must be settled exactly once, and takes only the lock of the [Limit].
// It keeps none of the pointers.
func (s *Shedder) Pass(now time.Time, call *spillway.Call, state *State, t *spillway.Ticket) bool {
	c := s.config.Load()
	if c.Limit == nil || !s.plenty(state, c) {
		return false
	}
	ticket, ok := c.Limit.Take(now, call.Key, call.Criticality, call.Deadline)
	if ok {
		*t = ticket
		s.passed[call.Criticality.Index()].Add(1)
	}
	return ok
}

// plenty reports whether there is calm, and nothing is short now.
func (s *Shedder) plenty(state *State, c *Config) bool {
	return s.calm.Load() && state.Runnable < state.processors() && state.Utilization < c.Thresholds[0]
}

// disturb ends the calm. Requests that Pass admitted were not seen by Arrive.
func (s *Shedder) disturb() {
	if !s.calm.Swap(false) {
		return
	}
	s.busy.seen = s.at
	for _, q := range s.queues {
		if q != nil {
			q.full = standing{seen: s.at}
		}
	}
}

// calmDown finds out whether there is calm. It lasts until a request does not run at once.
func (s *Shedder) calmDown() {
	quiet := s.waiting.Load() == 0 && s.busy.lasts == 0 && s.levels == levels{} && math.Abs(s.depth.factor-1) < calm
	for _, q := range s.queues {
		quiet = quiet && (q == nil || q.full.over(s.at) && q.cascade.calm())
	}
	s.calm.Store(quiet && !s.told.Load())
}

// calm reports whether rejections are over.
func (c *cascade) calm() bool {
	most := max(c.all, c.pressed)
	for i := range c.ranks {
		most = max(most, c.ranks[i].rejected, c.ranks[i].above, c.ranks[i].pressed)
	}
	return most < calm
}
