package spillhttp

import (
	"net/http"

	"github.com/seed90641741/spillway/egress"
	"github.com/seed90641741/spillway/internal/claims"
)

// headerAcceptRatio is of an answer, hop by hop: the share of the calls of the
// request's criticality that the server has accepted recently, from 0 to 1. It is
// absent where that is nearly 1, and at an edge.
const headerAcceptRatio = "X-Request-Accept-Ratio"

// listenToAdvice passes on to the throttle which share of its calls the server says
// that it accepts, if the server is trusted. The header is for this caller only, which
// must not pass it on as its own.
func (x *exchange) listenToAdvice(h http.Header, a *egress.Attempt) {
	values := h[headerAcceptRatio]
	if len(values) == 0 {
		return
	}
	delete(h, headerAcceptRatio)
	if ratio, ok := claims.Ratio(values); ok && x.internal {
		a.Advise(ratio)
	}
}
