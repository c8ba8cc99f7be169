package clients

import (
	"cmp"
	"time"

	"github.com/seed90641741/spillway/cmd/spillway/internal/gateway/config"
)

// Bounds are the maximum times to wait for a client. Zero or less is no bound.
type Bounds struct {
	body   time.Duration // beyond what the rate accounts for
	answer time.Duration // likewise
	total  time.Duration // for a body, however fast
	idle   time.Duration // of a stream
	rate   float64       // bytes per second
}

// BoundsOf returns the bounds of a route. Fields that it does not set are the listener's.
func BoundsOf(l *config.Listener, r *config.Route) *Bounds {
	return &Bounds{
		body:   cmp.Or(r.BodyTimeout, l.BodyTimeout),
		answer: l.WriteTimeout,
		total:  cmp.Or(r.MaxBodyTime, l.MaxBodyTime),
		idle:   cmp.Or(r.StreamIdle, l.StreamIdle),
		rate:   float64(cmp.Or(r.MinRate, l.MinRate)),
	}
}

// Least returns the shortest bound, which determines the interval of checks.
func (b *Bounds) Least() time.Duration {
	least := slowWatch
	for _, d := range []time.Duration{b.body, b.answer, b.total, b.idle} {
		if d > 0 && d/watchShare < least {
			least = d / watchShare
		}
	}
	return max(least, quickWatch)
}

// Exchanges are checked often enough that a bound is exceeded by an eighth at most, but not so
// often that the checks take a noticeable share of a processor: 10,000 exchanges take about a
// millisecond.
const (
	slowWatch  = 250 * time.Millisecond
	quickWatch = 10 * time.Millisecond
	watchShare = 8
)
