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
	"sync/atomic"
	"time"

	"github.com/seed90641741/spillway/internal/admin/histogram"
)

// Counts counts the answers of a route by latency. The zero Counts is ready for use. It is safe for
// concurrent use, takes no lock and allocates nothing.
type Counts struct {
	latency histogram.Histogram
	waited  atomic.Int64
}

// Add counts an answer to a request that waited here, and was then sent.
func (c *Counts) Add(waited, sent time.Duration) {
	c.latency.Add(waited + sent)
	c.waited.Add(int64(waited))
}

// Read returns what was counted so far.
func (c *Counts) Read() (t Totals) {
	c.latency.Read(&t.Counts)
	t.waited = time.Duration(c.waited.Load())
	return t
}

// Totals are Counts at one time.
type Totals struct {
	histogram.Counts

	waited time.Duration
}

// since returns what was counted after an earlier time.
func (t *Totals) since(before *Totals) Totals {
	return Totals{t.Since(&before.Counts), t.waited - before.waited}
}
