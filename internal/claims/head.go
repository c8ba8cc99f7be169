package claims

import (
	"net/http"

	"github.com/seed90641741/spillway"
)

// HeadKey is the key in the context of an event for the [*Head] of a request that was rejected
// early.
type HeadKey struct{}

// A Head is a request that is rejected before net/http has read it. It is valid only during the call
// of Observe.
type Head struct {
	Request *http.Request // it must not be changed: the next request may have the same header
	// ID is the X-Request-Id of the answer, which the observer may set; empty for none. It must be
	// printable ASCII.
	ID string
	// BodyLength returns the length of the body of the answer to a rejection for a reason. The answer to a HEAD has no body.
	BodyLength func(spillway.Reason) int
}
