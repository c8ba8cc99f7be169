package clients

import (
	"sync/atomic"
	"time"
)

// A flow is one direction of an exchange: what has moved, and how long the proxy has
// waited for the client. Times are from monotonic. One goroutine
// at a time moves bytes; any may ask.
type flow struct {
	since  atomic.Int64 // when the current wait began; 0: not waiting
	total  atomic.Int64 // of all waits that have ended
	excess atomic.Int64 // of them, what the bytes that moved do not account for
	stall  atomic.Int64 // likewise, at the rate that is expected while room is scarce
}

// scarceRate is what a client on a bad line manages, in bytes per second: 128 kbit/s. Where
// a cap is reached, slower clients are evicted first.
const scarceRate = 16 << 10

// writeBuffer is how much of what is written net/http may keep until the next flush.
const writeBuffer = 4 << 10

func (f *flow) begin(now int64) { f.since.Store(now) }

// end ends a wait in which n bytes moved. Bytes pay for the time that they take at the
// rate, and for waits before it, never for waits to come: otherwise a client could send
// a megabyte quickly, and then be silent for an hour. Only the last bytes may have moved into
// a buffer, of a length, and pay for the wait until they leave it.
func (f *flow) end(now int64, n, buffer int, rate float64) {
	waited := now - f.since.Swap(0)
	f.total.Add(waited)
	f.excess.Store(less(f.excess.Load()+waited, n, buffer, rate))
	f.stall.Store(less(f.stall.Load()+waited, n, buffer, scarceRate))
}

// less returns what is left of a time after n bytes have paid for theirs. It is below zero for bytes in the buffer.
func less(d int64, n, buffer int, rate float64) int64 {
	if rate <= 0 {
		return max(0, d)
	}
	per := float64(time.Second) / rate
	return max(-int64(float64(buffer)*per), d-int64(float64(n)*per))
}

// stalled is for how long the client was waited for beyond what its bytes account for at
// the rate that is expected while room is scarce.
func (f *flow) stalled(now int64) time.Duration {
	return time.Duration(max(0, f.stall.Load())) + f.pending(now)
}

func (f *flow) waits() bool { return f.since.Load() != 0 }

func (f *flow) pending(now int64) time.Duration {
	if since := f.since.Load(); since != 0 {
		return time.Duration(now - since)
	}
	return 0
}

// overdrawn is for how long the client was waited for beyond what its bytes account for.
func (f *flow) overdrawn(now int64) time.Duration {
	return time.Duration(max(0, f.excess.Load())) + f.pending(now)
}

// waited returns the total time of waits for the client.
func (f *flow) waited(now int64) time.Duration {
	return time.Duration(f.total.Load()) + f.pending(now)
}
