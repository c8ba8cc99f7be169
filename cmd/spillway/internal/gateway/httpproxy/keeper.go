package httpproxy

import (
	"context"
	"net/http"
)

// A keeper keeps bodies that are short enough, so that their requests can be sent
// again, and what attempts of one request must know of each other.
type keeper struct {
	next   http.RoundTripper
	most   int64 // the longest one; not above zero: none
	trails bool  // attempts of one request are to avoid one another's endpoints
}

// RoundTrip implements [http.RoundTripper].
func (k *keeper) RoundTrip(r *http.Request) (*http.Response, error) {
	call := isGRPC(r)
	if !call && !k.trails {
		return k.send(r)
	}
	t := new(trail)
	r = r.WithContext(context.WithValue(r.Context(), trailKey{}, t))
	if call && k.most > 0 && r.Body != nil && r.Body != http.NoBody && r.ContentLength < 0 {
		t.body = newReplay(r.Body, int(k.most))
		defer t.body.settle()
		r.GetBody = t.body.open
		r.Body, _ = t.body.open() // nothing was read yet: cannot fail
	}
	resp, err := k.send(r)
	t.restore(resp)
	return resp, err
}

// send sends r with its body kept, if it was announced to be short enough.
func (k *keeper) send(r *http.Request) (*http.Response, error) {
	x := exchangeOf(r)
	if x == nil || r.Body == nil || r.Body == http.NoBody || r.ContentLength < 0 {
		return k.next.RoundTrip(r)
	}
	kept := *r
	if err := x.bufferUpTo(&kept, k.most); err != nil {
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
