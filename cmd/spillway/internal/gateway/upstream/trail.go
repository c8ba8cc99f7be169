package upstream

import (
	"net/http"

	"github.com/seed90641741/spillway/cmd/spillway/internal/gateway/balance"
	"github.com/seed90641741/spillway/cmd/spillway/internal/gateway/body"
)

// A trail is what attempts of one request must know of earlier ones.
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

// dontRetry is the header that says to package spillhttp that a call cannot be sent again.
// The client does not get it.
const dontRetry = "X-Should-Retry"

// refused takes in that an endpoint has refused an attempt: if the body is to be sent
// again it starts over, and if it cannot be, the answer is the last one.
func (t *trail) refused(resp *http.Response) {
	if t.body == nil || t.body.Rewind() {
		return
	}
	if resp.Header[dontRetry] == nil {
		t.final = resp
		resp.Header.Set(dontRetry, "false")
	}
}

// redirect has the next attempt made at once, as another endpoint is there for it: what
// the endpoint said about coming back is about this endpoint alone. Package spillhttp does
// not pass the header on.
func (t *trail) redirect(resp *http.Response) { resp.Header[scopeHeader] = scopeTaskValue }

// restore gives an answer that is the last one the headers that the endpoint sent.
func (t *trail) restore(resp *http.Response) {
	if resp != nil && t.final == resp {
		resp.Header.Del(dontRetry)
	}
}
