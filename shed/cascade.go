package shed

import (
	"math"
	"time"

	"github.com/seed90641741/spillway"
	"github.com/seed90641741/spillway/internal/elapsed"
)

const (
	// memory is the number of decisions from which a rejected share is known. With fewer decisions
	// the missing ones count as admissions.
	memory = 50
	// noise is the rejected share up to which a rank counts as served: one rejection in memory. While
	// a rank has a rejected share of cut or more, all lower ranks are rejected entirely.
	noise, cut = 0.02, 0.2
)

// mostCalls bounds the number of calls of a task. Without it the number would be infinite at a
// server that sees only tasks that have begun elsewhere.
const mostCalls = 100.

// ranks is the number of ranks. Each class has two: one for all callers, and one above it for
// callers that ask for no more than their fair share. Rank / 2 is the index of the class.
const ranks = 2 * spillway.Criticalities

// A cascade rejects lower ranks while requests of a higher rank are rejected. The order in the
// queue alone would do so if requests came at random. Real requests come in waves: many that began
// together end together, and leave the queue empty for a moment. Lower ranks would then take part
// of the capacity that a partly rejected rank needs in the next wave.
//
// A cascade counts the decisions on each rank. The counts are halved each 100 ms.
type cascade struct {
	ranks    [ranks]decisions
	admitted [groups]float64 // admissions of each group; marginal halves these numbers
	begun    float64         // share of the admissions that were calls of tasks with progress
}

// decisions are numbers of decisions on the requests of a rank.
type decisions struct {
	admitted float64
	full     float64 // rejected because the queue was full, or the maximum wait had passed
	lower    float64 // rejected because requests of a higher rank were
	excess   float64 // rejected because the caller asks for more than its fair share
}

// count returns a pointer to the number that counts rejections of this cause. It is nil for causes
// other than a lack of capacity, which are not counted.
func (d *decisions) count(why cause) *float64 {
	switch why {
	case higherClass:
		return &d.lower
	case excessive:
		return &d.excess
	case late, utilized:
		return nil
	default: // the queue is full, or it waited for too long
		return &d.full
	}
}

// admit counts an admission.
func (c *cascade) admit(o order) {
	c.ranks[o.rank()].admitted++
	c.admitted[o.group()]++
	begun := 0.0
	if o.group()%steps > 0 {
		begun = 1
	}
	c.begun = ewma(begun, c.begun, 10*memory)
}

// calls returns how many calls a task makes in the mean: the number of admissions for each
// admission of a task without progress.
func (c *cascade) calls() float64 { return 1 / max(1-c.begun, 1/mostCalls) }

// ewma returns the average share (an EWMA over n decisions) after one more decision, which is 0 or
// 1.
func ewma(decision, share, n float64) float64 {
	return elapsed.Trim(share + float64((decision-share)*(1/n)))
}

// fade halves all counts of decisions, as many times as halvings says.
func (c *cascade) fade(halvings time.Duration) {
	keep := math.Ldexp(1, -int(min(halvings, 64))) // after a step of the clock it may be more than an int holds
	for i := range c.ranks {
		d := &c.ranks[i]
		for _, n := range []*float64{&d.admitted, &d.full, &d.lower, &d.excess} {
			*n = elapsed.Trim(*n * keep)
		}
	}
}

// share returns which share of all decisions a part is. Fewer than memory decisions count as memory
// decisions, so a few rejections are no large share.
func share(part, all float64) float64 { return part / max(all, memory) }

// rejected returns the rejected share of a rank.
func (c *cascade) rejected(rank int) float64 {
	d := &c.ranks[rank]
	rejected := d.full + d.lower + d.excess
	return share(rejected, rejected+d.admitted)
}

// above returns the rejected share of a rank and all higher ranks together. It says how deep the
// queue must be. Requests beyond the fair share of their caller do not reach the queue, and do not
// count.
func (c *cascade) above(rank int) float64 {
	rejected, admitted := 0.0, 0.0
	for i := range c.ranks[rank:] {
		d := &c.ranks[rank+i]
		rejected += d.full + d.lower
		admitted += d.admitted
	}
	return share(rejected, rejected+admitted)
}

// pressed returns the rejected share of a rank without the rejections that higher ranks cause. If
// these counted, an overload that is over would end for one rank after the other.
func (c *cascade) pressed(rank int) float64 {
	d := &c.ranks[rank]
	return share(d.full, d.full+d.admitted)
}

// inQueue returns the rejected share of the requests that reach the queue: those that no higher
// rank rejects.
func (c *cascade) inQueue() float64 {
	full, admitted := 0.0, 0.0
	for i := range c.ranks {
		full += c.ranks[i].full
		admitted += c.ranks[i].admitted
	}
	return share(full, full+admitted)
}

// highest returns the highest value of pressed for the ranks above a rank.
func (c *cascade) highest(rank int) (most float64) {
	for i := rank + 1; i < ranks; i++ {
		most = max(most, c.pressed(i))
	}
	return most
}

// shut returns which share of the requests of a rank to reject because requests of a higher rank
// are rejected. It is proportional to the rejected share of the higher ranks, and reaches 1 where
// that is cut.
func (c *cascade) shut(rank int) float64 {
	most := c.highest(rank)
	if most <= noise {
		return 0
	}
	return most / cut
}
