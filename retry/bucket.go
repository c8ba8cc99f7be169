package retry

import (
	"time"

	"github.com/seed90641741/spillway/internal/tokens"
)

// A bucket is the default budget of a strategy: a minimal token bucket. Package budget has one that
// can be shared, with a reserve, endpoints and statistics.
type bucket struct {
	level    tokens.Level
	capacity int64 // in units of package tokens
}

func newBucket(have, capacity float64) *bucket {
	p := &bucket{capacity: tokens.Units(capacity)}
	p.level.Set(tokens.Units(have))
	return p
}

// newEarnedBucket returns a bucket that starts on credit, and to which each call adds the deposit
// each.
func newEarnedBucket(each float64) *bucket {
	p := newBucket(0, tokens.EarningCalls*each)
	p.level.Credit(tokens.Units(tokens.CreditCalls * each))
	return p
}

func (p *bucket) Withdraw(_ time.Time, _ string, cost float64) (left, capacity float64, ok bool) {
	have, ok := p.level.Take(tokens.Units(cost))
	return tokens.Float(have), tokens.Float(p.capacity), ok
}

func (p *bucket) Deposit(_ string, amount float64) { p.level.Add(tokens.Units(amount), p.capacity) }

// Level implements leveled.
func (p *bucket) Level() (left, capacity float64) {
	return tokens.Float(p.level.Load()), tokens.Float(p.capacity)
}
