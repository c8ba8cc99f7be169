package spillhttp

import (
	"maps"
	"net/http"

	"github.com/seed90641741/spillway/internal/claims"
)

// baggage returns what the baggage of the attempts is to be, and whether it is another than
// that of the request. Services that know nothing of the header of Spillway pass baggage
// on, so the class is in both.
func (x *exchange) baggage() (values []string, changes bool) {
	if x.internal && !x.labelled {
		return nil, false
	}
	return claims.ReplaceBaggage(x.request.Header[headerBaggage], x.class, x.internal)
}

// restated returns the header with which r is to be served, whose baggage says what
// was believed, or nil if it already does. A member criticality that was not believed must not
// be passed on to services that would believe it, by handlers that pass on all baggage.
func restated(r *http.Request, a *arrival) http.Header {
	if len(a.baggage) == 0 || !claims.HasBaggage(a.baggage) {
		return nil
	}
	believed, changed := claims.ReplaceBaggage(a.baggage, a.call.Criticality, a.labelled)
	if !changed {
		return nil
	}
	h := maps.Clone(r.Header)
	claims.PutBaggage(h, headerBaggage, believed)
	return h
}
