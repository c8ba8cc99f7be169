package inflight

import (
	"sync"
	"sync/atomic"
	"time"

	"github.com/seed90641741/spillway"
)

// classes keeps places free for higher classes. A place that is taken cannot be taken back,
// so it has to be free before.
type classes struct {
	held   [spillway.Criticalities]atomic.Int64 // places, by class
	called [spillway.Criticalities]atomic.Int64 // when a class last called, to a second; 0: never
	above  [spillway.Criticalities - 1]peak     // of the classes above each but the highest

	tight    atomic.Bool   // about as much is offered as the limit has places for
	offered  atomic.Uint64 // since that was last measured: requests, and the sum of those in flight at each arrival,
	rejected atomic.Int64  // and requests that were rejected

	measuring    sync.Mutex
	spans, looks atomic.Int64 // when the current ones end, at the latest
}

// A peak is the most places that some classes had together, or wanted when none was free.
type peak struct{ now, before atomic.Int64 }

// All times are in nanoseconds since 1970.
const (
	// span is how long a peak is remembered, and at most twice as long. The offered load is
	// measured as often, and after each batch of requests.
	span = int64(time.Second)
	// batch is so many requests that the measure is wrong by an eighth.
	batch = 64
	// offeredBits is how many bits of offered count requests. The sum is above them: one word is
	// changed at each arrival. A batch is far below both, and the next begins from zero.
	offeredBits = 20
	// seldom is how long after a call a class still counts.
	seldom = int64(time.Minute)

	// tightShare is the offered load, relative to the limit, from which places are kept. Below
	// it a limit of 24 has no place for less than one in twenty.
	tightShare = 0.8
	// seldomShare is the part of the limit that is kept for higher classes which call seldom:
	// a sixteenth. Below 16, a place is too much.
	seldomShare = 16
)

// reserved returns how many places below the limit a class must leave free at the time at.
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

// higher returns how many places the classes above one have.
func (c *classes) higher(class int) (n int64) {
	for i := class + 1; i < len(c.held); i++ {
		n += c.held[i].Load()
	}
	return n
}

// measure counts an arrival, and periodically determines whether the limit is tight. By
// Little's law, rejected requests would have added as much in flight as admitted ones.
func (c *classes) measure(at, word int64) {
	offered := c.offered.Add(uint64(max(word>>32, 0))<<offeredBits | 1)
	if offered%(1<<offeredBits) < batch && !over(&c.looks, at) || !c.measuring.TryLock() {
		return
	}
	defer c.measuring.Unlock()
	if c.offered.Load()%(1<<offeredBits) < batch && !over(&c.looks, at) {
		return // it has just been measured
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

// over reports whether a span has ended. One that ends too late began before the clock
// stepped back.
func over(ends *atomic.Int64, at int64) bool {
	end := ends.Load()
	return at >= end || end-at > span
}

// took counts a place that a class has taken.
func (c *classes) took(at int64, class int) {
	c.held[class].Add(1)
	c.call(at, class)
	for lower := range class {
		raise(&c.above[lower].now, c.higher(lower))
	}
}

// missed counts a slot that a class needed and did not get. No lower class gets one while
// that happens.
func (c *classes) missed(at int64, class int, limit uint32) {
	c.rejected.Add(1)
	c.call(at, class)
	for lower := range class {
		if p := &c.above[lower].now; p.Load() < int64(limit) {
			p.Add(1)
		}
	}
}

// call notes that a class calls.
func (c *classes) call(at int64, class int) {
	if apart(at, c.called[class].Load()) > span {
		c.called[class].Store(at)
	}
}

// apart returns how far two times are apart. If the clock stepped back, the earlier one is later.
func apart(a, b int64) int64 { return max(a-b, b-a) }

// raise makes a number at least n.
func raise(number *atomic.Int64, n int64) {
	for was := number.Load(); n > was; was = number.Load() {
		if number.CompareAndSwap(was, n) {
			return
		}
	}
}
