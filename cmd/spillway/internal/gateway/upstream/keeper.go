package upstream

import (
	"context"
	"net/http"

	"github.com/seed90641741/spillway/cmd/spillway/internal/gateway/body"
	"github.com/seed90641741/spillway/cmd/spillway/internal/gateway/media"
)

// A keeper buffers short bodies for retries, and holds the state that the attempts of one
// request share.
type keeper struct {
	next   http.RoundTripper
	most   int64 // the longest one; not above zero: none
	trails bool  // attempts of one request are to avoid one another's endpoints
}

// RoundTrip implements [http.RoundTripper].
func (k *keeper) RoundTrip(r *http.Request) (*http.Response, error) {
	call := media.IsGRPC(r)
	if !call && !k.trails {
		return k.send(r)
	}
	t := new(trail)
	r = r.WithContext(context.WithValue(r.Context(), trailKey{}, t))
	if call && k.most > 0 && r.Body != nil && r.Body != http.NoBody && r.ContentLength < 0 {
		t.body = body.NewReplay(r.Body, int(k.most))
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
	account := body.AccountOf(r)
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
		kept.Header.Del("Expect") // the client was told to go on, and has
	}
	if kept.ContentLength > k.most {
		kept.GetBody = nil // it is here, but is not to be sent again
	}
	return k.next.RoundTrip(&kept)
}
