package main

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"
)

// What a call does.
const (
	kindCPU      = "cpu"      // burns CPU
	kindMixed    = "mixed"    // burns a fifth of it, waits, and burns the rest
	kindBlocking = "blocking" // waits for a slot of a small pool and holds it; burns nothing
)

var kinds = []string{kindCPU, kindMixed, kindBlocking}

const (
	service   = 1500 * time.Microsecond // CPU time of a call, where it burns any
	mixedWait = 5 * time.Millisecond
	slots     = 8
	slotHold  = 20 * time.Millisecond
)

// words says for people what a call does.
func words(kind string) string {
	switch kind {
	case kindMixed:
		return fmt.Sprintf("burns %v of one CPU and waits %v in between", service, mixedWait)
	case kindBlocking:
		return fmt.Sprintf("waits for one of %d slots and holds it for %v", slots, slotHold)
	}
	return fmt.Sprintf("burns %v of one CPU", service)
}

// deadlineOf is how long an answer is useful, from the intended send of the call.
func deadlineOf(kind string) time.Duration {
	if kind == kindBlocking {
		return 250 * time.Millisecond
	}
	return 100 * time.Millisecond
}

// worker returns what does the work of a call. It returns false if the client left
// before the work began.
func worker(kind string, rounds int) func(context.Context) bool {
	switch kind {
	case kindMixed:
		return func(context.Context) bool {
			burn(rounds / 5)
			<-time.After(mixedWait)
			burn(rounds - rounds/5)
			return true
		}
	case kindBlocking:
		return pool()
	}
	return func(context.Context) bool {
		burn(rounds)
		return true
	}
}

// pool is the work of a call that needs one of few slots, such as the connections of a
// database. Work that has begun is done to its end.
func pool() func(context.Context) bool {
	free := make(chan struct{}, slots)
	return func(ctx context.Context) bool {
		select {
		case free <- struct{}{}:
		case <-ctx.Done():
			return false
		}
		<-time.After(slotHold)
		<-free
		return true
	}
}

// sink keeps the compiler from removing the work.
var sink atomic.Uint64

// burn does a fixed amount of work: rounds of xorshift, however long they take. A fixed
// time instead would let an overloaded server do many calls at once.
func burn(rounds int) {
	x := uint64(88172645463325252)
	for range rounds {
		x ^= x << 13
		x ^= x >> 7
		x ^= x << 17
	}
	sink.Store(x)
}

// calibrate returns how many rounds take d on this machine when nothing disturbs them:
// the fastest of several tries.
func calibrate(d time.Duration) int {
	const tries, rounds = 20, 1_000_000
	best := time.Duration(1 << 62)
	for range tries {
		start := time.Now()
		burn(rounds)
		best = min(best, time.Since(start))
	}
	return max(1, int(float64(rounds)*float64(d)/float64(best)))
}
