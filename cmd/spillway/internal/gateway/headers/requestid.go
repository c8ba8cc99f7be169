package headers

import (
	"crypto/rand"
	"encoding/hex"
	"net/http"
)

// RequestID is the header with the id of a request.
const RequestID = "X-Request-Id"

// maxID is the longest id that is kept, in bytes. An id is in each line about its request.
const maxID = 128

// Identify gives a request an id and returns it, as the values of the header: the id that came with
// the request if the client is trusted, and it is a word of printable ASCII; else a new UUID.
func Identify(h http.Header, trusted bool) []string {
	if came := h[RequestID]; trusted && len(came) > 0 && word(came[0]) {
		if len(came) > 1 { // others could read another one
			came = came[:1:1]
			h[RequestID] = came
		}
		return came
	}
	id := []string{newID()}
	h[RequestID] = id
	return id
}

// IDOf returns the id that Identify gives a request, and leaves its header as it is.
func IDOf(h http.Header, trusted bool) string {
	if came := h[RequestID]; trusted && len(came) > 0 && word(came[0]) {
		return came[0]
	}
	return newID()
}

func word(id string) bool {
	for i := range len(id) {
		if id[i] <= ' ' || id[i] > '~' {
			return false
		}
	}
	return id != "" && len(id) <= maxID
}

// newID returns a UUID of version 4: RFC 9562, section 5.4.
func newID() string {
	var id [16]byte
	_, _ = rand.Read(id[:]) // it never fails
	id[6], id[8] = id[6]&0x0f|0x40, id[8]&0x3f|0x80
	var text [36]byte
	for i, from := 0, 0; i < len(text); {
		n := groups[i]
		hex.Encode(text[i:], id[from:from+n])
		from += n
		if i += 2 * n; i < len(text) {
			text[i] = '-'
			i++
		}
	}
	return string(text[:])
}

// groups are how many bytes of a UUID begin at a place of its text.
var groups = [...]int{0: 4, 9: 2, 14: 2, 19: 2, 24: 6}
