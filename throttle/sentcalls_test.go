package throttle_test

import (
	"time"

	"github.com/seed90641741/spillway"
	"github.com/seed90641741/spillway/throttle"
)

// A sentCall is a call that was sent, and how and when it will end.
type sentCall struct {
	sent, ends time.Time
	ticket     spillway.Ticket
	route      throttle.Route
	outcome    spillway.Outcome
}

// ending is when a call ends, and which one it is.
type ending struct {
	at time.Duration // since t0
	i  int           // of the sent calls
}

// sentCalls is a heap: calls end in another order than they are sent. It moves the ends only, as
// the calls are large, and uses the memory of calls that have ended again.
type sentCalls struct {
	ends  []ending
	calls []sentCall
	free  []int
}

// next reports whether a call ends until at.
func (f *sentCalls) next(at time.Duration) bool { return len(f.ends) > 0 && f.ends[0].at <= at }

func (f *sentCalls) push(call sentCall) {
	var i int
	if n := len(f.free); n > 0 {
		i, f.free = f.free[n-1], f.free[:n-1]
		f.calls[i] = call
	} else {
		i, f.calls = len(f.calls), append(f.calls, call)
	}
	e := ending{call.ends.Sub(t0), i}
	f.ends = append(f.ends, e)
	h, j := f.ends, len(f.ends)-1
	for j > 0 && e.at < h[(j-1)/2].at {
		h[j] = h[(j-1)/2]
		j = (j - 1) / 2
	}
	h[j] = e
}

// pop returns the call that ends first, until the next push.
func (f *sentCalls) pop() *sentCall {
	first, n := f.ends[0].i, len(f.ends)-1
	e, h := f.ends[n], f.ends[:n]
	for i := 0; n > 0; {
		child := 2*i + 1
		if child+1 < n && h[child+1].at < h[child].at {
			child++
		}
		if child >= n || h[child].at >= e.at {
			h[i] = e
			break
		}
		h[i], i = h[child], child
	}
	f.ends, f.free = h, append(f.free, first)
	return &f.calls[first]
}
