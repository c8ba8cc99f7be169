package tune

import (
	"cmp"
	"math"
)

const (
	growth   = 2   // of a step over the one before it
	explored = 1.1 // share of the ceiling up to which steps are small
	maxDrain = 10  // times Decrease
	alike    = 0.1 // share by which two capacities may differ and be the same
)

// decide moves the limit as the pressure would have it, or says that it would. The
// signal is the one with the greatest pressure.
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

// goal returns where the rule would have the limit, bounds aside.
func (t *Tuner) goal() float64 {
	if t.trend.direction == down {
		return t.lower()
	}
	return t.raise()
}

// lower goes down from the capacity, but not farther below it than empties the queue.
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

// drain returns how far below the capacity the limit may go to empty a queue: the more,
// the longer the queue is, and one Decrease at least.
func (t *Tuner) drain() float64 {
	return t.config.Decrease * min(max(1, t.trend.mildest-1), maxDrain)
}

// raise goes back at once to what the backend could do, less a Decrease, then on in
// small steps up to the top, and by more and more beyond, as far as there is room.
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

// top is up to where the limit is raised in small steps.
func (t *Tuner) top() float64 { return t.ceiling * explored }

// capacity returns what the backend can do, now that it cannot do all of the limit: what
// is used. At first that is averaged with what it was the last time, if it is much the
// same.
func (t *Tuner) capacity() float64 {
	switch {
	case math.IsNaN(t.used):
		return t.limit
	case t.up && math.Abs(t.used-t.ceiling) < alike*t.ceiling:
		return (t.used + t.ceiling) / 2
	}
	return t.used
}

// grown returns the factor by which the next step is greater than the first one.
func (t *Tuner) grown() float64 {
	if t.up != (t.trend.direction == up) {
		return 1
	}
	return math.Pow(growth, float64(min(t.row, 20)))
}

// learn takes note of what a move to a limit tells.
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

// bounded returns where the limit goes if it is to go somewhere: no farther than a
// step, and not outside of its bounds. What would change it by less than a thousandth
// is not worth a move.
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

// move puts the limit somewhere else.
func (t *Tuner) move(to float64) {
	if to > t.limit {
		t.raised++
	} else {
		t.lowered++
	}
	t.limit, t.moved, t.hasLast, t.trend, t.readings = to, t.at, true, trend{}, 0
}

// intend says what would be done, unless it was said just now.
func (t *Tuner) intend(to float64, worst int) (Move, bool) {
	want := intention{t.trend.direction, worst, t.at}
	if t.said.direction == want.direction && t.said.signal == worst && t.at-t.said.at < repeat {
		return Move{}, false
	}
	m := t.describe(t.config.Rule, to, worst)
	t.said, t.moved, t.hasLast, t.trend = want, t.at, true, trend{}
	return t.keep(m), true
}

// fallBack takes the limit nearer to the configured one, as a signal is missing.
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

// stepTo returns the limit a step nearer to goal.
func (t *Tuner) stepTo(goal float64) float64 {
	if to := t.bounded(goal); to != t.limit {
		return to
	}
	return goal // nearer than what is worth a move
}

// resume follows the signals again, when all have been known for long enough. Until
// then the limit stays.
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
