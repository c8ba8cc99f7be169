package attempts

import (
	"sync/atomic"
	"time"
)

// pending counts requests of the newest segment of a window without a lock, so that many
// processors do not wait for one another. Whoever reads the window adds these counts first.
type pending struct {
	until  atomic.Int64  // end of the segment, as a duration after first; 0: take the lock
	room   atomic.Uint32 // first attempts after which the segment is full
	counts [Buckets]atomic.Uint32
	first  time.Time // set before the first until, and never again
	began  bool      // first is set; with the lock
}

// count counts a request, and reports whether it belongs to the segment.
func (p *pending) count(now time.Time, bucket int) bool {
	until := p.until.Load()
	if until == 0 || int64(now.Sub(p.first)) >= until {
		return false
	}
	if n := p.counts[bucket].Add(1); bucket == 0 && n >= p.room.Load() {
		p.close()
	}
	return true
}

// take returns the counts, which begin anew, and whether there are any.
func (p *pending) take() (n [Buckets]uint32, some bool) {
	for i := range p.counts {
		if p.counts[i].Load() > 0 {
			n[i], some = p.counts[i].Swap(0), true
		}
	}
	return n, some
}

// open begins to count requests of the newest segment of w, unless it is full. The lock of w
// is held.
func (p *pending) open(w *window, c *Config) {
	s := w.last()
	if s.counts[0] >= c.full() {
		p.close()
		return
	}
	if !p.began {
		p.first, p.began = w.clock.Time(0), true
	}
	p.room.Store(c.full() - s.counts[0])
	p.until.Store(int64(s.start + c.Window/parts))
}

func (p *pending) isOpen() bool { return p.until.Load() != 0 }

// close ends that: the next request takes the lock.
func (p *pending) close() { p.until.Store(0) }
