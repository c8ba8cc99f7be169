package retry

import (
	"sync/atomic"
	"time"
)

// A purse is the budget of a strategy that was given none: the least token
// bucket that does, since policies do not import one another. Package budget has
// the one for sharing, with a reserve, endpoints and statistics.
type purse struct {
	units    atomic.Int64
	capacity int64
}

// unit is one token in fixed point.
const unit = 1e9

func newPurse(tokens, capacity float64) *purse {
	p := new(purse)
	p.units.Store(int64(tokens * unit))
	p.capacity = int64(capacity * unit)
	return p
}

func (p *purse) Withdraw(_ time.Time, _ string, tokens float64) (left, capacity float64, ok bool) {
	cost, limit := int64(tokens*unit+0.5), float64(p.capacity)/unit
	for {
		have := p.units.Load()
		if have < cost {
			return float64(have) / unit, limit, false
		}
		if p.units.CompareAndSwap(have, have-cost) {
			return float64(have-cost) / unit, limit, true
		}
	}
}

func (p *purse) Deposit(_ string, tokens float64) {
	for {
		have := p.units.Load()
		next := min(p.capacity, have+int64(tokens*unit+0.5))
		if next <= have || p.units.CompareAndSwap(have, next) {
			return
		}
	}
}
