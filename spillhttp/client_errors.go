package spillhttp

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
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

// streamError has the shape of the HTTP/2 error that is private to net/http,
// which lets itself be copied by [errors.As] into any struct that has.
type streamError struct {
	StreamID uint32
	Code     uint32
	Cause    error
}

func (e streamError) Error() string { return fmt.Sprintf("stream %d: code %d", e.StreamID, e.Code) }

// HTTP/2 error codes, RFC 9113, section 7.
const (
	refusedStream   = 0x7
	enhanceYourCalm = 0xb
)

// ofError returns what it means that an attempt under ctx ended with err. What
// net/http itself recognises as unprocessed (a connection that was closed
// before use, GOAWAY) it has repeated by itself where that was possible.
func ofError(ctx context.Context, err error) (f fault.Failure) {
	switch ctx.Err() {
	case context.Canceled:
		return fault.Failure{Canceled: true}
	case context.DeadlineExceeded:
		return fault.Failure{Timeout: true}
	}
	var timeout interface{ Timeout() bool }
	f.Timeout = errors.As(err, &timeout) && timeout.Timeout()
	if op, ok := errors.AsType[*net.OpError](err); ok && (op.Op == "dial" || op.Op == "proxyconnect") {
		f.Unprocessed = true
	}
	if stream, ok := errors.AsType[streamError](err); ok {
		f.Unprocessed = stream.Code == refusedStream
		f.Overload = stream.Code == enhanceYourCalm
	}
	if _, ok := errors.AsType[*tls.CertificateVerificationError](err); ok {
		f.Safety = fault.RetryUnsafe // the next attempt sees the same certificate
	}
	return f
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
