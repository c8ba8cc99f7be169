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
	request   *http.Request // the caller's, or for a hedge a copy; never changed
	answered  *http.Request // the caller's, which answers name
	own       own           // of its headers
	class     spillway.Criticality
	labelled  bool // with the class
	internal  bool
	hedged    bool           // attempts have contexts of their own
	sent      bool           // the base has taken over the body
	waited    bool           // the last attempt, for a connection, until its caller left
	response  *http.Response // after success
	failed    *StatusError   // the last answer, if it was a failure
}

// label finds the criticality of the call, and whether the request is labelled with it, in its header
// or else in its context.
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

// send makes one attempt, and keeps what it has brought. An answer that is a failure is returned as a
// [StatusError].
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
	x.failed.giveUp() // only now is it certain that another answer takes its place
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

// roundTrip has the base make an attempt.
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
		err = fmt.Errorf("http: RoundTripper implementation (%T) returned a nil *Response with a nil error", base) // as net/http has it
	}
	return resp, err
}

// lost returns what it means that an attempt brought no answer.
func (x *exchange) lost(ctx context.Context, t *attempt, err error) fault.Failure {
	if t != nil && t.outgoing.failed.Load() || x.waited {
		return fault.Failure{Unsent: true, Safety: fault.RetryUnsafe}
	}
	if f, ok := ofProxy(x.transport.config.Base, err); ok {
		return f
	}
	return ofError(ctx, err)
}

// judge tells an answer that is a success from one that is a failure.
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

// listenToAdvice passes on to the throttle which share of its calls the server says
// that it accepts, if the server is trusted. The header is for this caller only, which
// must not pass it on as its own.
func (x *exchange) listenToAdvice(h http.Header, a *egress.Attempt) {
	if values := h[headerAcceptRatio]; len(values) > 0 {
		delete(h, headerAcceptRatio)
		if ratio, ok := claims.Ratio(values); ok && x.internal {
			a.Advise(ratio)
		}
	}
}

// once makes f final if the request cannot be sent again.
func (x *exchange) once(f fault.Failure) fault.Failure {
	if streamed(x.request) {
		f.Safety = fault.RetryUnsafe
	}
	return f
}

// end returns what RoundTrip returns, after the call ended with err.
func (x *exchange) end(err error) (*http.Response, error) {
	if !x.sent && x.request.Body != nil {
		x.request.Body.Close() // which otherwise is the duty of the base
	}
	if e, ok := errors.AsType[*StatusError](err); ok && e.response != nil {
		x.failed = e // perhaps the answer to a hedge
	}
	switch {
	case x.response != nil:
		return x.response, nil
	case x.failed != nil && x.failed.response != nil:
		delete(x.failed.Header, headerScope) // that of the backend, and not of who passes its answer on
		return x.failed.response, nil
	}
	if lost, ok := err.(*transportError); ok { //nolint:errorlint // what was tried again has a retry.Error around it
		return nil, lost.error // as the base made it
	}
	if ctx := x.request.Context(); !x.sent && ctx.Err() != nil && errors.Is(err, ctx.Err()) {
		return nil, context.Cause(ctx) // as net/http has it
	}
	return nil, err
}

// abandon frees the answers that nobody gets, as something has panicked.
func (x *exchange) abandon() {
	discardAnswer(x.response, nil)
	if x.failed != nil {
		discardAnswer(x.failed.response, nil)
	}
}
