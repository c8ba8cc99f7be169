package telemetry

import (
	"slices"
	"sync/atomic"

	"github.com/seed90641741/spillway"
)

// Modes is how many modes have counters: enforce and observe.
const Modes = 2

// Counts counts events by mode, kind and criticality. The zero Counts is ready for use. It
// is safe for concurrent use, takes no lock and allocates nothing.
type Counts struct {
	events [Modes][Kinds][spillway.Criticalities]atomic.Uint64
}

// Add counts an event and returns its kind.
func (c *Counts) Add(e *spillway.Event) Kind {
	k := KindOf(e)
	c.events[modeOf(e)][k][e.Call.Criticality.Index()].Add(1)
	return k
}

func modeOf(e *spillway.Event) int {
	if e.Mode == spillway.ModeEnforce {
		return 0
	}
	return 1
}

// Totals are the counts at one time, by mode, kind and criticality.
type Totals [Modes][Kinds][spillway.Criticalities]uint64

// Read stores the counts in t. Counting goes on meanwhile, so that sums may miss the
// events of that moment.
func (c *Counts) Read(t *Totals) {
	for mode := range c.events {
		for k := range c.events[mode] {
			for class := range c.events[mode][k] {
				t[mode][k][class] = c.events[mode][k][class].Load()
			}
		}
	}
}

// Each calls f for each count that is not zero. For each policy that was asked about a class in a
// mode it also calls f for the counts of Admitted and of the policy's usual reasons that are
// zero: the rate of a counter needs its start.
func (t *Totals) Each(f func(mode spillway.Mode, k Kind, c spillway.Criticality, n uint64)) {
	for mode := range t {
		for p := range Policies {
			kinds := t[mode][p*int(codes) : (p+1)*int(codes)]
			seen := asked(kinds)
			for i := range kinds {
				for class, n := range kinds[i] {
					if n > 0 || seen[class] && usual(p, Code(i)) {
						f(spillway.Mode(mode), Kind(p*int(codes)+i), spillway.Criticality(class)+spillway.Sheddable, n)
					}
				}
			}
		}
	}
}

// Add adds the counts of o.
func (t *Totals) Add(o *Totals) {
	for mode := range t {
		for k := range t[mode] {
			for class := range t[mode][k] {
				t[mode][k][class] += o[mode][k][class]
			}
		}
	}
}

// usual reports whether a count is shown even if it is zero.
func usual(policy int, c Code) bool {
	return c == Admitted || c >= Rejected && slices.Contains(reasons[policy], spillway.Reason(c-Rejected))
}

// asked returns the classes that have a count.
func asked(kinds [][spillway.Criticalities]uint64) (seen [spillway.Criticalities]bool) {
	for _, k := range kinds {
		for class, n := range k {
			seen[class] = seen[class] || n > 0
		}
	}
	return seen
}
