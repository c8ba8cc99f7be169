package shed

import (
	"math"
	"time"

	"github.com/seed90641741/spillway"
)

const (
	// memory is how many decisions the refused share of a class remembers: at a
	// thousand requests a second a twentieth of one.
	memory = 50
	// forget is the time in which a class that nobody asks for loses half of its
	// refused share, so that what was refused in the past holds nobody back.
	forget = 50 * time.Millisecond
	// relent is what remains, after the same time, of what a class does to those
	// below: however few requests there are, they are not held back for long.
	relent = 0.9
	// lighten is what remains of it after ten admissions.
	lighten = 0.82
	// noise is a refused share below which a class counts as served, and cut the
	// one from which all lower classes are refused.
	noise, cut = 0.02, 0.2
)

// cascade remembers how much of each class was refused lately, and so which
// lower classes must be refused outright. Without it a class that is refused in
// part would leave, at the instants when the room happens to have a place, some
// of the capacity to lower ones.
type cascade struct {
	classes [spillway.Criticalities]share
	all     float64 // refused share of all classes
	pressed float64 // the same, without those that the cascade refused
	tick    time.Time
}

type share struct {
	refused float64
	above   float64 // refused share of this class and all higher ones together
	pressed float64 // the same, without those that the cascade refused
	asked   bool    // since the last tick
}

// note counts one decision: refused is 1 for a refusal and 0 for an admission.
func (c *cascade) note(class int, refused float64) {
	s := &c.classes[class]
	s.pressed = toward(refused, s.pressed, memory)
	c.pressed = toward(refused, c.pressed, memory)
	c.noteOutranked(class, refused)
}

// spare counts an admission that found nothing else to do. Were what is refused
// the work that fills the capacity, there would be none: it tells as much as ten
// admissions, so that all classes come back soon after an overload has ended.
func (c *cascade) spare() {
	for i := range c.classes {
		c.classes[i].pressed *= lighten
	}
}

// noteOutranked counts a decision that says nothing of the class: it was made
// for a higher one. Otherwise the classes would be let in again only one after
// the other.
func (c *cascade) noteOutranked(class int, refused float64) {
	s := &c.classes[class]
	s.asked = true
	s.refused = toward(refused, s.refused, memory)
	for i := range c.classes[:class+1] {
		c.classes[i].above = toward(refused, c.classes[i].above, 2*memory)
	}
	c.all = toward(refused, c.all, 2*memory)
}

// toward returns a share that remembers n decisions after one more. What would hardly
// be there is nothing: a processor takes its time over numbers that are nearly zero.
func toward(decision, share, n float64) float64 {
	if share += float64((decision - share) * (1 / n)); share > 1e-9 {
		return share
	}
	return 0
}

// advance lets classes fade that were not asked for. A tick in which one was
// asked for does not count.
func (c *cascade) advance(now time.Time) {
	ticks := now.Sub(c.tick) / forget
	if ticks < 1 {
		return
	}
	c.tick = now
	least := ticks
	for i := range c.classes {
		s, quiet := &c.classes[i], ticks
		if s.asked {
			quiet--
		}
		s.refused *= halved(quiet)
		s.above *= halved(quiet)
		s.pressed *= halved(quiet) * math.Pow(relent, float64(ticks))
		s.asked = false
		least = min(least, quiet)
	}
	c.all *= halved(least)
	c.pressed *= halved(least)
}

// halved returns 2 to the power of -n.
func halved(n time.Duration) float64 { return 1 / float64(uint64(1)<<min(n, 63)) }

// shut reports whether class must be refused because a higher one is. It rises
// from none of class to all of it as the higher one is refused more. random returns
// a number in [0, 1).
func (c *cascade) shut(class int, random func() float64) bool {
	most := 0.0
	for i := range c.classes[class+1:] {
		most = max(most, c.classes[class+1+i].pressed)
	}
	return most > noise && random() < most/cut
}

// next returns the class below the highest one that is refused, which may have
// what that leaves.
func (c *cascade) next() int {
	for class := len(c.classes) - 1; class > 0; class-- {
		if c.classes[class].pressed > noise {
			return class - 1
		}
	}
	return -1
}
