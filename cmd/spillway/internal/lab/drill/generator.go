package drill

import (
	"context"
	"errors"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/seed90641741/spillway"
)

// maxOpenCalls bounds the calls that are open at once in the caller. Sends
// beyond it are dropped, and counted.
const maxOpenCalls = 1 << 14

// outcome is what happened to a call.
type outcome uint8

const (
	good outcome = iota + 1 // zero: none so far
	late
	rejectedThrottle
	rejectedInflight
	rejectedByBackend
	timedOut
	failed
	dropped
	unfinished
)

// A record is the story of one call. Times are from the start of the run.
type record struct {
	arrival                // at is the intended send
	sent     time.Duration // the actual one
	done     time.Duration // when the answer was read, or given up
	attempts int32
	outcome  outcome
	work     float64 // processor time of the work, relative to the calibration; 0: unknown
}

// latency is what the user of the call saw.
func (r *record) latency() time.Duration { return r.done - r.at }

// A generator sends calls at their intended times, open loop: it never waits for
// an answer. One goroutine keeps the time, and each call has its own.
type generator struct {
	callers  []caller // by client
	deadline time.Duration
	longest  time.Duration // that a call may take
	start    time.Time
	records  []record
	reached  atomic.Int64 // calls whose time came
	answered atomic.Int64 // in time
	open     atomic.Int64
	wg       sync.WaitGroup
}

func newGenerator(callers []caller, deadline, longest time.Duration, calls []arrival) *generator {
	g := &generator{callers: callers, deadline: deadline, longest: longest, records: make([]record, len(calls))}
	for i := range calls {
		g.records[i].arrival = calls[i]
	}
	return g
}

// run sends all calls and returns the records of those whose time came, when
// each has ended. What is still open when the longest possible call should be
// over, or when ctx ends, is cut short.
func (g *generator) run(ctx context.Context, start time.Time) []record {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	g.start = start
	for i := range g.records {
		r := &g.records[i]
		if !sleepUntil(ctx, start.Add(r.at)) {
			break
		}
		g.send(ctx, r)
		g.reached.Add(1)
	}
	patience := time.AfterFunc(g.longest+time.Second, cancel)
	defer patience.Stop()
	g.wg.Wait()
	return g.records[:g.reached.Load()]
}

// sleepUntil returns false if ctx ended first. The kernel wakes an idle process
// up to a millisecond late. Spinning instead would keep the only processor from
// the network, and the lateness is in the latency of the calls anyway.
func sleepUntil(ctx context.Context, t time.Time) bool {
	if d := time.Until(t); d > 0 {
		select {
		case <-time.After(d):
		case <-ctx.Done():
		}
	}
	return ctx.Err() == nil
}

func (g *generator) send(ctx context.Context, r *record) {
	r.sent = time.Since(g.start)
	if r.sent-r.at > g.deadline || g.open.Load() >= maxOpenCalls {
		r.outcome = dropped
		return
	}
	g.open.Add(1)
	g.wg.Go(func() {
		defer g.open.Add(-1)
		ctx := spillway.WithCriticality(withRecord(ctx, r), r.class)
		status, err := g.callers[r.client](ctx, g.start.Add(r.at))
		r.done = time.Since(g.start)
		r.outcome = g.classify(ctx, r, status, err)
		if r.outcome == good {
			g.answered.Add(1)
		}
	})
}

func (g *generator) classify(ctx context.Context, r *record, status int, err error) outcome {
	if err != nil {
		return classifyError(ctx, err)
	}
	switch {
	case status == http.StatusServiceUnavailable, status == http.StatusTooManyRequests:
		return rejectedByBackend
	case status < 200 || status > 299:
		return failed
	case r.latency() > g.deadline:
		return late
	}
	return good
}

func classifyError(ctx context.Context, err error) outcome {
	if rejected, ok := errors.AsType[*spillway.RejectedError](err); ok {
		if rejected.Policy == "throttle" {
			return rejectedThrottle
		}
		return rejectedInflight
	}
	if ctx.Err() != nil {
		return unfinished
	}
	if t, ok := errors.AsType[net.Error](err); ok && t.Timeout() {
		return timedOut
	}
	return failed
}

type recordKey struct{}

func withRecord(ctx context.Context, r *record) context.Context {
	return context.WithValue(ctx, recordKey{}, r)
}

func recordFrom(ctx context.Context) *record {
	r, _ := ctx.Value(recordKey{}).(*record)
	return r
}
