package process

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/seed90641741/spillway"
)

// What a call does at the backend.
const (
	KindCPU      = "cpu"      // burns CPU
	KindMixed    = "mixed"    // burns a fifth of it, waits, and burns the rest
	KindBlocking = "blocking" // waits for a slot of a small pool and holds it; burns nothing
)

// MixedWait is how long a call of KindMixed waits, and Slots is the size of the pool of KindBlocking.
const (
	MixedWait = 5 * time.Millisecond
	Slots     = 8
)

// cheapAnswer is how many times cheaper a degraded answer is.
const cheapAnswer = 3

// work returns the work of a call. It reports the processor time of the work relative to the calibration, 0 if it burns none,
// and false if the caller was gone before the work could begin.
func (b Backend) work() func(context.Context) (slowdown float64, done bool) {
	switch b.Kind {
	case KindMixed:
		return b.burnAndWait
	case KindBlocking:
		return b.pool()
	}
	return func(ctx context.Context) (float64, bool) { return b.burn(b.rounds(ctx)), true }
}

// cheaper returns how many times cheaper than usual the answer to a call is to be.
func (b Backend) cheaper(ctx context.Context) int {
	if b.Degrade && spillway.DegradationFrom(ctx) > spillway.DegradationNone {
		return cheapAnswer
	}
	return 1
}

func (b Backend) rounds(ctx context.Context) int { return b.Rounds / b.cheaper(ctx) }

// burnAndWait burns a fifth, waits, and burns the rest.
func (b Backend) burnAndWait(ctx context.Context) (float64, bool) {
	rounds := b.rounds(ctx)
	burn(rounds / 5)
	time.Sleep(MixedWait) // it is the work of this kind of backend
	return b.burn(rounds - rounds/5), true
}

// pool returns the work of a call that needs one of few slots, such as the
// connections of a database. It waits for one while its caller waits; what
// was begun is done to its end.
func (b Backend) pool() func(context.Context) (float64, bool) {
	free := make(chan struct{}, Slots)
	return func(ctx context.Context) (float64, bool) {
		select {
		case free <- struct{}{}:
		case <-ctx.Done():
			return 0, false
		}
		time.Sleep(b.Service / time.Duration(b.cheaper(ctx))) // it is the work of this kind of backend
		<-free
		return 0, true
	}
}

// burnParts is in how many parts a call burns its rounds.
const burnParts = 8

// burn burns rounds and returns their processor time relative to the calibration. It is estimated from the fastest part: during
// the others, other programs may have used the processor.
func (b Backend) burn(rounds int) float64 {
	part := max(rounds/burnParts, 1)
	fastest := timeBurn(part)
	for range burnParts - 1 {
		fastest = min(fastest, timeBurn(part))
	}
	return float64(fastest) / (float64(part) / float64(max(b.Rounds, 1)) * float64(b.Service))
}

// sink keeps the compiler from seeing that the work is for nothing.
var sink atomic.Uint64

// burn does a fixed amount of work: rounds of xorshift, however long they take.
// A fixed time instead would let an overloaded backend do many calls at once.
func burn(rounds int) {
	x := uint64(88172645463325252)
	for range rounds {
		x ^= x << 13
		x ^= x >> 7
		x ^= x << 17
	}
	sink.Store(x)
}

// calibrate returns how many rounds take d on this machine when nothing
// disturbs them: the fastest of several tries, of which try returns the time.
func calibrate(d time.Duration, try func(rounds int) time.Duration) int {
	const tries, rounds = 20, 1_000_000
	best := time.Duration(1 << 62)
	for range tries {
		best = min(best, try(rounds))
	}
	return max(1, int(float64(rounds)*float64(d)/float64(best)))
}

// timeBurn returns how long some rounds take now.
func timeBurn(rounds int) time.Duration {
	start := time.Now()
	burn(rounds)
	return time.Since(start)
}
