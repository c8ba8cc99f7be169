package spillconnect

import (
	"context"
	"errors"
	"strconv"
	"time"

	"connectrpc.com/connect"
	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/seed90641741/spillway"
	"github.com/seed90641741/spillway/fault"
	"github.com/seed90641741/spillway/ingress"
)

// reject returns the error of a call that is not served, for a client that learns so much.
func reject(ctx context.Context, why ingress.Rejection, told ingress.Reasons) error {
	err := rejection(ctx, why)
	e, ok := err.(*connect.Error) //nolint:errorlint // as it was made
	by, known := errors.AsType[*spillway.RejectedError](why.Err)
	if ok && known && told == ingress.ReasonsFull {
		e.Meta().Set(headerReason, by.Reason.String())
	}
	return err
}

func rejection(ctx context.Context, why ingress.Rejection) error {
	switch {
	case why.Outcome == spillway.OutcomeAbandoned:
		if err := ctx.Err(); err != nil {
			return err // connect-go knows its code
		}
		return connect.NewError(connect.CodeCanceled, context.Canceled)
	case why.DontRetry:
		e := connect.NewError(connect.CodeUnavailable, errors.New("overloaded; don't retry"))
		dontRetry(e, errorInfo(reasonDontRetry, fault.ScopeService))
		e.Meta().Set(headerScope, fault.ScopeService.String())
		return e
	case why.Outcome == spillway.OutcomeOverQuota:
		e := connect.NewError(connect.CodeResourceExhausted, errors.New("over quota"))
		over := &errdetails.QuotaFailure{Violations: []*errdetails.QuotaFailure_Violation{{Subject: "customer", Description: "sends more than its quota"}}}
		return hinted(e, why.RetryAfter, fault.ScopeCustomer, over, errorInfo(reasonCustomer, fault.ScopeCustomer))
	default:
		e := connect.NewError(connect.CodeUnavailable, errors.New("overloaded"))
		return hinted(e, why.RetryAfter, fault.ScopeTask, errorInfo(reasonTask, fault.ScopeTask))
	}
}

func errorInfo(reason string, s fault.Scope) *errdetails.ErrorInfo {
	return &errdetails.ErrorInfo{Domain: errorDomain, Reason: reason, Metadata: map[string]string{metadataScope: s.String()}}
}

// hinted adds to e when to retry, the scope, and details.
func hinted(e *connect.Error, after time.Duration, s fault.Scope, details ...proto.Message) *connect.Error {
	add(e, append(details, &errdetails.RetryInfo{RetryDelay: durationpb.New(after)})...)
	m := e.Meta()
	m.Set(headerPushback, strconv.FormatInt(int64((after+time.Millisecond-1)/time.Millisecond), 10))
	m.Set(headerRetryAfter, strconv.FormatInt(int64((after+time.Second-1)/time.Second), 10))
	m.Set(headerScope, s.String())
	return e
}

// dontRetry adds to e that it must not be retried.
func dontRetry(e *connect.Error, info *errdetails.ErrorInfo) {
	add(e, info)
	e.Meta().Set(headerPushback, "-1")
	e.Meta().Set(headerShouldRetry, "false")
}

func add(e *connect.Error, details ...proto.Message) {
	for _, m := range details {
		if d, err := connect.NewErrorDetail(m); err == nil { // as it is for messages that can be marshalled
			e.AddDetail(d)
		}
	}
}
