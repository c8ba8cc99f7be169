package spillhttp

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"time"

	"github.com/seed90641741/spillway/fault"
)

// A StatusError is an answer of the backend that was a failure. [Transport]
// returns such an answer as a response wherever it can; the error replaces it
// where a retry had been decided on, for which the response was given up, and
// the retry was then not made. [CheckResponse] returns one, too.
type StatusError struct {
	// StatusCode and Header come from the answer. Its body is lost.
	StatusCode int
	Header     http.Header

	failure  fault.Failure
	response *http.Response // nil once given up
}

// Error names the status.
func (e *StatusError) Error() string {
	if e.StatusCode == http.StatusOK {
		return "spillhttp: the backend answered with status " + first(e.Header, headerGRPCStatus) + " of gRPC"
	}
	return fmt.Sprintf("spillhttp: the backend answered %d %s", e.StatusCode, http.StatusText(e.StatusCode))
}

// Failure implements [fault.Failurer].
func (e *StatusError) Failure() fault.Failure { return e.failure }

// CheckResponse returns nil for a status below 400, and else a [StatusError], which says
// whether the call may be retried: it is the link between an [http.Client] and [retry.Do]. An
// answer that speaks of the request and not of the server, such as 404, is never retried. The
// body stays open: the caller closes it in both cases. A [Transport] needs no CheckResponse.
func CheckResponse(resp *http.Response) error {
	if resp.StatusCode < http.StatusBadRequest {
		return nil
	}
	f, failed := failureOf(resp.StatusCode, resp.Header, time.Now())
	if !failed {
		f = fault.Failure{Party: fault.Client, Safety: fault.RetryUnsafe}
	}
	return &StatusError{StatusCode: resp.StatusCode, Header: resp.Header, failure: f}
}

// transportError is an attempt that brought no answer, and what it means.
type transportError struct {
	error
	failure fault.Failure
}

func (e *transportError) Unwrap() error          { return e.error }
func (e *transportError) Failure() fault.Failure { return e.failure }

// ofError returns what it means that an attempt under ctx ended with err. What
// net/http itself recognises as unprocessed (a connection that was closed
// before use, GOAWAY) it has repeated by itself where that was possible.
func ofError(ctx context.Context, err error) fault.Failure {
	f := fault.Of(err)
	if f.Unsent {
		return f
	}
	switch left := leftBy(ctx); {
	case errors.Is(left, context.Canceled):
		return fault.Failure{Canceled: true}
	case errors.Is(left, context.DeadlineExceeded):
		return fault.Failure{Timeout: true, Unanswered: true}
	}
	return f
}

// leftBy returns the error of ctx. An http.Client with a Timeout has two timers: the one that does not end
// the context may be the first.
func leftBy(ctx context.Context) error {
	if deadline, ok := ctx.Deadline(); ok && ctx.Err() == nil && !time.Now().Before(deadline) {
		return context.DeadlineExceeded
	}
	return ctx.Err()
}

// ofProxy returns what err means if it is the answer of a proxy to CONNECT, which net/http reports as the text of the
// status alone. The request is still here.
func ofProxy(base http.RoundTripper, err error) (f fault.Failure, ok bool) {
	if t, is := base.(*http.Transport); !is || t.Proxy == nil {
		return f, false
	}
	for text, status := err.Error(), http.StatusBadRequest; status < 600; status++ {
		if text == http.StatusText(status) && text != "" {
			f.Unsent, f.Safety = true, fault.RetrySafe
			if status < http.StatusInternalServerError {
				f.Safety = fault.RetryUnsafe
			}
			return f, true
		}
	}
	return f, false
}

// What is read of a failed answer that will be retried, so that its connection
// can be used again. A connection is cheaper to open than more is to read.
const (
	drainBytes = 16 << 10
	drainTime  = 50 * time.Millisecond
)

// giveWay releases what an answer holds, before an attempt that is made after wait. If that is
// at once, the answer only releases its slot in flight: the attempt may still be rejected
// here, and then the answer is the last one after all.
func (e *StatusError) giveWay(wait time.Duration) {
	if wait > 0 {
		e.giveUp()
	} else if b, ok := e.response.Body.(interface{ giveBack() }); ok {
		b.giveBack()
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
	_, _ = io.CopyN(io.Discard, resp.Body, drainBytes) // an error costs the connection
}
