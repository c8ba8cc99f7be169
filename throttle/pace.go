package throttle

import "time"

// A pace is the rate of calls that are few: the mean of the last gaps between them.
type pace struct {
	last time.Duration // when a call was made
	gaps float64
	mean float64 // seconds
}

const (
	// steadyGaps is how many gaps the mean is of: with half as many it is noisier.
	steadyGaps = 32
	// longGap is a gap, in means, after which the calls count as fewer than before. Where
	// they are not, one gap in 150 is that long. With 4, chance spends
	// more of what the limit has saved; with 6, fewer calls are sent right after a recovery.
	longGap = 5
)

// call takes in a call. After a long gap the pace is measured again.
func (p *pace) call(at time.Duration) {
	gap := (at - p.last).Seconds()
	p.last = at
	if gap > longGap*p.mean {
		p.gaps = 0
	}
	p.gaps = min(p.gaps+1, steadyGaps)
	p.mean += (gap - p.mean) / p.gaps
}

// rate returns the calls per second. One gap does not make a rate.
func (p *pace) rate() float64 {
	if p.gaps <= 1 || p.mean <= 0 {
		return 0
	}
	return (p.gaps - 1) / (p.gaps * p.mean)
}
