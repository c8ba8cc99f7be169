package proxy

import (
	"bytes"
	"context"
	"errors"
	"io"
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
	if t.final && resp != nil {
		resp.Header.Del(dontRetry)
	}
	return resp, err
}

// send sends r with its body kept, if it was announced to be short enough.
func (k *keeper) send(r *http.Request) (*http.Response, error) {
	if r.Body == nil || r.Body == http.NoBody || r.ContentLength <= 0 || r.ContentLength > k.most {
		return k.next.RoundTrip(r)
	}
	text := make([]byte, r.ContentLength)
	_, err := io.ReadFull(r.Body, text)
	if err == nil {
		// The end is asked for, so that whoever waits for it learns of it.
		_, err = r.Body.Read(make([]byte, 1))
		if errors.Is(err, io.EOF) {
			err = nil
		}
	}
	_ = r.Body.Close() // it was only read
	if err != nil {
		return nil, err
	}
	kept := *r
	kept.GetBody = func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(text)), nil }
	kept.Body, _ = kept.GetBody() // of bytes that are here: cannot fail
	if kept.Header["Expect"] != nil {
		kept.Header = kept.Header.Clone()
		kept.Header.Del("Expect") // the client was told to go on, and has
	}
	return k.next.RoundTrip(&kept)
}
