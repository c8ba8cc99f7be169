package shed

import (
	"time"

	"github.com/seed90641741/spillway"
)

// Pass admits a request at once if no request waits, none was rejected in the last two seconds, no
// limit was found and a processor is free. Then it returns true and sets t, which must be settled
// exactly once. Otherwise it returns false and has decided nothing: call [Shedder.Arrive]. Arrive
// admits every request that Pass admits, but takes longer, as Pass takes only the lock of the
// [Limit]. Pass keeps none of the pointers.
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

// plenty reports whether there is calm (see calmDown), a processor is free, and no class is
// rejected because of utilization.
func (s *Shedder) plenty(state *State, c *Config) bool {
	return s.calm.Load() && state.Runnable < state.processors() && state.Utilization < c.Thresholds[0]
}

// disturb ends the calm. The signals begin at zero, because Arrive has not seen the requests that
// Pass admitted.
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

// calmDown decides whether calm begins: nothing waits, no class is rejected, no overload stands and
// no caller is counted, which ends two seconds after the last rejection. Calm ends with the first
// request that does not run at once.
func (s *Shedder) calmDown() {
	quiet := s.waiting.Load() == 0 && s.busy.lasts == 0 && s.levels == levels{}
	for _, q := range s.queues {
		quiet = quiet && (q == nil || q.full.over(s.at))
	}
	s.calm.Store(quiet && !s.told.Load())
}
