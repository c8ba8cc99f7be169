package inflight

import (
	"sync"
	"sync/atomic"
	"time"

	"github.com/seed90641741/spillway"
)

// classes keeps slots free for higher classes. A slot cannot be taken back from a request, so it
// must be kept free before it is needed.
type classes struct {
	held   [spillway.Criticalities]atomic.Int64 // slots in use, by class
	called [spillway.Criticalities]atomic.Int64 // last call, to about a second; 0: none
	above  [spillway.Criticalities - 1]peak     // peaks of all classes above a class

	tight atomic.Bool // the limit is almost reached, or exceeded
	// offered counts since the last measurement: arrivals, and the sum of requests in flight at
	// each.
	offered  atomic.Uint64
	rejected atomic.Int64 // rejected requests since the last measurement

	measuring    sync.Mutex
	spans, looks atomic.Int64 // when the current span of peaks ends, and the current measurement
}

// A peak is the most slots that some classes together had in a period, or needed when no slot was
// free. now is for the current period, and before for the one before it.
type peak struct{ now, before atomic.Int64 }

// Times are in nanoseconds since 1970.
const (
	// span is the period of a peak, and the longest time between two measurements of tight.
	span = int64(time.Second)
	// batch is the number of arrivals after which tight is measured. With so many, the relative
	// error is about an eighth.
	batch = 64
	// offeredBits is how many low bits of offered count arrivals; the sum is in the bits above. One
	// word for both is one change per arrival. Neither overflows, because each measurement sets
	// offered to zero.
	offeredBits = 20
	// seldom is how long a class counts after its last call.
	seldom = int64(time.Minute)

	// tightShare is the share of the limit from which the limit is tight. Below it, a limit of 24
	// has no free slot for less than one arrival in twenty.
	tightShare = 0.8
	// seldomShare: 1/16 of the limit is kept for higher classes that call seldom. If the limit is
	// below 16, even one slot would be too much.
	seldomShare = 16
)

// reserved returns how many slots below the limit a class must leave free at the time at.
func (c *classes) reserved(at int64, class int, word int64) uint32 {
	c.measure(at, word)
	limit := int64(uint32(word))
	n := int64(0)
	for i := class + 1; i < len(c.called); i++ {
		if last := c.called[i].Load(); last != 0 && apart(at, last) < seldom {
			n = limit / seldomShare
		}
	}
	if class < len(c.above) && c.tight.Load() {
		p := &c.above[class]
		n = max(n, min(max(p.now.Load(), p.before.Load())-c.higher(class), limit))
	}
	return uint32(n)
}

// higher returns how many slots the classes above class use.
func (c *classes) higher(class int) (n int64) {
	for i := class + 1; i < len(c.held); i++ {
		n += c.held[i].Load()
	}
	return n
}

// measure counts an arrival, and from time to time measures whether the limit is tight. By Little's
// law, rejected requests would have added as many in flight as admitted ones did.
func (c *classes) measure(at, word int64) {
	offered := c.offered.Add(uint64(max(word>>32, 0))<<offeredBits | 1)
	if offered%(1<<offeredBits) < batch && !over(&c.looks, at) || !c.measuring.TryLock() {
		return
	}
	defer c.measuring.Unlock()
	if c.offered.Load()%(1<<offeredBits) < batch && !over(&c.looks, at) {
		return // another goroutine has just measured
	}
	offered = c.offered.Swap(0)
	sum, admitted := offered>>offeredBits, int64(offered%(1<<offeredBits))-c.rejected.Swap(0)
	c.tight.Store(float64(sum) >= tightShare*float64(uint32(word))*float64(max(admitted, 0)))
	c.looks.Store(at + span)
	if !over(&c.spans, at) {
		return
	}
	c.spans.Store(at + span)
	for i := range c.above {
		p := &c.above[i]
		p.before.Store(p.now.Load())
		p.now.Store(c.higher(i))
	}
}

// over reports whether a period has ended. If its end is more than a span ahead, the clock was set
// back, and the period has ended, too.
func over(ends *atomic.Int64, at int64) bool {
	end := ends.Load()
	return at >= end || end-at > span
}

// took counts a slot that a class has taken.
func (c *classes) took(at int64, class int) {
	c.held[class].Add(1)
	c.call(at, class)
	for lower := range class {
		raise(&c.above[lower].now, c.higher(lower))
	}
}

// missed counts a slot that a class needed and did not get. It raises the peaks, so that lower
// classes get no slot while this happens.
func (c *classes) missed(at int64, class int, limit uint32) {
	c.rejected.Add(1)
	c.call(at, class)
	for lower := range class {
		if p := &c.above[lower].now; p.Load() < int64(limit) {
			p.Add(1)
		}
	}
}

// call records that a class calls.
func (c *classes) call(at int64, class int) {
	if apart(at, c.called[class].Load()) > span {
		c.called[class].Store(at)
	}
}

// apart returns the distance between two times, in either order: the clock may have been set back.
func apart(a, b int64) int64 { return max(a-b, b-a) }

// raise sets number to n if it is less.
func raise(number *atomic.Int64, n int64) {
	for was := number.Load(); n > was; was = number.Load() {
		if number.CompareAndSwap(was, n) {
			return
		}
	}
}
