package concurrency

import (
	"math"
	"time"

	"github.com/seed90641741/spillway"
)

// What a caller with a waiting queue must know.

// Ask reports whether one more request of a key may start at the time now, and what is
// known of the limit that decides. If it may not, the Limiter knows that one waits.
func (l *Limiter) Ask(now time.Time, key string) spillway.Pace {
	l.mu.Lock()
	defer l.mu.Unlock()
	slot := l.slot(now, key)
	p := spillway.Pace{Free: l.free(slot), Fastest: l.fastest.value()}
	k := &l.keys[slot]
	decides := l.all
	if l.decides(slot) {
		p.Scope, decides = slot+1, k.limit
	}
	p.Left = min(k.left(&l.config), l.all.left(&l.config), l.room(), k.spare())
	p.Found, p.Saturated, p.Usual = decides.found(), decides.full(), k.work()
	p.Parked, p.Wait = decides.parkAfter(), decides.wait()
	p.Latency, p.Throughput, p.Abandoned = decides.work()/l.runs, decides.throughput()*l.runs, decides.abandoned
	if !p.Free && decides.state == Open && p.Latency > 0 {
		// Max or MaxByKey is reached. What is served then follows from Little's law; what was served before, maybe in a quiet time, is less.
		p.Throughput = float64(decides.working) / p.Latency
	}
	return p
}

// wait returns how long a request waits in the queue that was found.
func (l *limit) wait() time.Duration {
	if l.state != Limiting {
		return 0
	}
	return seconds(max(0, l.latency.mean-l.base))
}

// left returns how many may start.
func (l *limit) left(bounds *Config) float64 {
	return math.Ceil(max(min(l.window, l.slow.most), float64(bounds.Min))) - float64(l.working)
}

// found reports whether a queue was found, also while its base latency is measured again.
func (l *limit) found() bool { return l.state == Limiting || l.state != Open && l.before.limiting }

// full reports whether as many are working as are in service at once, where a queue was found.
func (l *limit) full() bool { return l.found() && float64(l.working) >= l.rate*l.base }

// work returns how many seconds a request takes once it runs, as far as is known.
func (l *limit) work() float64 {
	if l.found() {
		return l.base
	}
	return l.latency.mean
}

// throughput returns how many requests end per second, as far as is known.
func (l *limit) throughput() float64 {
	if l.state != Open || l.ended < round/4 {
		return l.rate
	}
	_, rate := l.measured()
	return rate
}
