package shed

import (
	"math"
	"time"

	"github.com/seed90641741/spillway"
	"github.com/seed90641741/spillway/internal/elapsed"
)

const (
	// memory is the number of decisions over which the rejected share of a class is averaged
	// (EWMA): 50 ms at 1,000 requests per second. What decides on lower ranks is averaged
	// over 100 ms if that is longer: requests that began together end together, and leave as
	// many admissions in a row.
	memory = 50
	// forget is the half-life of the rejected share of a class without requests, so that past
	// rejections do not reject later requests.
	forget = 50 * time.Millisecond
	// relent is the factor, per forget, by which the effect of a class on lower classes
	// falls: also at a low rate of requests it ends in some 100 ms.
	relent = 0.9
	// lighten is that factor for an admission to an idle server: that of ten admissions,
	// (1 - 1/memory)^10.
	lighten = 0.82
	// noise is the rejected share below which a class counts as served: one rejection in
	// memory. From cut on, all lower classes are rejected.
	noise, cut = 0.02, 0.2
)

// mostCalls is the number of calls of a task at most: a server may see nothing but tasks that have begun elsewhere.
const mostCalls = 100.

// ranks is the number of ranks: each class has one for all callers, and one above it for
// callers that ask for no more than their fair share. Rank / 2 is the class.
const ranks = 2 * spillway.Criticalities

// cascade averages the rejected share of each rank, and rejects lower ranks while a
// higher one is rejected. Without it lower ranks would take part of the capacity of a
// partly rejected one, whenever the queue happens to have space.
type cascade struct {
	ranks    [ranks]share
	all      float64 // rejected share of all classes
	pressed  float64 // the same, without the rejections by the cascade itself
	tick     time.Time
	spared   time.Duration   // when spare last counted
	admitted [groups]float64 // admissions, of which marginal forgets the older ones
	begun    float64         // share of the admissions that were of tasks that had made progress
}

type share struct {
	rejected float64
	above    float64 // rejected share of this rank and all higher ones together
	pressed  float64 // rejected share, without the rejections by the cascade itself
	asked    bool    // a request arrived since the last tick
	decided  int     // decisions since then
	rate     float64 // decisions in about two ticks
}

// note counts one decision: rejected is 1 for a rejection and 0 for an admission.
func (c *cascade) note(rank int, rejected float64) {
	s := &c.ranks[rank]
	s.decided++
	s.pressed = ewma(rejected, s.pressed, max(memory, s.rate))
	c.pressed = ewma(rejected, c.pressed, memory)
	c.noteHigherClass(rank, rejected)
}

// admit counts an admission of a group.
func (c *cascade) admit(group int) {
	c.admitted[group]++
	begun := 0.0
	if group%steps > 0 {
		begun = 1
	}
	c.begun = ewma(begun, c.begun, 10*memory)
}

// calls returns for how many calls, on average, a task asks that begins now: admissions for each one of a task without progress.
func (c *cascade) calls() float64 { return 1 / max(1-c.begun, 1/mostCalls) }

// spare counts an admission to an idle server. It counts like ten admissions, so that
// all classes are served again soon after an overload. Once in a time slice is enough: a
// burst finds a server idle that is not idle between bursts.
func (c *cascade) spare(at time.Duration) {
	if at < c.spared+slice {
		return
	}
	c.spared = at
	for i := range c.ranks {
		c.ranks[i].pressed *= lighten
	}
}

// noteHigherClass counts a rejection because of a higher rank. It does not affect lower
// ranks: otherwise they would be served again only one after the other.
func (c *cascade) noteHigherClass(rank int, rejected float64) {
	s := &c.ranks[rank]
	s.asked = true
	s.rejected = ewma(rejected, s.rejected, memory)
	for i := range c.ranks[:rank+1] {
		c.ranks[i].above = ewma(rejected, c.ranks[i].above, 2*memory)
	}
	c.all = ewma(rejected, c.all, 2*memory)
}

// noteExcess counts a rejection of a request beyond the share of its caller. It affects neither
// the depth of the queue nor lower ranks: both depend on the requests that reach the queue.
func (c *cascade) noteExcess(rank int) {
	s := &c.ranks[rank]
	s.asked = true
	s.rejected = ewma(1, s.rejected, memory)
}

// ewma updates an EWMA over n decisions.
func ewma(decision, share, n float64) float64 {
	return elapsed.Trim(share + float64((decision-share)*(1/n)))
}

// advance reduces the rejected shares of classes without requests. A tick in which a
// request arrived does not count.
func (c *cascade) advance(now time.Time) {
	ticks := now.Sub(c.tick) / forget
	if ticks < 1 {
		return
	}
	c.tick = now
	least := ticks
	for i := range c.ranks {
		s, quiet := &c.ranks[i], ticks
		if s.asked {
			quiet--
		}
		s.rejected *= halved(quiet)
		s.above *= halved(quiet)
		s.pressed *= halved(quiet) * math.Pow(relent, float64(ticks))
		s.rate, s.decided = 2*float64(s.decided)/float64(ticks), 0
		s.asked = false
		least = min(least, quiet)
	}
	c.all *= halved(least)
	c.pressed *= halved(least)
}

// halved returns 2 to the power of -n.
func halved(n time.Duration) float64 { return 1 / float64(uint64(1)<<min(n, 63)) }

// shut returns which share of a rank to reject because a higher rank is rejected. It rises from 0 to 1 at cut.
func (c *cascade) shut(rank int) float64 {
	most := c.above(rank)
	if most <= noise {
		return 0
	}
	return most / cut
}

// above returns the highest rejected share of the ranks above one.
func (c *cascade) above(rank int) (most float64) {
	for i := range c.ranks[rank+1:] {
		most = max(most, c.ranks[rank+1+i].pressed)
	}
	return most
}

// next reports whether a rank follows the highest one that is rejected, by itself or as part
// of the class that does: it may use an idle server.
func (c *cascade) next(rank int) bool {
	for highest := ranks - 1; highest > rank; highest-- {
		if c.ranks[highest].pressed > noise {
			return rank >= highest-1-(1-highest%2)
		}
	}
	return false
}
