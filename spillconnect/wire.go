package spillconnect

import (
	"net/http"
	"strconv"
	"strings"

	"github.com/seed90641741/spillway"
	"github.com/seed90641741/spillway/internal/claims"
)

// The headers of a request.
const (
	headerCriticality = "X-Request-Criticality"
	headerBaggage     = "Baggage"
	headerAttempts    = "Grpc-Previous-Rpc-Attempts" // absent for the first attempt, 1 for the second
)

// The metadata of an error: headers with Connect, trailers with gRPC.
const (
	headerPushback    = "Grpc-Retry-Pushback-Ms"
	headerScope       = "X-Overload-Scope"
	headerReason      = "X-Overload-Reason"
	headerRetryAfter  = "Retry-After"
	headerShouldRetry = "X-Should-Retry"
)

// What an ErrorInfo says: the reason, and the scope in its metadata.
const (
	errorDomain     = "spillway"
	reasonTask      = "OVERLOADED"
	reasonDontRetry = "OVERLOADED_DONT_RETRY"
	reasonCustomer  = "OVER_QUOTA"
	metadataScope   = "x-overload-scope"
)

// label adds to the headers of an attempt how critical the call is, if that is known, and
// which attempt this is. External services get none of these headers.
func label(h http.Header, c spillway.Criticality, labelled bool, number int, external bool) {
	h.Del(headerAttempts)
	if external {
		h.Del(headerCriticality)
		if values := h[headerBaggage]; claims.HasBaggage(values) {
			claims.Put(h, headerBaggage, claims.RemoveBaggage(values))
		}
		return
	}
	if labelled && c.Valid() && h.Get(headerCriticality) == "" {
		h.Set(headerCriticality, c.String())
		claims.Put(h, headerBaggage, claims.SetBaggage(h[headerBaggage], c))
	}
	if number > 0 {
		h.Set(headerAttempts, strconv.Itoa(number))
	}
}

// restate has the headers of a call that is served say what was believed of its class. A class that was not believed must not be
// passed on to services that would believe it, by handlers that pass on the request or all baggage.
func restate(h http.Header, class spillway.Criticality, labelled bool) {
	if label, baggage, changed := claims.Restate(h[headerCriticality], h[headerBaggage], class, labelled); changed {
		claims.Put(h, headerCriticality, label)
		claims.Put(h, headerBaggage, baggage)
	}
}

// attemptOf returns which attempt the headers of a request name, from 0. The highest one
// counts.
func attemptOf(values []string) (n int) {
	for _, v := range values {
		if i, err := strconv.ParseInt(strings.TrimSpace(v), 10, 32); err == nil {
			n = max(n, int(i))
		}
	}
	return n
}
