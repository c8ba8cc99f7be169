package ratelimit

import (
	"math/bits"
	"sync/atomic"
	"time"

	"github.com/seed90641741/spillway"
)

// bucket is a token bucket as a debt of time. An admission changes one word
// only, so it needs no lock: it computes the next word and swaps it in, and starts again if
// the word has changed meanwhile.
type bucket struct {
	base   atomic.Pointer[time.Time] // the first time ever seen
	latest atomic.Int64              // the latest time seen, since base
	word   atomic.Int64
	terms  [2]atomic.Pointer[terms] // by the edition in the word
}

// A word is the time at which the bucket will be full, since base, and the edition of
// the terms that it was computed with. So no token is taken at an old rate after the rate
// has changed. An admission would have to last for 16 changes to miss them, and a process
// for 18 years to leave the range.
type word int64

const (
	editionBits = 4
	editions    = 1 << editionBits
)

func wordOf(full time.Duration, edition int64) word { return word(int64(full)<<editionBits | edition) }

func (w word) full() time.Duration { return time.Duration(w >> editionBits) }
func (w word) edition() int64      { return int64(w) & (editions - 1) }

// debt returns how much later than at the bucket will be full.
func (w word) debt(at time.Duration) time.Duration { return max(0, w.full()-at) }

// see takes note of the time and returns it. A time that steps back is the latest
// one seen.
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

// begin makes now the first time ever seen, unless there is one.
func (b *bucket) begin(now time.Time) *time.Time {
	b.base.CompareAndSwap(nil, &now)
	return b.base.Load()
}

// load returns the word and the terms that it was computed with, or, if the terms change
// meanwhile, other ones: then the word has changed, too.
func (b *bucket) load() (word, *terms) {
	w := word(b.word.Load())
	return w, b.terms[w.edition()%2].Load()
}

func (b *bucket) swap(from, to word) bool { return b.word.CompareAndSwap(int64(from), int64(to)) }

// take takes a token at the time at, unless the wait for it is longer than most. It
// returns how long that is, and whether the token was taken.
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

// change replaces the terms. Only one change is made at a time. It keeps the tokens as a
// share of the capacity, and the tokens owed to waiting callers as a number, as far
// as the new depth allows for it.
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

// rescale returns what a debt is in other terms. A bucket without limit is full.
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

// steps is how many different hints a rejection can have: 1 ms, 2 ms, 4 ms, up to
// more than the longest wait, which is two days.
const steps = 29

// terms is a Config in the units of the bucket. It never changes.
type terms struct {
	interval   time.Duration // that one token takes; zero for no limit
	burst      time.Duration // that the whole bucket takes
	depth      int
	exempt     Exempt
	rejections [steps]spillway.RejectedError
}

// rejection returns the rejection with the least hint that is not below wait.
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
