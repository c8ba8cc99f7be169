package budget

import (
	"sync/atomic"
	"time"

	"github.com/seed90641741/spillway/internal/invalid"
	"github.com/seed90641741/spillway/internal/tokens"
)

// reserveSeconds is how long the reserve of MinPerSecond lasts: the lifetime of
// tokens in Finagle and Linkerd.
const reserveSeconds = 10

// Config configures a [Bucket]. The zero Config is a bucket of 500 tokens that
// starts full and is refilled by deposits only.
type Config struct {
	// Capacity is how many tokens the bucket can hold. More of them let a client
	// ride out a longer burst of failures, and let more retries fall on a backend
	// that has just broken down. Zero means 500; it must be at most 1e9.
	Capacity float64
	// Empty says that the bucket starts with nothing but its reserve, so that
	// every retry was earned by a call before it. The default is to start full.
	Empty bool
	// Credit is how many tokens an Empty bucket starts with all the same. The first
	// deposits repay them: a fresh process can retry its first calls, and in the long run
	// spends only what was earned. Zero means none; it must be at most
	// Capacity.
	Credit float64
	// MinPerSecond is how many tokens each second brings, whatever else is
	// deposited, while the bucket holds less than ten seconds' worth of them. It
	// lets a client retry that makes too few calls to earn a retry, at the price
	// of as many retries per second and client that nothing else bounds. Zero
	// means none; it must be at most a tenth of Capacity.
	MinPerSecond float64
}

func (c Config) withDefaults() (Config, error) {
	if !(c.Capacity >= 0 && c.Capacity <= tokens.Max) {
		return c, invalid.Field("budget", "Capacity", c.Capacity, "positive and at most %v", float64(tokens.Max))
	}
	if c.Capacity == 0 {
		c.Capacity = 500
	}
	switch {
	case !(c.Credit >= 0 && c.Credit <= c.Capacity):
		return c, invalid.Field("budget", "Credit", c.Credit, "0 to Capacity (%v)", c.Capacity)
	case !(c.MinPerSecond >= 0 && c.MinPerSecond <= c.Capacity/reserveSeconds):
		return c, invalid.Field("budget", "MinPerSecond", c.MinPerSecond, "0 to a tenth of Capacity (%v)", c.Capacity)
	}
	return c, nil
}

// A Bucket is a token bucket. One Bucket may serve any number of strategies and
// clients, which then share its tokens. It is safe for concurrent use and takes
// no lock; make one with [New].
type Bucket struct {
	level tokens.Level

	capacity, reserve int64   // in units
	perSecond         float64 // MinPerSecond

	start  atomic.Pointer[time.Time] // when time was first seen
	filled atomic.Int64              // up to when, since start, time was counted

	withdrawals, rejections atomic.Uint64
}

// New returns a Bucket, or an error that names the field of c that is out of
// range.
func New(c Config) (*Bucket, error) {
	c, err := c.withDefaults()
	if err != nil {
		return nil, err
	}
	b := new(Bucket)
	b.configure(c)
	return b, nil
}

func (b *Bucket) configure(c Config) {
	b.capacity, b.reserve, b.perSecond = tokens.Units(c.Capacity), tokens.Units(c.MinPerSecond*reserveSeconds), c.MinPerSecond
	b.level.Add(b.capacity, b.capacity)
	if c.Empty {
		b.level.Set(b.reserve)
		b.level.Credit(min(tokens.Units(c.Credit), b.capacity-b.reserve))
	}
}

// Withdraw takes cost tokens out for a retry at the time now, if so many are there,
// and reports whether they were, with what the bucket holds after the decision
// and what it can hold. The key is not used: all endpoints pay from one bucket.
func (b *Bucket) Withdraw(now time.Time, _ string, cost float64) (left, capacity float64, ok bool) {
	b.refill(now)
	have, ok := b.level.Take(tokens.Units(cost))
	if ok {
		b.withdrawals.Add(1)
	} else {
		b.rejections.Add(1)
	}
	return tokens.Float(have), tokens.Float(b.capacity), ok
}

// Level returns how many tokens the bucket holds, and how many it can hold.
func (b *Bucket) Level() (left, capacity float64) {
	return tokens.Float(b.level.Load()), tokens.Float(b.capacity)
}

// Deposit puts amount tokens in: earned by an answer, or given back for a retry. What
// the bucket cannot hold is lost. The key is not used. A deposit reads no clock:
// the reserve is topped up when a retry next asks.
func (b *Bucket) Deposit(_ string, amount float64) {
	b.level.Add(tokens.Units(amount), b.capacity)
}

// refill counts the time since it was last counted.
func (b *Bucket) refill(now time.Time) {
	if b.perSecond == 0 {
		return
	}
	start := b.start.Load()
	if start == nil {
		b.begin(now)
		return
	}
	at, last := int64(now.Sub(*start)), b.filled.Load()
	earned := float64(at-last) * b.perSecond
	// Credit no less than 1000 units at a time, so that rounding takes at most
	// one part in a thousand.
	if earned < 1000 || !b.filled.CompareAndSwap(last, at) {
		return
	}
	b.level.Add(tokens.Units(earned/tokens.Unit), b.reserve)
}

// begin is apart from refill because it keeps now, which refill must not.
func (b *Bucket) begin(now time.Time) { b.start.CompareAndSwap(nil, &now) }

// Stats has the tokens of a [Bucket] and counts of its retries.
type Stats struct {
	Tokens        float64 // in the bucket when it was last used
	Capacity      float64 // maximum number of tokens
	PaidTotal     uint64  // retries paid for since the start
	RejectedTotal uint64  // retries for which there were too few tokens
}

// Stats returns how b stands.
func (b *Bucket) Stats(now time.Time) Stats {
	return Stats{
		Tokens:        tokens.Float(b.level.Load()),
		Capacity:      tokens.Float(b.capacity),
		PaidTotal:     b.withdrawals.Load(),
		RejectedTotal: b.rejections.Load(),
	}
}
