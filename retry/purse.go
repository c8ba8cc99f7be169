package retry

import (
	"time"

	"github.com/seed90641741/spillway/internal/tokens"
)

// A purse is the default budget of a strategy: a minimal token bucket. Package budget has one
// that can be shared, with a reserve, endpoints and statistics.
type purse struct {
	level    tokens.Level
	capacity int64 // in units
}

func newPurse(have, capacity float64) *purse {
	p := &purse{capacity: tokens.Units(capacity)}
	p.level.Set(tokens.Units(have))
	return p
}

// newEarnedPurse returns a purse that calls fill, with the deposit each per call.
func newEarnedPurse(each float64) *purse {
	p := newPurse(0, tokens.EarningCalls*each)
	p.level.Credit(tokens.Units(tokens.CreditCalls * each))
	return p
}

func (p *purse) Withdraw(_ time.Time, _ string, cost float64) (left, capacity float64, ok bool) {
	have, ok := p.level.Take(tokens.Units(cost))
	return tokens.Float(have), tokens.Float(p.capacity), ok
}

func (p *purse) Deposit(_ string, amount float64) { p.level.Add(tokens.Units(amount), p.capacity) }

// Level implements leveled.
func (p *purse) Level() (left, capacity float64) {
	return tokens.Float(p.level.Load()), tokens.Float(p.capacity)
}
