package drill

import (
	"context"
	"net/http"
	"sync/atomic"
	"time"
)

// slotLength is the step of the series.
const slotLength = 250 * time.Millisecond

// sampleEvery is how often levels are looked at between the attempts.
const sampleEvery = slotLength / 5

// levels is what a protected caller can be asked at any time.
type levels struct {
	limit  int
	budget float64 // share of the retry budget that is left
}

// together is what all callers have: the sum of their limits, and the mean of what
// is left of their budgets.
func together(looks []func() levels) (all levels) {
	for _, look := range looks {
		l := look()
		all.limit += l.limit
		all.budget += l.budget / float64(len(looks))
	}
	return all
}

// A slot is what the probe saw during one step of the series.
type slot struct {
	attempts, retries, inFlight atomic.Int64
	levels                      levels // by sample alone; zero: not looked
}

// A probe sits right above the transport of either caller and sees every
// attempt, and at intervals the levels of the policies.
type probe struct {
	next     http.RoundTripper
	look     func() levels // nil: there is nothing to look at
	start    time.Time
	slots    []slot
	inFlight atomic.Int64
}

func newProbe(next http.RoundTripper, length time.Duration) *probe {
	return &probe{next: next, slots: make([]slot, (length+slotLength-1)/slotLength)}
}

// RoundTrip implements [http.RoundTripper].
func (p *probe) RoundTrip(req *http.Request) (*http.Response, error) {
	r := recordFrom(req.Context())
	r.attempts++ // the attempts of a call follow one another
	n := p.inFlight.Add(1)
	defer p.inFlight.Add(-1)
	if s := p.slot(); s != nil {
		s.attempts.Add(1)
		if r.attempts > 1 {
			s.retries.Add(1)
		}
		s.seen(n)
	}
	return p.next.RoundTrip(req)
}

// slot returns the slot of this moment, or nil when the schedule is over.
func (p *probe) slot() *slot {
	if i := int(time.Since(p.start) / slotLength); i < len(p.slots) {
		return &p.slots[i]
	}
	return nil
}

// seen keeps the highest n.
func (s *slot) seen(n int64) {
	for {
		old := s.inFlight.Load()
		if n <= old || s.inFlight.CompareAndSwap(old, n) {
			return
		}
	}
}

// sample looks at the levels until ctx ends. A slot keeps its last limit, and its
// lowest budget.
func (p *probe) sample(ctx context.Context) {
	tick := time.NewTicker(sampleEvery)
	defer tick.Stop()
	var last *slot
	for {
		s := p.slot()
		if s == nil {
			return
		}
		s.seen(p.inFlight.Load())
		if p.look != nil {
			now := p.look()
			if s == last {
				now.budget = min(now.budget, s.levels.budget)
			}
			s.levels, last = now, s
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
	}
}
