package spillhttp

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/seed90641741/spillway"
	"github.com/seed90641741/spillway/egress"
	"github.com/seed90641741/spillway/fault"
	"github.com/seed90641741/spillway/internal/claims"
)

// An exchange is one call of RoundTrip, with all its attempts.
type exchange struct {
	transport *Transport
	request   *http.Request // the caller's, or a copy of it for a hedge; never changed
	answered  *http.Request // the caller's, which is the Request of each response
	own       own           // values of Spillway's headers in the caller's request
	class     spillway.Criticality
	labelled  bool // the caller has set class
	// internal means that the request goes to one of the caller's own services.
	internal bool
	hedged   bool           // each attempt has its own context
	sent     bool           // the base has received the request, and closes its body
	waited   bool           // the last attempt waited for a connection until its context ended
	response *http.Response // the answer, if it is a success
	failed   *StatusError   // the last answer, if it was a failure
}

// label finds the criticality of the call in the request's header, or else in its context, and
// whether either has one.
func (x *exchange) label(ctx context.Context) {
	class, ok := spillway.LookupCriticality(ctx)
	x.class, x.labelled = class, ok && class.Valid()
	if text := x.own[ownCriticality]; text != "" {
		class, err := spillway.ParseCriticality(strings.TrimSpace(text))
		if x.labelled = err == nil; x.labelled {
			x.class = class
		}
	}
}

// send makes one attempt, and keeps its answer in x. It returns a failed answer as a [StatusError].
func (x *exchange) send(ctx context.Context, a *egress.Attempt) (*http.Response, error) {
	from := x.request
	if x.hedged {
		from = from.WithContext(ctx)
	}
	t, err := x.prepare(from, a)
	if err != nil {
		return nil, &transportError{fmt.Errorf("spillhttp: the body cannot be sent again: %w", err), fault.Failure{Unsent: true}}
	}
	req := from
	if t != nil {
		req = &t.request
	}
	x.failed.giveUp() // only now is it certain that another answer replaces this one
	x.sent, x.failed = true, nil
	resp, err := x.roundTrip(req)
	if err != nil {
		return nil, &transportError{err, x.once(x.lost(from.Context(), t, err))}
	}
	if resp.Request == req {
		resp.Request = x.answered
	}
	hold(from.Context(), resp, a, t)
	x.listenToAdvice(resp.Header, a)
	return x.judge(resp, a)
}

// roundTrip sends an attempt by the base.
func (x *exchange) roundTrip(req *http.Request) (*http.Response, error) {
	base := x.transport.config.Base
	var q *queued
	if x.transport.limits {
		q = new(queued)
		req = req.WithContext(q.trace(req.Context()))
	}
	resp, err := base.RoundTrip(req)
	switch {
	case err != nil:
		x.waited = x.transport.limits && !q.left.Load() && leftBy(req.Context()) != nil
	case resp == nil:
		// net/http has the same error.
		err = fmt.Errorf("http: RoundTripper implementation (%T) returned a nil *Response with a nil error", base)
	}
	return resp, err
}

// lost returns what the error of an attempt without an answer means.
func (x *exchange) lost(ctx context.Context, t *attempt, err error) fault.Failure {
	if t != nil && t.outgoing.failed.Load() || x.waited {
		return fault.Failure{Unsent: true, Safety: fault.RetryUnsafe}
	}
	if f, ok := ofProxy(x.transport.config.Base, err); ok {
		return f
	}
	return ofError(ctx, err)
}

// judge returns an answer that is a success, and the error for one that is a failure.
func (x *exchange) judge(resp *http.Response, a *egress.Attempt) (*http.Response, error) {
	if suspect(resp.StatusCode, resp.Header) {
		if f, failed := failureOf(resp.StatusCode, resp.Header, time.Now()); failed {
			x.failed = &StatusError{StatusCode: resp.StatusCode, Header: resp.Header, failure: x.once(f), response: resp}
			a.BeforeRetry = x.failed.giveWay
			return nil, x.failed
		}
	}
	x.response = resp
	return resp, nil
}

// listenToAdvice passes the header AcceptRatio of an internal service to the throttle: the share of
// recent calls that it has accepted, from 0 to 1. It removes the header, because it is for this
// caller only and must not be passed on.
func (x *exchange) listenToAdvice(h http.Header, a *egress.Attempt) {
	if values := h[headerAcceptRatio]; len(values) > 0 {
		delete(h, headerAcceptRatio)
		if ratio, ok := claims.Ratio(values); ok && x.internal {
			a.Advise(ratio)
		}
	}
}

// once makes f final if the body of the request cannot be sent again.
func (x *exchange) once(f fault.Failure) fault.Failure {
	if streamed(x.request) {
		f.Safety = fault.RetryUnsafe
	}
	return f
}

// end returns the results of RoundTrip, after the call has ended with err.
func (x *exchange) end(err error) (*http.Response, error) {
	if !x.sent && x.request.Body != nil {
		x.request.Body.Close() // the base has not received it, and so does not close it
	}
	if e, ok := errors.AsType[*StatusError](err); ok && e.response != nil {
		x.failed = e // it may be the answer to the hedge
	}
	switch {
	case x.response != nil:
		return x.response, nil
	case x.failed != nil && x.failed.response != nil:
		// The scope is about the backend. A caller that passes the answer on must not pass it on.
		delete(x.failed.Header, headerScope)
		return x.failed.response, nil
	}
	if lost, ok := err.(*transportError); ok { //nolint:errorlint // what was tried again has a retry.Error around it
		return nil, lost.error // the error of the base, unchanged
	}
	if ctx := x.request.Context(); !x.sent && ctx.Err() != nil && errors.Is(err, ctx.Err()) {
		return nil, context.Cause(ctx) // the error that net/http returns
	}
	return nil, err
}

// abandon closes the answers that are not returned because of a panic.
func (x *exchange) abandon() {
	discardAnswer(x.response, nil)
	if x.failed != nil {
		discardAnswer(x.failed.response, nil)
	}
}
