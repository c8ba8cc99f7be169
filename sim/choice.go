package sim

import (
	"slices"

	"github.com/seed90641741/spillway/fault"
	"github.com/seed90641741/spillway/internal/ejection"
)

// choose returns the task that is to get the next request.
func (e *edge) choose(c *call) (task int) {
	if e.config.Retarget {
		avoid := c.flow.Deprioritized()
		for range 4 * min(len(avoid), e.config.Subset) {
			if task = e.pick(c); !slices.Contains(avoid, e.to.tasks[task].name) {
				return task
			}
		}
	}
	return e.pick(c)
}

// eject leaves out a task that has rejected a call with a retry delay.
func (e *edge) eject(c *call, f fault.Failure) {
	if f.Scope != fault.ScopeTask || !f.HasRetryAfter {
		return
	}
	a := e.callers[c.client].active
	if a.ejected == nil {
		a.ejected = make(map[int32]*ejection.Ejection)
	}
	if a.ejected[c.at] == nil {
		a.ejected[c.at] = new(ejection.Ejection)
	}
	a.ejected[c.at].Failed(e.clock, f)
}

// pick chooses no task that is known to be gone, or has asked to be left out, unless all
// have.
func (e *edge) pick(c *call) (task int) {
	out := e.callers[c.client].active.ejected
	for range 16 {
		task = e.draw(c)
		if x := out[int32(task)]; e.to.tasks[task].gone == 0 && (x == nil || !x.Active(e.clock)) {
			return task
		}
	}
	n := e.config.Subset
	first := e.choice.below(n)
	for i := range n {
		if t := e.member(c.client, (first+i)%n); e.to.tasks[t].gone == 0 {
			return t
		}
	}
	return task
}

func (e *edge) draw(c *call) int {
	n := e.config.Subset
	switch e.config.Balance {
	case RoundRobin:
		caller := &e.callers[c.client]
		caller.turn++
		return e.member(c.client, (int(caller.turn)+int(c.client))%n)
	case LeastBusy:
		a, b := e.member(c.client, e.choice.below(n)), e.member(c.client, e.choice.below(n))
		if e.to.tasks[b].better(e.to.tasks[a]) {
			return b
		}
		return a
	default:
		return e.member(c.client, e.choice.below(n))
	}
}

// member returns the task at place i of a caller's subset. Subsets follow one
// another around the tasks.
func (e *edge) member(caller int32, i int) int {
	return (int(caller)*e.config.Subset + i) % len(e.to.tasks)
}

// bit is that of the connection to a task, by its place in the subset of the caller.
func (e *edge) bit(caller int32, task int) uint64 {
	n := len(e.to.tasks)
	return 1 << ((task - int(caller)*e.config.Subset%n + n) % n)
}
