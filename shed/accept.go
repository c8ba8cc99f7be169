package shed

import (
	"math"
	"time"
)

// Ratio is the share of calls that a server accepts, in coarse steps. So each step has a constant
// text, and a client needs no finer value. A share is rounded up, so that no client sends less than
// is accepted.
type Ratio uint8

// RatioOne is the Ratio of a server that accepts about all calls. It has no text.
const RatioOne Ratio = 0

var ratios = [...]struct {
	text  string
	share float64
}{
	{"", 1}, {"0.9", 0.9}, {"0.8", 0.8}, {"0.7", 0.7}, {"0.6", 0.6}, {"0.5", 0.5}, {"0.4", 0.4}, {"0.3", 0.3},
	{"0.2", 0.2}, {"0.15", 0.15}, {"0.1", 0.1}, {"0.07", 0.07}, {"0.05", 0.05}, {"0.03", 0.03}, {"0.02", 0.02}, {"0.01", 0.01}, {"0", 0},
}

// String returns the share as a decimal number, nothing for [RatioOne].
func (r Ratio) String() string { return ratios[min(int(r), len(ratios)-1)].text }

// Float returns the share, from 0 to 1.
func (r Ratio) Float() float64 { return ratios[min(int(r), len(ratios)-1)].share }

// RatioOf returns the least Ratio that is not below a share, from 0 to 1.
func RatioOf(share float64) Ratio {
	for r := len(ratios) - 1; r > 0; r-- {
		if share <= ratios[r].share+1e-9 {
			return Ratio(r)
		}
	}
	return RatioOne
}

const (
	// acceptMemory is the time constant of an accept ratio: longer than the waves in
	// which a queue fills and drains, and shorter than the seconds in which busy
	// clients notice a recovery.
	acceptMemory = 5 * time.Second
	// acceptEvidence is the number of calls from which a ratio is known.
	acceptEvidence = 10
)

// An AcceptRatio is the share of the recent calls of one class that were accepted.
// Past calls are forgotten exponentially, with a time constant of 5 s. The zero
// AcceptRatio is ready for use; it is not safe for concurrent use.
type AcceptRatio struct {
	offered, rejected float64
	seen              [2]uint64 // totals of offered and rejected calls at the last Observe
	last              time.Time
}

// Observe takes in the totals of offered and rejected calls at the time now, and
// returns the ratio. It is [RatioOne] while fewer than 10 calls are remembered.
// Observe allocates nothing.
func (a *AcceptRatio) Observe(now time.Time, offered, rejected uint64) Ratio {
	if d := now.Sub(a.last); d > 0 {
		keep := math.Exp(-float64(d) / float64(acceptMemory))
		a.offered, a.rejected = float64(a.offered*keep), float64(a.rejected*keep)
		a.last = now
	}
	a.offered += float64(offered - min(a.seen[0], offered))
	a.rejected += float64(rejected - min(a.seen[1], rejected))
	a.seen = [2]uint64{offered, rejected}
	return RatioOf(a.Share())
}

// Share returns the ratio as it was last observed, before it is rounded.
func (a *AcceptRatio) Share() float64 {
	if a.offered < acceptEvidence {
		return 1
	}
	return 1 - a.rejected/a.offered
}
