package throttle

import (
	"math"
	"sync/atomic"

	"github.com/seed90641741/spillway"
)

// An order knows the recent calls of a class by their tasks: which share of them is below a call. So the
// calls that must be rejected are of the lowest tasks, as many as if random had decided. Calls without a
// level are not in it.
type order struct {
	calls [groups]atomic.Uint32     // since it was learned, and half of those before
	below [groups + 1]atomic.Uint32 // the share in lower groups, as bits of a float32
}

const (
	// levelGroups is the number of groups of levels. In the group at the bound random decides.
	levelGroups = 8
	// groups has a group of levels for tasks that have made no progress, and one for the others, which go first.
	groups = 2 * levelGroups
	// lesson is the number of calls from which the order is learned.
	lesson = 100
)

// place returns where in [0, 1) a call stands in its class: calls below the probability are rejected. u is random.
func (o *order) place(call *spillway.Call, u float64) float64 {
	if !call.Level.Valid() {
		return u
	}
	group := int(call.Level-1) * levelGroups / spillway.Levels
	if call.Progress > 0 {
		group += levelGroups
	}
	o.calls[group].Add(1)
	low, high := o.share(group), o.share(group+1)
	if o.share(groups) == 0 { // nothing was learned yet
		return u
	}
	return min(low+float64(u*(high-low)), belowOne)
}

// belowOne is the greatest number below 1.
const belowOne = 1 - 1./(1<<53)

func (o *order) share(below int) float64 {
	return float64(math.Float32frombits(o.below[below].Load()))
}

// learn takes in the calls since it last did, if they are enough.
func (o *order) learn() {
	all := uint32(0)
	for i := range o.calls {
		all += o.calls[i].Load()
	}
	if all < lesson {
		return
	}
	below := uint32(0)
	for i := range o.calls {
		n := o.calls[i].Load()
		o.calls[i].Store(n / 2)
		below = min(below+n, all)
		o.below[i+1].Store(math.Float32bits(float32(below) / float32(all)))
	}
}
