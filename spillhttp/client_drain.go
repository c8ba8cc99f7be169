package spillhttp

import (
	"io"
	"time"
)

// What is read of a failed answer that will be retried, so that its connection
// can be used again. A connection is cheaper to open than more is to read.
const (
	drainBytes = 16 << 10
	drainTime  = 50 * time.Millisecond
)

// giveWay releases what an answer holds, before an attempt that is made after wait. If that is
// at once, the answer only releases its slot in flight: the attempt may still be rejected
// here, and then the answer is the last one after all. An answer whose context ends with the
// slot keeps both.
func (e *StatusError) giveWay(wait time.Duration) {
	if wait > 0 {
		e.giveUp()
	} else if b, ok := e.response.Body.(interface{ end() }); ok && !e.hedged {
		b.end()
	}
}

// giveUp closes the response, if there is one and it is not closed yet. It reads
// what is left of a small body first, so that the connection can be used again.
func (e *StatusError) giveUp() {
	if e == nil || e.response == nil {
		return
	}
	resp := e.response
	e.response = nil
	if resp.Body == nil {
		return
	}
	defer resp.Body.Close()
	if resp.ContentLength > drainBytes {
		return
	}
	stop := time.AfterFunc(drainTime, func() { resp.Body.Close() })
	defer stop.Stop()
	_, _ = io.CopyN(io.Discard, resp.Body, drainBytes)
}
