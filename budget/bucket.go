package budget

import (
	"sync/atomic"
	"time"

	"github.com/seed90641741/spillway/internal/invalid"
	"github.com/seed90641741/spillway/internal/tokens"
)

// reserveSeconds is the size of the reserve in seconds of MinPerSecond. It equals the lifetime of
// tokens in Finagle and Linkerd.
const reserveSeconds = 10

// Config configures a [Bucket]. The zero Config is a bucket of 500 tokens that starts full, and
// that only deposits refill.
type Config struct {
	// Capacity is the number of tokens that the bucket can hold. With more tokens, a client
	// survives a longer burst of failures, and sends more retries to a backend that has just broken
	// down. Zero means 500; it must be at most 1e9.
	Capacity float64
	// Empty means that the bucket starts with only its reserve, so that each retry must be earned
	// by an earlier call. By default the bucket starts full.
	Empty bool
	// Credit is the number of tokens with which an Empty bucket starts. The first deposits repay
	// them. So a new process can retry its first calls, and in the long run spends only what was
	// earned. Zero means none; it must be at most Capacity.
	Credit float64
	// MinPerSecond is the number of tokens that each second adds, while the bucket holds less than
	// ten seconds of them. With it a client can retry even if it makes too few calls to earn a
	// retry. Nothing else limits these retries: each client may send MinPerSecond of them per
	// second. Zero means none; it must be at most a tenth of Capacity.
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

// A Bucket is a token bucket. Any number of strategies and clients may share one. It is safe for
// concurrent use and takes no lock. Make one with [New].
type Bucket struct {
	level tokens.Level

	capacity, reserve int64 // in units of package tokens
	perSecond         float64

	start  atomic.Pointer[time.Time] // the time of the first Withdraw
	filled atomic.Int64              // up to when refill has added tokens, in ns since start

	withdrawals, rejections atomic.Uint64
}

// New returns a Bucket. An error names the field of c that is out of range.
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

// Withdraw takes cost tokens for a retry at the time now, if the bucket has so many. ok reports
// whether it has. left is the number of tokens after the decision, and capacity the maximum. The
// key is not used: all endpoints pay from one bucket.
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

// Level returns the number of tokens in the bucket, and its capacity.
func (b *Bucket) Level() (left, capacity float64) {
	return tokens.Float(b.level.Load()), tokens.Float(b.capacity)
}

// Deposit adds amount tokens, which an answer has earned or a retry gives back. Tokens above the
// capacity are lost. The key is not used. A deposit reads no clock: the next Withdraw fills the
// reserve.
func (b *Bucket) Deposit(_ string, amount float64) {
	b.level.Add(tokens.Units(amount), b.capacity)
}

// refill adds perSecond tokens for each second since it last added any, up to the reserve.
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
	// At least 1000 units are added at a time, so rounding loses at most one part in a thousand.
	if earned < 1000 || !b.filled.CompareAndSwap(last, at) {
		return
	}
	b.level.Add(tokens.Units(earned/tokens.Unit), b.reserve)
}

// begin is separate from refill because its argument escapes to the heap.
func (b *Bucket) begin(now time.Time) { b.start.CompareAndSwap(nil, &now) }

// Stats is the state of a [Bucket], and counts of its retries.
type Stats struct {
	Tokens        float64 // in the bucket when it was last used
	Capacity      float64 // maximum number of tokens
	PaidTotal     uint64  // retries that were paid for, since the start
	RejectedTotal uint64  // retries with too few tokens, since the start
}

// Stats returns the state of b.
func (b *Bucket) Stats(now time.Time) Stats {
	return Stats{
		Tokens:        tokens.Float(b.level.Load()),
		Capacity:      tokens.Float(b.capacity),
		PaidTotal:     b.withdrawals.Load(),
		RejectedTotal: b.rejections.Load(),
	}
}
