package main

import "math"

// bbr is the limiter of go-kratos/aegis:
//
//	limit = most requests that ended in 0.1 s · least mean time in 0.1 s
//
// over the last 10 s. Times count in whole milliseconds, rounded up. Aegis applies
// the limit only while CPU usage is 80 % or more. Here the limit always applies:
// with an idle CPU the column would equal none. Without any sample there is no
// limit.
//
// Source: github.com/go-kratos/aegis v0.2.0, ratelimit/bbr.
type bbr struct {
	p       *Process
	buckets [100]bucket
	now     int // number of the current bucket
	known   int // the limit, from all buckets before the current one
}

// bucket has the number of requests that ended within 0.1 s and the sum of their
// times in ms.
type bucket struct {
	n   int
	sum float64
}

const bucketTime = 100 * ms

func newBBR(p *Process) rule { return &bbr{p: p, known: unlimited} }

func (b *bbr) limit() int {
	b.advance(b.p.Now())
	return b.known
}

// advance empties the buckets of the time that has passed.
func (b *bbr) advance(t Time) {
	now := int(t / bucketTime)
	if now == b.now {
		return
	}
	for i := max(b.now, now-len(b.buckets)) + 1; i < now; i++ {
		b.buckets[i%len(b.buckets)] = bucket{}
	}
	b.known = b.product(now % len(b.buckets))
	b.buckets[now%len(b.buckets)] = bucket{}
	b.now = now
}

// product computes the limit from all buckets except one.
func (b *bbr) product(skip int) int {
	most, least := 1, math.Inf(1)
	for i, x := range b.buckets {
		if i == skip || x.n == 0 {
			continue
		}
		most = max(most, x.n)
		least = min(least, x.sum/float64(x.n))
	}
	if math.IsInf(least, 1) {
		return unlimited
	}
	// Aegis rejects above the product, and never the second request.
	return max(2, 1+int(float64(most)*max(1, math.Ceil(least))*float64(sec/bucketTime)/1000))
}

func (b *bbr) learn(s sample) {
	b.advance(s.at)
	x := &b.buckets[b.now%len(b.buckets)]
	x.n++
	x.sum += math.Ceil(s.took.Seconds() * 1e3)
}
