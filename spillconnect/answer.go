package spillconnect

import (
	"context"
	"errors"
	"net/http"
	"strings"

	"connectrpc.com/connect"
	"google.golang.org/genproto/googleapis/rpc/errdetails"

	"github.com/seed90641741/spillway"
	"github.com/seed90641741/spillway/fault"
	"github.com/seed90641741/spillway/internal/hints"
	"github.com/seed90641741/spillway/retry"
)

// attemptError is the error of an attempt, and what it means.
type attemptError struct {
	error

	failure fault.Failure
}

func (e *attemptError) Unwrap() error          { return e.error }
func (e *attemptError) Failure() fault.Failure { return e.failure }

// failureOf returns the error of an attempt with what it means, or nil for one that is an
// answer of the backend, such as not_found.
func failureOf(ctx context.Context, err error) error {
	if err == nil || errors.Is(err, spillway.ErrRejected) {
		return err
	}
	f, failed := ofCode(ctx, err)
	if !failed {
		return nil
	}
	if e, ok := errors.AsType[*connect.Error](err); ok {
		readDetails(&f, e)
		readMeta(&f, e.Meta())
	}
	if f.HasRetryAfter && f.Overload && f.Safety == fault.RetryUnknown {
		f.Safety = fault.RetrySafe
	}
	return &attemptError{err, f}
}

// ofCode returns what the code of an error means, and whether it is a failure at all.
func ofCode(ctx context.Context, err error) (f fault.Failure, failed bool) {
	var local fault.Failure
	if e, ok := errors.AsType[*connect.Error](err); ok && !connect.IsWireError(err) {
		if local = fault.Of(e.Unwrap()); neverSent(e.Message()) {
			local = fault.Failure{Unsent: true, Safety: fault.RetryUnsafe}
		}
	}
	switch {
	case local.Unsent:
		return local, true
	case errors.Is(ctx.Err(), context.Canceled):
		return fault.Failure{Canceled: true}, true
	case ctx.Err() != nil:
		return fault.Failure{Timeout: true, Unanswered: true}, true
	}
	switch connect.CodeOf(err) {
	case connect.CodeUnavailable: // if not from the wire, a connection that was not made, or broke
		return fault.Failure{Overload: true, Party: fault.Server, Unprocessed: local.Unprocessed, Unanswered: local.Unanswered}, true
	case connect.CodeResourceExhausted:
		if tooLarge(err.Error()) {
			return fault.Failure{Party: fault.Client, Safety: fault.RetryUnsafe}, false
		}
		return fault.Failure{Overload: true, Party: fault.Client, Scope: fault.ScopeCustomer}, true
	case connect.CodeDeadlineExceeded:
		return fault.Failure{Timeout: true, Party: fault.Server, Unanswered: local.Unanswered}, true
	case connect.CodeUnknown, connect.CodeInternal:
		return fault.Failure{Party: fault.Server, Unanswered: local.Unanswered, Unprocessed: local.Unprocessed, Safety: local.Safety}, true
	case connect.CodeDataLoss:
		return fault.Failure{Party: fault.Server, Safety: fault.RetryUnsafe}, true
	case connect.CodeCanceled: // not by the caller
		return fault.Failure{Unanswered: local.Unanswered}, true
	default:
		return fault.Failure{Party: fault.Client, Safety: fault.RetryUnsafe}, false
	}
}

// neverSent reports whether connect-go itself says that it could not send a message.
func neverSent(text string) bool {
	return strings.HasPrefix(text, "marshal message: ") || strings.Contains(text, " exceeds sendMaxBytes ") || strings.Contains(text, " exceeds getURLMaxBytes ")
}

// tooLarge reports whether the text of an error says that a message, or its URL, is too large. That has the code of a quota. Only
// what the implementations say of it counts: a quota may be exceeded, too.
func tooLarge(text string) bool {
	for _, words := range [...]string{
		"larger than configured ", "exceeds sendMaxBytes ", "exceeds getURLMaxBytes ", " http.MaxBytesReader limit", // connect
		"larger than max", "exceeds maximum size", // gRPC
	} {
		if strings.Contains(text, words) {
			return true
		}
	}
	return false
}

// readDetails adds to f what the details of an error say.
func readDetails(f *fault.Failure, e *connect.Error) {
	for _, d := range e.Details() {
		v, err := d.Value()
		if err != nil {
			continue // of a type that this program does not know
		}
		switch v := v.(type) {
		case *errdetails.RetryInfo:
			if after := v.GetRetryDelay(); after != nil && after.AsDuration() >= 0 {
				f.RetryAfter, f.HasRetryAfter = min(after.AsDuration(), hints.Max), true
			}
		case *errdetails.QuotaFailure:
			f.Overload, f.Scope = true, fault.ScopeCustomer
		case *errdetails.ErrorInfo:
			if v.GetDomain() == errorDomain {
				f.DontRetry = f.DontRetry || v.GetReason() == reasonDontRetry
				hints.Scope(f, v.GetMetadata()[metadataScope])
			}
		}
	}
}

// readMeta adds to f what the metadata of an error say. Pushback overrides RetryInfo.
func readMeta(f *fault.Failure, h http.Header) {
	hints.Scope(f, h.Get(headerScope))
	f.TooLate = f.Overload && h.Get(headerReason) == spillway.ReasonDeadline.String()
	if strings.EqualFold(h.Get(headerShouldRetry), "false") {
		f.DontRetry = true
	}
	if values := h[headerPushback]; len(values) > 0 {
		f.RetryAfter, f.HasRetryAfter = hints.Pushback(values)
		f.DontRetry = f.DontRetry || !f.HasRetryAfter
	}
}

// errorOf returns the error of a call as its caller gets it: a [connect.Error], or one that
// wraps it.
func errorOf(err error) error {
	stopped, retried := errors.AsType[*retry.Error](err)
	switch {
	case err == nil:
		return nil
	case retried && errors.Is(stopped.Why, context.Canceled):
		return connect.NewError(connect.CodeCanceled, err)
	case retried && errors.Is(stopped.Why, context.DeadlineExceeded):
		return connect.NewError(connect.CodeDeadlineExceeded, err)
	case errors.Is(err, spillway.ErrRejected):
		return connect.NewError(connect.CodeUnavailable, err)
	}
	if e, ok := err.(*attemptError); ok { //nolint:errorlint // as connect-go has made it
		return e.error
	}
	return err
}
