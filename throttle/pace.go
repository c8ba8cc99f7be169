package throttle

import "time"

// A pace measures the rate of calls that are rare, by the mean of the last gaps between them.
type pace struct {
	last time.Duration // when the last call was made
	gaps float64
	mean float64 // the mean gap, in seconds
}

const (
	// steadyGaps is the number of gaps in the mean. With half as many it is noisier.
	steadyGaps = 32
	// longGap is the gap, in multiples of the mean, after which the calls count as rarer than
	// before. While they are as frequent as before, one gap in 150 is that long by chance. With 4
	// that happens more often, and then uses up credit; with 6, fewer calls are sent right after a
	// recovery.
	longGap = 5
)

// call counts a call. After a long gap the pace is measured again.
func (p *pace) call(at time.Duration) {
	gap := (at - p.last).Seconds()
	p.last = at
	if gap > longGap*p.mean {
		p.gaps = 0
	}
	p.gaps = min(p.gaps+1, steadyGaps)
	p.mean += (gap - p.mean) / p.gaps
}

// rate returns the calls per second, or 0 with fewer than two gaps.
func (p *pace) rate() float64 {
	if p.gaps <= 1 || p.mean <= 0 {
		return 0
	}
	return (p.gaps - 1) / (p.gaps * p.mean)
}
