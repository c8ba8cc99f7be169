package concurrency

import (
	"math"
	"time"

	"github.com/seed90641741/spillway/internal/pace"
)

// A caller with a waiting queue asks for the state of the limits with these methods.

// Ask reports whether one more request of a key may start at the time now, and describes the limit
// that decides. If it may not start, the Limiter assumes that the request waits.
func (l *Limiter) Ask(now time.Time, key string) pace.Pace {
	l.mu.Lock()
	defer l.mu.Unlock()
	slot := l.slot(now, key)
	p := pace.Pace{Free: l.free(slot), Fastest: l.fastest.value()}
	k := &l.keys[slot]
	decides := l.all
	if l.decides(slot) {
		p.Scope, decides = slot+1, k.limit
	}
	p.Left = min(k.left(&l.config), l.all.left(&l.config), l.headroom(), k.spare())
	p.Found, p.Saturated, p.Usual = decides.found(), decides.full(), k.work()
	p.Parked, p.Wait = decides.parkAfter(), decides.wait()
	p.Latency, p.Throughput, p.Abandoned = decides.work()/l.runs, decides.throughput()*l.runs, decides.abandoned
	if !p.Free && decides.state == Open && p.Latency > 0 {
		// MaxInFlight or MaxInFlightByKey is reached, so Little's law gives the throughput. The
		// throughput of the last round may be from a time with few requests, and too low.
		p.Throughput = float64(decides.working) / p.Latency
	}
	return p
}

// wait returns how long a request waits in the queue that was found, 0 unless Limiting.
func (l *limit) wait() time.Duration {
	if l.state != Limiting {
		return 0
	}
	return seconds(max(0, l.latency.mean-l.base))
}

// left returns how many more requests may start. It is below zero if more are working than the
// limit allows.
func (l *limit) left(bounds *Config) float64 {
	return math.Ceil(max(min(l.window, l.slow.most), float64(bounds.MinInFlight))) - float64(l.working)
}

// found reports whether a queue was found. It stays true while a trial measures the base latency
// again.
func (l *limit) found() bool { return l.state == Limiting || l.state != Open && l.before.limiting }

// full reports whether a queue was found, and at least one BDP of requests is working.
func (l *limit) full() bool { return l.found() && float64(l.working) >= l.rate*l.base }

// work returns how many seconds a request takes without waiting for the limit; 0 is unknown.
func (l *limit) work() float64 {
	if l.found() {
		return l.base
	}
	return l.latency.mean
}

// throughput returns the answers per second of this round, or of an earlier one if fewer than eight
// requests have ended in this one.
func (l *limit) throughput() float64 {
	if l.state != Open || l.ended < round/4 {
		return l.rate
	}
	_, rate := l.measured()
	return rate
}
