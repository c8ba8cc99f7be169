package spillhttp

import (
	"maps"
	"net/http"

	"github.com/seed90641741/spillway/internal/claims"
)

// What is sent. Services that know nothing of the header of Spillway pass baggage
// on, so the class is in both.

// baggage returns what the baggage of the attempts is to be, and whether it is another than
// that of the request.
func (x *exchange) baggage() (values []string, changes bool) {
	if x.internal && !x.labelled {
		return nil, false
	}
	has := x.request.Header[headerBaggage]
	if x.internal {
		values = claims.SetBaggage(has, x.class)
	} else {
		values = claims.RemoveBaggage(has)
	}
	return values, !same(values, has)
}

// same reports whether two headers are the same values, as far as they were not
// changed by package claims.
func same(a, b []string) bool {
	return len(a) == len(b) && (len(a) == 0 || &a[0] == &b[0])
}

// setBaggage makes values the baggage of h.
func setBaggage(h http.Header, values []string) {
	if len(values) == 0 {
		delete(h, headerBaggage)
	} else {
		h[headerBaggage] = values
	}
}

// What is received. A member criticality that was not believed must not be passed on
// to services that would believe it, by handlers that pass on all baggage.

// restated returns the header with which r is to be served, whose baggage says what
// was believed, or nil if it already does.
func restated(r *http.Request, a *arrival) http.Header {
	values := a.baggage
	if len(values) == 0 || !claims.HasBaggage(values) {
		return nil
	}
	believed := claims.RemoveBaggage(values)
	if a.labelled {
		believed = claims.SetBaggage(values, a.call.Criticality)
	}
	if same(believed, values) {
		return nil
	}
	h := maps.Clone(r.Header)
	setBaggage(h, believed)
	return h
}
