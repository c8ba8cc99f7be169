package ratelimit

import (
	"math/bits"
	"sync/atomic"
	"time"

	"github.com/seed90641741/spillway"
)

// bucket is a token bucket, kept as a debt of time. An admission changes only word, so it needs no
// lock: it computes the next word and swaps it in, and starts again if word has changed meanwhile.
type bucket struct {
	base   atomic.Pointer[time.Time] // the first time that was seen
	latest atomic.Int64              // the latest time that was seen, in nanoseconds since base
	word   atomic.Int64
	terms  [2]atomic.Pointer[terms] // terms of even and of odd editions
}

// A word is the time at which the bucket will be full, since base, and the edition of the terms
// with which it was computed. So no token is taken at an old rate after the rate has changed. An
// admission would miss the change only if there were 16 changes during it. The time overflows after
// 18 years.
type word int64

const (
	editionBits = 4
	editions    = 1 << editionBits
)

func wordOf(full time.Duration, edition int64) word { return word(int64(full)<<editionBits | edition) }

func (w word) full() time.Duration { return time.Duration(w >> editionBits) }
func (w word) edition() int64      { return int64(w) & (editions - 1) }

// debt returns how long it takes from the time at until the bucket is full; zero if it is full.
func (w word) debt(at time.Duration) time.Duration { return max(0, w.full()-at) }

// see records the time now and returns it, as the time since base. For a time before the latest one
// it returns the latest.
func (b *bucket) see(now time.Time) time.Duration {
	base := b.base.Load()
	if base == nil {
		base = b.begin(now)
	}
	at := int64(now.Sub(*base))
	for {
		latest := b.latest.Load()
		if at <= latest {
			return time.Duration(latest)
		}
		if b.latest.CompareAndSwap(latest, at) {
			return time.Duration(at)
		}
	}
}

// begin sets base to now, unless it is set, and returns it.
func (b *bucket) begin(now time.Time) *time.Time {
	b.base.CompareAndSwap(nil, &now)
	return b.base.Load()
}

// load returns the word and its terms. If the terms change meanwhile, they may not belong to the
// word; but then the word has changed, too, and swap fails.
func (b *bucket) load() (word, *terms) {
	w := word(b.word.Load())
	return w, b.terms[w.edition()%2].Load()
}

func (b *bucket) swap(from, to word) bool { return b.word.CompareAndSwap(int64(from), int64(to)) }

// take takes a token at the time at, unless the wait for it is longer than most. It returns the
// wait, and whether it has taken the token.
func (b *bucket) take(at, most time.Duration) (wait time.Duration, t *terms, ok bool) {
	for {
		w, t := b.load()
		debt := w.debt(at)
		wait = debt + t.interval - t.burst
		if wait > most {
			return wait, t, false
		}
		if t.interval == 0 || b.swap(w, wordOf(at+debt+t.interval, w.edition())) {
			return wait, t, true
		}
	}
}

// giveBack returns a token at the time at.
func (b *bucket) giveBack(at time.Duration) {
	for {
		w, t := b.load()
		if b.swap(w, wordOf(at+w.debt(at)-t.interval, w.edition())) {
			return
		}
	}
}

// change replaces the terms. It must not be called concurrently. The tokens in the bucket stay the
// same share of the capacity. Waiting callers are owed the same number of tokens, or the new depth
// if that is less.
func (b *bucket) change(to *terms) {
	at := time.Duration(b.latest.Load())
	for {
		w, from := b.load()
		next := (w.edition() + 1) % editions
		b.terms[next%2].Store(to)
		full := at
		if from != nil {
			full += from.rescale(to, w.debt(at))
		}
		if b.swap(w, wordOf(full, next)) {
			return
		}
	}
}

// rescale converts a debt from the terms t to the terms to. A bucket without a limit has no debt.
func (t *terms) rescale(to *terms, debt time.Duration) time.Duration {
	if to.interval == 0 || t.interval == 0 {
		return 0
	}
	inside := float64(min(debt, t.burst)) / float64(t.burst)
	owed := min(float64(max(0, debt-t.burst))/float64(t.interval), float64(to.depth))
	return time.Duration(float64(inside*float64(to.burst)) + float64(owed*float64(to.interval)))
}

func (b *bucket) tokens(at time.Duration) (tokens, capacity float64) {
	w, t := b.load()
	if t.interval == 0 {
		return 0, 0
	}
	per := float64(t.interval)
	return float64(t.burst-w.debt(at)) / per, float64(t.burst) / per
}

// steps is the number of retry delays of a rejection: 1 ms, 2 ms, 4 ms, up to more than the longest
// wait, which is two days.
const steps = 29

// terms are a Config in the units of the bucket. They never change.
type terms struct {
	interval   time.Duration // time for one token; zero means no limit
	burst      time.Duration // time for a full bucket
	depth      int
	exempt     Exempt
	rejections [steps]spillway.RejectedError
}

// rejection returns the rejection with the smallest retry delay that is not below wait.
func (t *terms) rejection(wait time.Duration) error {
	return &t.rejections[min(bits.Len64(uint64((wait-1)/time.Millisecond)), steps-1)]
}

func (t *terms) makeRejections(rate float64) {
	for i := range t.rejections {
		t.rejections[i] = spillway.RejectedError{
			Policy:     "ratelimit",
			Reason:     spillway.ReasonRateLimit,
			Limit:      rate,
			Unmeasured: true,
			Unit:       "per second",
			Advice:     "more arrive than the limit lets in; send less, spread bursts, or raise Rate if there is room",
			RetryAfter: time.Millisecond << i,
		}
	}
}
