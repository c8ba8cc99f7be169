package spillhttp

import (
	"context"
	"net/http"

	"github.com/seed90641741/spillway"
	"github.com/seed90641741/spillway/egress"
)

// mayHedge reports whether req can be sent twice at the same time, apart from the policies. A
// body without GetBody exists once. After a switch of protocols the connection is the answer,
// and lasts longer than the attempt.
func mayHedge(req *http.Request) bool {
	replayable := req.Body == nil || req.Body == http.NoBody || req.GetBody != nil
	return replayable && req.Method != http.MethodConnect && !has(req.Header, "Upgrade")
}

// hedge makes a call with a hedge where the policies allow it. It has a copy of the exchange,
// because a hedge may outlive the call.
func hedge(ctx context.Context, of exchange, c *egress.Client, call spillway.Call) (*http.Response, error) {
	x := &of
	x.hedged = true
	resp, err := egress.Hedged(ctx, c, call, x.transport.routeOf(x.request), func(ctx context.Context, a *egress.Attempt) (*http.Response, error) {
		if a.IsHedge() {
			return x.send(ctx, a)
		}
		resp, err := x.send(ctx, a)
		return resp, x.keep(resp, err)
	}, discardAnswer)
	x.response = resp
	return x.end(err)
}

// discardAnswer frees what an attempt has brought whose answer does not count.
func discardAnswer(resp *http.Response, err error) {
	if e, ok := err.(*StatusError); ok { //nolint:errorlint // of send itself
		resp, e.response = e.response, nil
	}
	if resp != nil && resp.Body != nil {
		resp.Body.Close()
	}
}
