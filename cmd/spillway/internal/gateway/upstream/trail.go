package upstream

import (
	"net/http"

	"github.com/seed90641741/spillway/cmd/spillway/internal/gateway/balance"
	"github.com/seed90641741/spillway/cmd/spillway/internal/gateway/body"
)

// A trail is the state that the attempts of one request share.
type trail struct {
	tried []*balance.Endpoint // that refused, or could not be connected to
	body  *body.Replay        // of a call of gRPC, if it can be sent again

	final *http.Response // the last answer, if it was given a header that says don't retry
}

type trailKey struct{}

func (t *trail) add(x *endpoint) {
	if t != nil {
		t.tried = append(t.tried, x.Endpoint)
	}
}

// avoided returns the endpoints that are used only if there are no others.
func (t *trail) avoided() []*balance.Endpoint {
	if t == nil {
		return nil
	}
	return t.tried
}

// dontRetry is the header that makes package spillhttp not retry a call. The client does not
// get it.
const dontRetry = "X-Should-Retry"

// refused records that an endpoint has rejected an attempt. The body is rewound for a retry;
// if that is not possible, this answer is final.
func (t *trail) refused(resp *http.Response) {
	if t.body == nil || t.body.Rewind() {
		return
	}
	if resp.Header[dontRetry] == nil {
		t.final = resp
		resp.Header.Set(dontRetry, "false")
	}
}

// redirect makes package spillhttp send the next attempt at once, because another endpoint is
// available: the retry hint of the endpoint applies to that endpoint only. Package spillhttp
// does not pass the header on.
func (t *trail) redirect(resp *http.Response) { resp.Header[scopeHeader] = scopeTaskValue }

// restore restores the headers of the endpoint in a final answer.
func (t *trail) restore(resp *http.Response) {
	if resp != nil && t.final == resp {
		resp.Header.Del(dontRetry)
	}
}
