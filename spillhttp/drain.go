package spillhttp

import (
	"io"
	"sync"
	"time"

	"github.com/seed90641741/spillway/fault"
	"github.com/seed90641741/spillway/retry"
)

// What is read of a failed answer that will be retried, so that its connection
// can be used again. A connection is cheaper to open than more is to read.
const (
	drainBytes = 16 << 10
	drainTime  = 50 * time.Millisecond
)

// A drainer is a Strategy that makes a failed answer give way when it is known
// that there will be another attempt. Earlier would be too early, because the
// last answer belongs to the caller; later would hold a connection and a place in
// flight while the call waits.
type drainer struct {
	retry.Strategy
	answers *answers
}

// answers are those that failed, by the attempt, until a drainer is asked for
// another one. All drainers of a Transport, one after the other, share them.
type answers struct{ sync.Map } // *retry.Attempt → *StatusError

// Refresh implements [retry.Strategy].
func (d *drainer) Refresh(now time.Time, t retry.Token, f fault.Failure) (retry.Token, error) {
	answer, ok := d.answers.LoadAndDelete(t.Attempt()) // before the attempt is another call's
	next, err := d.Strategy.Refresh(now, t, f)
	if ok && err == nil {
		answer.(*StatusError).giveWay(next.Delay())
	}
	return next, err
}

// giveWay makes room for an attempt that is made after wait. If that is at once,
// the answer gives up its place in flight only: the attempt may still be refused
// here, and then the answer is the last one after all.
func (e *StatusError) giveWay(wait time.Duration) {
	if wait > 0 {
		e.giveUp()
	} else if b, ok := e.response.Body.(interface{ end() }); ok {
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
