package tune

import (
	"cmp"
	"math"
)

const (
	growth   = 2   // factor of a step over the one before it
	explored = 1.1 // multiple of the ceiling up to which steps are small
	maxDrain = 10  // maximum of drain, in multiples of Decrease
	alike    = 0.1 // share of the ceiling by which a capacity may differ and count as equal
)

// decide moves the limit as the rule says, or only reports the move while the Tuner observes. worst
// is the index of the signal with the greatest pressure.
func (t *Tuner) decide(worst int) (Move, bool) {
	to := t.goal()
	if to = t.bounded(to); to == t.limit {
		return Move{}, false
	}
	if !t.config.Enforce {
		return t.intend(to, worst)
	}
	m := t.describe(t.config.Rule, to, worst)
	t.learn(to)
	t.move(to)
	return t.keep(m), true
}

// goal returns the limit that the rule wants, before the bounds of one move and of the limit.
func (t *Tuner) goal() float64 {
	if t.trend.direction == down {
		return t.lower()
	}
	return t.raise()
}

// lower returns a limit below the capacity, but no farther below it than it takes to empty the
// queue.
func (t *Tuner) lower() float64 {
	c := &t.config
	share := c.Gain * (1 - 1/t.trend.mildest)
	if c.Rule == AIMD {
		share = c.Decrease * t.grown()
	}
	can := t.capacity()
	to := min(t.limit, can) * (1 - min(share, 1))
	return max(to, min(t.limit, can*(1-t.drain())))
}

// drain returns the share of the capacity by which the limit may go below it to empty a queue. It
// grows with the queue, from one Decrease to maxDrain of them.
func (t *Tuner) drain() float64 {
	return t.config.Decrease * min(max(1, t.trend.mildest-1), maxDrain)
}

// raise returns at once to the ceiling less one Decrease. From there it goes up to the top in small
// steps, and above the top in growing steps, as far as the pressure allows.
func (t *Tuner) raise() float64 {
	c := &t.config
	step := c.Increase * max(cmp.Or(t.ceiling, c.Limit), t.limit/2)
	if c.Whole {
		step = max(1, step)
	}
	if t.limit < t.top() {
		return max(t.limit+step, t.ceiling*(1-c.Decrease))
	}
	room := t.limit * (1/t.trend.mildest - 1) // +Inf without any pressure
	if c.Rule == Proportional {
		room *= c.Gain
	}
	return t.limit + min(step*t.grown(), room)
}

// top is the limit up to which raise makes small steps.
func (t *Tuner) top() float64 { return t.ceiling * explored }

// capacity returns the capacity of the backend, which is the use of the limit while the pressure is
// too great. For the first move down it is averaged with the ceiling, if the two are alike.
func (t *Tuner) capacity() float64 {
	switch {
	case math.IsNaN(t.used):
		return t.limit
	case t.up && math.Abs(t.used-t.ceiling) < alike*t.ceiling:
		return (t.used + t.ceiling) / 2
	}
	return t.used
}

// grown returns the factor of the next step over the first one of a row of moves in one direction.
func (t *Tuner) grown() float64 {
	if t.up != (t.trend.direction == up) {
		return 1
	}
	return math.Pow(growth, float64(min(t.row, 20)))
}

// learn updates the ceiling and the row of moves for a move to a limit.
func (t *Tuner) learn(to float64) {
	if t.trend.direction == down {
		t.ceiling = max(t.capacity(), to)
	}
	if upward := t.trend.direction == up; upward != t.up {
		t.up, t.row = upward, 0
	}
	if !t.up || t.limit >= t.top() {
		t.row++
	}
}

// bounded returns the limit after one move in the direction of to, within MaxStep, MaxDelta, Min
// and Max. It returns the old limit if the change would be less than a thousandth.
func (t *Tuner) bounded(to float64) float64 {
	c := &t.config
	most := min(t.limit*c.MaxStep, c.MaxDelta)
	step := math.Abs(to - t.limit)
	if step < t.limit/1000 {
		return t.limit
	}
	if c.Whole {
		most, step = max(1, math.Floor(most)), max(1, math.Floor(step))
	}
	step = min(step, most)
	if to < t.limit {
		return max(c.Min, t.limit-step)
	}
	return min(c.Max, t.limit+step)
}

// move sets the limit.
func (t *Tuner) move(to float64) {
	if to > t.limit {
		t.raised++
	} else {
		t.lowered++
	}
	t.limit, t.moved, t.hasLast, t.trend, t.readings = to, t.at, true, trend{}, 0
}

// intend reports the move that an enforcing Tuner would make, unless it has reported it less than
// repeat ago.
func (t *Tuner) intend(to float64, worst int) (Move, bool) {
	want := intention{t.trend.direction, worst, t.at}
	if t.said.direction == want.direction && t.said.signal == worst && t.at-t.said.at < repeat {
		return Move{}, false
	}
	m := t.describe(t.config.Rule, to, worst)
	t.said, t.moved, t.hasLast, t.trend = want, t.at, true, trend{}
	return t.keep(m), true
}

// fallBack moves the limit one step closer to the configured one, because the signal with the index
// missing is unknown.
func (t *Tuner) fallBack(missing int) (Move, bool) {
	first := !t.lost
	t.lost, t.seen, t.trend, t.row, t.ceiling = true, t.at, trend{}, 0, 0
	to := t.limit
	if t.rested() {
		to = t.stepTo(t.config.Limit)
	}
	if to == t.limit && !first {
		return Move{}, false
	}
	m := t.describe(Fallback, to, missing)
	if to != t.limit {
		t.move(to)
	}
	return t.keep(m), true
}

// stepTo returns the limit after one step to goal.
func (t *Tuner) stepTo(goal float64) float64 {
	if to := t.bounded(goal); to != t.limit {
		return to
	}
	return goal // less than a thousandth away, which bounded ignores
}

// resume ends the fallback once all signals have been known for Persist. Until then the limit
// stays.
func (t *Tuner) resume() (Move, bool) {
	_, worst, all := t.pressure()
	if !all {
		t.seen = t.at
	}
	if !all || t.at-t.seen < t.config.Persist {
		return Move{}, false
	}
	t.lost, t.readings = false, 0
	return t.keep(t.describe(Resume, t.limit, worst)), true
}
