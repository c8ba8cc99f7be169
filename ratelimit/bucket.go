package ratelimit

import (
	"math/bits"
	"time"

	"github.com/seed90641741/spillway"
)

// bucket is a token bucket as a debt of time.
type bucket struct {
	base time.Time     // the first time ever seen
	at   time.Duration // the latest time seen, since base
	full time.Duration // when the bucket will be full, since base
}

// see takes note of the time and returns it. A time that steps back is the latest
// one seen.
func (b *bucket) see(now time.Time) time.Duration {
	if b.base.IsZero() {
		b.base = now
	}
	b.at = max(b.at, now.Sub(b.base))
	return b.at
}

func (b *bucket) debt() time.Duration { return max(0, b.full-b.at) }

// wait returns how long it takes until there is a token that nobody waits for;
// zero or less if there is one.
func (b *bucket) wait(t *terms) time.Duration { return b.debt() + t.interval - t.burst }

func (b *bucket) take(interval time.Duration) { b.full = b.at + b.debt() + interval }

// rescale keeps the tokens as a share of the capacity, and those that are owed
// to callers who wait as a number, as far as the new depth allows for it.
func (b *bucket) rescale(from, to *terms) {
	if to.interval == 0 || from.interval == 0 {
		b.full = b.at // a bucket without limit was full
		return
	}
	debt := b.debt()
	inside := float64(min(debt, from.burst)) / float64(from.burst)
	owed := min(float64(max(0, debt-from.burst))/float64(from.interval), float64(to.depth))
	b.full = b.at + time.Duration(float64(inside*float64(to.burst))+float64(owed*float64(to.interval)))
}

func (b *bucket) tokens(t *terms) (tokens, capacity float64) {
	if t.interval == 0 {
		return 0, 0
	}
	per := float64(t.interval)
	return float64(t.burst-b.debt()) / per, float64(t.burst) / per
}

// steps is how many different hints a refusal can have: 1 ms, 2 ms, 4 ms, up to
// more than the longest wait, which is two days.
const steps = 29

// terms is a Config in the units of the bucket. It never changes.
type terms struct {
	interval time.Duration // that one token takes; zero for no limit
	burst    time.Duration // that the whole bucket takes
	depth    int
	exempt   Exempt
	refusals [steps]spillway.RejectedError
}

// refusal returns the refusal with the least hint that is not below wait.
func (t *terms) refusal(wait time.Duration) error {
	return &t.refusals[min(bits.Len64(uint64((wait-1)/time.Millisecond)), steps-1)]
}

func (t *terms) makeRefusals(rate float64) {
	for i := range t.refusals {
		t.refusals[i] = spillway.RejectedError{
			Policy:     "ratelimit",
			Reason:     spillway.ReasonRateLimit,
			Level:      rate,
			Limit:      rate,
			Unit:       "per second",
			Advice:     "more arrive than the limit lets in; send less, spread bursts, or raise Rate if there is room",
			RetryAfter: time.Millisecond << i,
		}
	}
}
