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

// A StatusError is a failure that the backend answered with. [Transport] returns such an answer as
// a response if it can. It returns the error instead if the response was closed for a retry which
// was then not made. [CheckResponse] returns a StatusError, too.
type StatusError struct {
	// StatusCode and Header come from the answer. Its body is lost.
	StatusCode int
	Header     http.Header

	failure  fault.Failure
	response *http.Response // nil after giveUp
}

// Error returns a text with the status.
func (e *StatusError) Error() string {
	if e.StatusCode == http.StatusOK {
		return "spillhttp: the backend answered with status " + first(e.Header, headerGRPCStatus) + " of gRPC"
	}
	return fmt.Sprintf("spillhttp: the backend answered %d %s", e.StatusCode, http.StatusText(e.StatusCode))
}

// Failure implements [fault.Failurer].
func (e *StatusError) Failure() fault.Failure { return e.failure }

// CheckResponse returns nil for a status below 400, and otherwise a [StatusError] that says whether
// the call may be retried. It connects an [http.Client] to [retry.Do]. An answer about the request
// and not about the server, such as 404, is never retried. The body stays open in both cases; the
// caller closes it. A [Transport] needs no CheckResponse.
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

// transportError is the error of an attempt without an answer, and what it means.
type transportError struct {
	error
	failure fault.Failure
}

func (e *transportError) Unwrap() error          { return e.error }
func (e *transportError) Failure() fault.Failure { return e.failure }

// ofError returns what the error of an attempt under ctx means. Where net/http knows that a request
// was not processed (the connection was closed before use, GOAWAY), it has already sent it again if
// it could.
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

// leftBy returns the error of ctx. It returns DeadlineExceeded also if only the deadline has
// passed: an http.Client with a Timeout has two timers, and the one that does not end the context
// may be the first.
func leftBy(ctx context.Context) error {
	if deadline, ok := ctx.Deadline(); ok && ctx.Err() == nil && !time.Now().Before(deadline) {
		return context.DeadlineExceeded
	}
	return ctx.Err()
}

// ofProxy returns what err means if a proxy answered CONNECT with a failure, and reports whether it
// did. net/http returns only the text of the proxy's status. The request was not sent.
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

// These bound how much of a failed answer is read before a retry, so that its connection can be
// used again. Reading more costs more than opening a connection.
const (
	drainBytes = 16 << 10
	drainTime  = 50 * time.Millisecond
)

// giveWay releases what an answer holds, before a retry after wait. If there is no wait, it
// releases only the slot: a policy may still reject the retry, and then this answer is returned.
func (e *StatusError) giveWay(wait time.Duration) {
	if wait > 0 {
		e.giveUp()
	} else if b, ok := e.response.Body.(interface{ giveBack() }); ok {
		b.giveBack()
	}
}

// giveUp closes the response, if it is still open. Before, it reads the rest of a small body, so
// that the connection can be used again.
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
