package spillgrpc

import (
	"context"
	"errors"
	"strings"
	"time"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"github.com/seed90641741/spillway"
	"github.com/seed90641741/spillway/fault"
	"github.com/seed90641741/spillway/internal/hints"
)

// judge returns an error that is a failure with what it means, or nil for one that
// is the backend's answer, such as NOT_FOUND. trailer is nil if the attempt never
// got as far as a stream. safe, if not nil, says of a code whether a retry is safe.
func judge(ctx context.Context, err error, trailer metadata.MD, safe func(codes.Code) fault.Safety) error {
	if errors.Is(err, spillway.ErrRejected) { // the load balancing policy has dropped it
		return err
	}
	s := status.Convert(err)
	if trailer == nil {
		if drop := droppedBy(err, s); drop != nil {
			return drop
		}
	}
	f, failed := ofCode(ctx, s, trailer)
	if safe != nil && !f.Canceled && !f.Unsent {
		f.Safety = safe(s.Code())
		failed = failed || f.Safety == fault.RetrySafe
	}
	if !failed {
		return nil
	}
	listen(&f, s, trailer)
	return &attemptError{err, f, ctx.Err()}
}

// ofCode returns what a status says by itself, and whether it is a failure at all. trailer is nil if the attempt never
// got as far as a stream.
func ofCode(ctx context.Context, s *status.Status, trailer metadata.MD) (f fault.Failure, failed bool) {
	code := s.Code()
	if f, ok := neverSent(ctx, s, trailer); ok {
		return f, true
	}
	if left := ended(ctx); (code == codes.Canceled || code == codes.DeadlineExceeded) && left != nil {
		expired := errors.Is(left, context.DeadlineExceeded)
		return fault.Failure{Canceled: !expired, Timeout: expired, Unanswered: expired}, true
	}
	// An answer of the server has some metadata at its end, except after its head. What grpc itself makes of a connection
	// that is broken, or was rejected, has none.
	silent := len(trailer) == 0
	switch code {
	case codes.Unavailable: // the server had no time, has gone, or was not there
		return fault.Failure{Overload: true, Party: fault.Server, Unprocessed: trailer == nil, Unanswered: silent}, true
	case codes.ResourceExhausted:
		return exhausted(s)
	case codes.DeadlineExceeded:
		return fault.Failure{Timeout: true, Party: fault.Server}, true
	case codes.Unknown, codes.Internal:
		return fault.Failure{Party: fault.Server, Unanswered: silent}, true
	case codes.DataLoss: // will not change
		return fault.Failure{Party: fault.Server, Safety: fault.RetryUnsafe}, true
	case codes.Canceled: // not by the caller
		return fault.Failure{Unanswered: silent}, true
	default:
		return fault.Failure{Party: fault.Client, Safety: fault.RetryUnsafe}, false
	}
}

// ended returns the error of a context that has ended. The server, whose deadline is the same, may notice that before ctx does.
func ended(ctx context.Context) error {
	if d, ok := ctx.Deadline(); ok && ctx.Err() == nil && !time.Now().Before(d) {
		return context.DeadlineExceeded
	}
	return ctx.Err()
}

// exhausted tells a quota from a message that is too large, for which all
// implementations of gRPC have the same code and the same words.
func exhausted(s *status.Status) (f fault.Failure, failed bool) {
	if strings.Contains(s.Message(), "larger than max") || strings.Contains(s.Message(), "exceeds maximum size") {
		return fault.Failure{Party: fault.Client, Safety: fault.RetryUnsafe}, false
	}
	return fault.Failure{Overload: true, Party: fault.Client, Scope: fault.ScopeCustomer}, true
}

// listen adds to f what the server says of retries. Where it says several things
// no is final, and pushback is believed before RetryInfo.
func listen(f *fault.Failure, s *status.Status, trailer metadata.MD) {
	for _, d := range s.Details() {
		switch d := d.(type) {
		case *errdetails.RetryInfo:
			if after := d.GetRetryDelay(); after != nil && after.AsDuration() >= 0 {
				f.RetryAfter, f.HasRetryAfter = min(after.AsDuration(), hints.Max), true
			}
		case *errdetails.QuotaFailure:
			f.Overload, f.Scope = true, fault.ScopeCustomer
		case *errdetails.ErrorInfo:
			if d.GetDomain() == errorDomain {
				f.DontRetry = f.DontRetry || d.GetReason() == reasonDontRetry
				hints.Scope(f, d.GetMetadata()[keyScope])
				tooLate(f, d.GetMetadata()[keyReason])
			}
		}
	}
	if values := trailer[keyScope]; len(values) == 1 {
		hints.Scope(f, values[0])
	}
	if values := trailer[keyReason]; len(values) == 1 {
		tooLate(f, values[0])
	}
	if values := trailer[keyPushback]; len(values) > 0 {
		f.RetryAfter, f.HasRetryAfter = hints.Pushback(values)
		f.DontRetry = f.DontRetry || !f.HasRetryAfter
	}
	if f.HasRetryAfter && f.Overload && f.Safety == fault.RetryUnknown {
		f.Safety = fault.RetrySafe
	}
}

// tooLate takes in the reason for a rejection.
func tooLate(f *fault.Failure, reason string) {
	f.TooLate = f.TooLate || f.Overload && reason == spillway.ReasonDeadline.String()
}
