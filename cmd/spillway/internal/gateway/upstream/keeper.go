package upstream

import (
	"context"
	"net/http"

	"github.com/seed90641741/spillway/cmd/spillway/internal/gateway/balance"
	"github.com/seed90641741/spillway/cmd/spillway/internal/gateway/message"
)

// A keeper buffers short bodies for retries, and holds the state that the attempts of one
// request share.
type keeper struct {
	next   http.RoundTripper
	most   int64 // the longest one; not above zero: none
	trails bool  // attempts of one request are to avoid one another's endpoints
}

func (k *keeper) RoundTrip(r *http.Request) (*http.Response, error) {
	call := message.IsGRPC(r)
	if !call && !k.trails {
		return k.send(r)
	}
	t := new(trail)
	r = r.WithContext(context.WithValue(r.Context(), trailKey{}, t))
	if call && k.most > 0 && r.Body != nil && r.Body != http.NoBody && r.ContentLength < 0 {
		t.body = message.NewReplay(r.Body, int(k.most))
		defer t.body.Settle()
		r.GetBody = t.body.Open
		r.Body, _ = t.body.Open() // nothing was read yet: cannot fail
	}
	resp, err := k.send(r)
	t.restore(resp)
	return resp, err
}

// send sends r with its body buffered, if the declared length is short enough.
func (k *keeper) send(r *http.Request) (*http.Response, error) {
	account := message.AccountOf(r)
	if account == nil || r.Body == nil || r.Body == http.NoBody || r.ContentLength < 0 {
		return k.next.RoundTrip(r)
	}
	kept := *r
	if err := account.ReadAhead(&kept, k.most); err != nil {
		_ = r.Body.Close() // it was only read
		return nil, err
	}
	if kept.GetBody != nil && kept.Header["Expect"] != nil {
		kept.Header = kept.Header.Clone()
		kept.Header.Del("Expect") // the client was asked to go on, and has
	}
	if kept.ContentLength > k.most {
		kept.GetBody = nil // it is here, but is not to be sent again
	}
	return k.next.RoundTrip(&kept)
}

// A trail is the state that the attempts of one request share.
type trail struct {
	tried []*balance.Endpoint // that rejected, or could not be connected to
	body  *message.Replay     // of a call of gRPC, if it can be sent again

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

// rejected records that an endpoint has rejected an attempt. The body is rewound for a retry;
// if that is not possible, this answer is final.
func (t *trail) rejected(resp *http.Response) {
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
