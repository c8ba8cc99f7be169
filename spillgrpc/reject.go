package spillgrpc

import (
	"context"
	"errors"
	"strconv"
	"sync"
	"time"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/protoadapt"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/seed90641741/spillway"
	"github.com/seed90641741/spillway/fault"
	"github.com/seed90641741/spillway/ingress"
)

// enter asks the gates, unless the tap has asked them already. If they reject the call, the Rejection
// says why. The slot must be zero or have ended.
func (s *Server) enter(ctx context.Context, now time.Time, slot *ingress.Slot, a *arrival) ingress.Rejection {
	if s.handed.Load() {
		if r, ok := ctx.Value(tapped{}).(ingress.Rejection); ok {
			return r
		}
	}
	return slot.EnterAt(ctx, s.ingress, now, &a.Call, &a.Caller)
}

// reject returns the answer to a call that is rejected. If nothing was sent before it, it
// becomes a status without headers and messages; clients may retry only such a status.
func (s *Server) reject(ctx context.Context, why *ingress.Rejection) *answer {
	if why.Outcome == spillway.OutcomeAbandoned {
		return &answer{status.FromContextError(ctx.Err()), nil}
	}
	if why.Outcome == spillway.OutcomeOverloaded {
		s.looks.Store(lookOn)
	}
	a := s.answerTo(why)
	if why.AcceptRatio != "" {
		return &answer{a.status, metadata.Join(a.trailer, metadata.Pairs(keyAcceptRatio, why.AcceptRatio))}
	}
	return a
}

// An answer is what a call that is not served gets.
type answer struct {
	status  *status.Status
	trailer metadata.MD
}

// answers caches answers: one for each gate and each retry delay, rounded to three digits, up
// to the maximum of a day.
var answers sync.Map // answerKey → *answer

type answerKey struct {
	overQuota bool
	dontRetry bool // and no ms
	ms        int64
	gate      string // empty at an edge
	reason    spillway.Reason
}

func (k *answerKey) errorInfo(reason string, s fault.Scope) *errdetails.ErrorInfo {
	info := &errdetails.ErrorInfo{Domain: errorDomain, Reason: reason, Metadata: map[string]string{keyScope: s.String()}}
	if k.gate != "" {
		info.Metadata[metadataGate] = k.gate
	}
	if k.reason != spillway.ReasonNone {
		info.Metadata[keyReason] = k.reason.String()
	}
	return info
}

// text returns the message of a status. It names the gate to internal callers only: how a
// server protects itself is no business of clients at an edge.
func (k *answerKey) text(what string) string {
	if k.gate == "" {
		return what
	}
	return what + " (" + k.gate + ")"
}

// disclose adds to k the gate that has rejected a call and its reason, if the caller may know.
func (s *Server) disclose(k *answerKey, why *ingress.Rejection) {
	if s.ingress.Trust().Discloses() != ingress.ReasonsFull {
		return
	}
	if by, ok := errors.AsType[*spillway.RejectedError](why.Err); ok {
		k.gate, k.reason = by.Policy, by.Reason
	}
}

func (s *Server) answerTo(why *ingress.Rejection) *answer {
	key := answerKey{dontRetry: true}
	s.disclose(&key, why)
	if !why.DontRetry {
		key.dontRetry, key.overQuota, key.ms = false, why.Outcome == spillway.OutcomeOverQuota, milliseconds(why.RetryAfter)
	}
	if a, ok := answers.Load(key); ok {
		return a.(*answer)
	}
	a, _ := answers.LoadOrStore(key, newAnswer(key))
	return a.(*answer)
}

func newAnswer(key answerKey) *answer {
	trailer := metadata.MD{}
	if key.reason != spillway.ReasonNone {
		trailer.Set(keyReason, key.reason.String())
	}
	if key.dontRetry {
		trailer.Set(keyPushback, "-1")
		trailer.Set(keyScope, fault.ScopeService.String())
		return &answer{withDetails(codes.Unavailable, key.text("overloaded; don't retry"), key.errorInfo(reasonDontRetry, fault.ScopeService)), trailer}
	}
	after := &errdetails.RetryInfo{RetryDelay: durationpb.New(time.Duration(key.ms) * time.Millisecond)}
	trailer.Set(keyPushback, strconv.FormatInt(key.ms, 10))
	if !key.overQuota {
		trailer.Set(keyScope, fault.ScopeTask.String())
		return &answer{withDetails(codes.Unavailable, key.text("overloaded"), after, key.errorInfo(reasonTask, fault.ScopeTask)), trailer}
	}
	trailer.Set(keyScope, fault.ScopeCustomer.String())
	over := &errdetails.QuotaFailure{Violations: []*errdetails.QuotaFailure_Violation{{Subject: "customer", Description: "sends more than it may"}}}
	return &answer{withDetails(codes.ResourceExhausted, key.text("over quota"), over, after, key.errorInfo(reasonCustomer, fault.ScopeCustomer)), trailer}
}

// milliseconds returns d in milliseconds, rounded up to three digits: no client may
// come back too early. It is at most a day.
func milliseconds(d time.Duration) int64 {
	n := min(int64((max(d, 0)+time.Millisecond-1)/time.Millisecond), 24*time.Hour.Milliseconds())
	unit := int64(1)
	for n > 999*unit {
		unit *= 10
	}
	return (n + unit - 1) / unit * unit
}

func withDetails(code codes.Code, text string, details ...protoadapt.MessageV1) *status.Status {
	s := status.New(code, text)
	if with, err := s.WithDetails(details...); err == nil { // as it is for messages that can be marshalled
		return with
	}
	return s
}
