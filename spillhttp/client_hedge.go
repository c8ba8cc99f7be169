package spillhttp

import (
	"context"
	"net/http"
	"sync"

	"github.com/seed90641741/spillway"
	"github.com/seed90641741/spillway/egress"
	"github.com/seed90641741/spillway/fault"
)

// mayHedge reports whether req can be sent twice at the same time. The policies decide whether it
// is. A body without GetBody exists only once. After a switch of protocols the connection is the
// answer, and lasts longer than the attempt.
func mayHedge(req *http.Request) bool {
	return !streamed(req) && req.Method != http.MethodConnect && !has(req.Header, "Upgrade")
}

// A hedgedExchange is the exchange of the first attempt of a call whose hedge may still run when
// the call has returned.
type hedgedExchange struct {
	exchange

	mu       sync.Mutex
	returned bool // the call has returned
}

// hedge makes a call that may have a hedge. Each of the two attempts has its own copy of the
// exchange.
func hedge(ctx context.Context, of exchange, c *egress.Client, call spillway.Call) (*http.Response, error) {
	x := &hedgedExchange{exchange: of}
	defer x.giveBack()
	resp, err := egress.Hedged(ctx, c, call, x.transport.routeOf(x.request), func(ctx context.Context, a *egress.Attempt) (*http.Response, error) {
		if !a.IsHedge() {
			return x.send(ctx, a)
		}
		second := of
		if second.request = x.clone(ctx); second.request == nil {
			return nil, &transportError{context.Canceled, fault.Failure{Canceled: true}}
		}
		return second.send(ctx, a)
	}, discardAnswer)
	x.response = resp
	return x.end(err)
}

// giveBack gives the request back to the caller, which may change it from now on.
func (x *hedgedExchange) giveBack() {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.returned = true
}

// clone returns a copy of the request for the hedge, or nil if the call has returned. Only the copy
// may still be read after the call has returned. The call always waits for the first attempt.
func (x *hedgedExchange) clone(ctx context.Context) *http.Request {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.returned {
		return nil
	}
	return x.request.Clone(ctx)
}

// discardAnswer closes the answer of an attempt if that answer is not returned.
func discardAnswer(resp *http.Response, err error) {
	if e, ok := err.(*StatusError); ok { //nolint:errorlint // of send itself
		resp, e.response = e.response, nil
	}
	if resp != nil && resp.Body != nil {
		resp.Body.Close()
	}
}
