// Package slow finds routes whose requests take much longer than usual. A request without a deadline is
// never late, so operators would hear of it from clients only.
//
// # The rule
//
// Latency is the time from the arrival of the whole request to the head of its answer. The time that a
// client takes to send or to read does not count, nor does the time of a stream after its head.
//
// For each route, the time is divided into blocks of 10 s. Usual is the median of the 95th percentiles of
// the last 360 blocks with at least 5 answers, which is an hour of constant traffic; it needs 3 blocks. An
// answer is slow that took longer than
//
//	max(10·usual, usual + 500 ms)
//
// A route is slow if, of the answers of the last 10 s,
//
//	at least 8 and half of all, or at least 12 and a quarter of all, are slow.
//
// One slow request does not make a route slow, and neither does a rare slow path. While a route is slow,
// its blocks are set aside: slowness becomes usual only after an hour. If no answer comes, a slow route
// stays slow for a minute.
//
// # Departures
//
// A route of long polls becomes slow when the events that it waits for become rare. The proxy cannot
// distinguish this from an upstream that hangs. The configuration names such routes (latency_varies), and
// they are not counted.
package slow

import (
	"math"
	"sync/atomic"
	"time"
)

const (
	perOctave = 4
	octaves   = 20 // from 1 ms on, which is up to 17 min
	buckets   = perOctave*octaves + 2
)

// bucketOf returns the bucket of a latency. The first one has all below 1 ms.
func bucketOf(d time.Duration) int {
	if d < time.Millisecond {
		return 0
	}
	return min(1+int(perOctave*math.Log2(float64(d)/float64(time.Millisecond))), buckets-1)
}

// leastOf returns the lower bound of a bucket.
func leastOf(bucket int) time.Duration {
	if bucket == 0 {
		return 0
	}
	return time.Duration(math.Exp2(float64(bucket-1)/perOctave) * float64(time.Millisecond))
}

// Counts counts the answers of a route by latency. The zero Counts is ready for use. It is safe for
// concurrent use, takes no lock and allocates nothing.
type Counts struct {
	answers      [buckets]atomic.Uint64
	waited, sent atomic.Int64
}

// Add counts an answer to a request that waited here, and was then sent.
func (c *Counts) Add(waited, sent time.Duration) {
	c.answers[bucketOf(waited+sent)].Add(1)
	c.waited.Add(int64(waited))
	c.sent.Add(int64(sent))
}

// Read returns what was counted so far.
func (c *Counts) Read() (t Totals) {
	for i := range c.answers {
		t.answers[i] = c.answers[i].Load()
	}
	t.waited, t.sent = time.Duration(c.waited.Load()), time.Duration(c.sent.Load())
	return t
}

// Totals are Counts at one time.
type Totals struct {
	answers      [buckets]uint64
	waited, sent time.Duration
}

// since returns what was counted after an earlier time.
func (t *Totals) since(before *Totals) (d Totals) {
	for i := range t.answers {
		d.answers[i] = t.answers[i] - before.answers[i]
	}
	d.waited, d.sent = t.waited-before.waited, t.sent-before.sent
	return d
}

// above returns how many answers are in the bucket of a latency or above it.
func (t *Totals) above(d time.Duration) (n uint64) {
	for _, k := range t.answers[bucketOf(d):] {
		n += k
	}
	return n
}

func (t *Totals) all() uint64 { return t.above(0) }

// quantile returns a latency that a share of the answers does not exceed, to a fifth.
func (t *Totals) quantile(share float64) time.Duration {
	rank, sum := uint64(math.Ceil(share*float64(t.all()))), uint64(0)
	for i, n := range t.answers {
		if sum += n; sum >= rank && sum > 0 {
			return leastOf(min(i+1, buckets-1))
		}
	}
	return 0
}
