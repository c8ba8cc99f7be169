package throttle

import (
	"math"
	"sync/atomic"

	"github.com/seed90641741/spillway"
)

// An order ranks a call among the recent calls of its class by their tasks: it knows which share of
// the calls ranks below. So calls of the lowest tasks are rejected, in the same number as by
// chance. Calls without a level are not counted.
type order struct {
	calls [groups]atomic.Uint32     // calls since learn last ran, and half of those before
	below [groups + 1]atomic.Uint32 // share of the calls in lower groups, as the bits of a float32
}

const (
	// levelGroups is the number of groups of levels. Within a group, chance decides.
	levelGroups = 8
	// groups is the number of all groups: those of the levels for tasks without progress, and again
	// for tasks with progress, which rank higher.
	groups = 2 * levelGroups
	// lesson is the minimum number of calls from which learn computes the shares.
	lesson = 100
)

// place returns the rank of a call in its class, in [0, 1): calls that rank below the probability
// of a rejection are rejected. u is a random number in [0, 1).
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
	if o.share(groups) == 0 { // learn has computed nothing yet
		return u
	}
	return min(low+float64(u*(high-low)), belowOne)
}

// belowOne is the greatest number below 1.
const belowOne = 1 - 1./(1<<53)

func (o *order) share(below int) float64 {
	return float64(math.Float32frombits(o.below[below].Load()))
}

// learn computes the shares from the calls that were counted, if they are enough.
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
