package httpproxy

import (
	"bytes"
	"errors"
	"io"
	"net/http"
)

// A short body is read before its request meets a gate, so that a request takes a
// place only when all of it is here. It is kept until the exchange ends, for retries.

// shortBody is the longest one: what most calls of an API have, and what is kept for
// retries by default.
const shortBody = 64 << 10

// batchBody is the longest one that is read before a request gets its turn in front of a
// batch cluster. There are few turns, so that clients must not hold them as they send.
const batchBody = 1 << 20

// firstBuffer is what is taken for a body to begin with. It is doubled as the body comes:
// what a client only announces takes no memory.
const firstBuffer = 4 << 10

// buffer reads the body of a request that is short. A client that expects a 100
// (Continue) gets it only after its request was admitted.
func (x *exchange) buffer(r *http.Request) error {
	if r.Header["Expect"] != nil {
		return nil
	}
	return x.bufferUpTo(r, shortBody)
}

// bufferUpTo reads the body of a request if its length was announced and is not more than
// most. If there is not enough memory, or it turns out longer, what was read is put in
// front of what is still to come.
func (x *exchange) bufferUpTo(r *http.Request, most int64) error {
	if x == nil || r.GetBody != nil || r.ContentLength <= 0 || r.ContentLength > most {
		return nil
	}
	length := int(r.ContentLength)
	var text []byte
	for size := min(length, firstBuffer); ; size = min(length, 2*size) {
		if !x.keep(size - cap(text)) {
			r.Body = &joined{io.MultiReader(bytes.NewReader(text), r.Body), r.Body}
			return nil
		}
		text = append(make([]byte, 0, size), text...)
		n, err := io.ReadFull(r.Body, text[len(text):size])
		if text = text[:len(text)+n]; err != nil {
			return err
		}
		if size == length {
			break
		}
	}
	return x.replace(r, text)
}

// replace makes text the body of a request. The end of the former body was not read yet.
func (x *exchange) replace(r *http.Request, text []byte) error {
	if n, err := r.Body.Read(make([]byte, 1)); n > 0 || !errors.Is(err, io.EOF) {
		return err // a length that was announced and exceeded is an error by itself
	}
	r.GetBody = func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(text)), nil }
	r.Body, _ = r.GetBody() // of bytes that are here: cannot fail
	return nil
}

// joined is a body whose beginning was read.
type joined struct {
	io.Reader
	io.Closer
}

// upgrade takes out of a request what would make another protocol of its connection,
// unless its route allows it. RFC 9110, section 7.8, lets a server ignore it.
func (x *route) upgrade(r *http.Request) {
	if r.Header["Upgrade"] == nil || x.upgradable(r) {
		return
	}
	delete(r.Header, "Upgrade")
	delete(r.Header, "Http2-Settings")
}
