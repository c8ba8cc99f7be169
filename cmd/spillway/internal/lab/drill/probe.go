package drill

import (
	"context"
	"net/http"
	"sync/atomic"
	"time"
)

// slotLength is the step of the series.
const slotLength = 250 * time.Millisecond

// sampleEvery is how often the probe looks between the attempts.
const sampleEvery = slotLength / 5

// A slot is what the probe saw during one step of the series.
type slot struct {
	attempts, retries, inFlight atomic.Int64
	looked                      bool    // whether sample, which alone writes it, has seen a budget
	budget                      float64 // the least share of it that was left
}

// A probe sits right above the transport of either caller and sees every
// attempt, and at intervals the retry budgets.
type probe struct {
	next     http.RoundTripper
	look     func() float64 // the share that is left of the budgets; nil: there are none
	start    time.Time
	slots    []slot
	inFlight atomic.Int64
}

func newProbe(next http.RoundTripper, length time.Duration) *probe {
	return &probe{next: next, slots: make([]slot, (length+slotLength-1)/slotLength)}
}

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

// sample looks at the budgets until ctx ends.
func (p *probe) sample(ctx context.Context) {
	for at := p.start; sleepUntil(ctx, at); at = at.Add(sampleEvery) {
		s := p.slot()
		if s == nil {
			return
		}
		s.seen(p.inFlight.Load())
		if p.look != nil {
			left := p.look()
			if s.looked {
				left = min(left, s.budget)
			}
			s.looked, s.budget = true, left
		}
	}
}
