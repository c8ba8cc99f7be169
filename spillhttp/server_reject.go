package spillhttp

import (
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/seed90641741/spillway"
	"github.com/seed90641741/spillway/fault"
	"github.com/seed90641741/spillway/ingress"
	"github.com/seed90641741/spillway/spillhttp/internal/early"
)

// The values of headers in a rejection, which are shared.
var (
	valueTrue   = []string{"true"}
	valueFalse  = []string{"false"}
	valueZero   = []string{"0"}
	valueClose  = []string{"close"}
	valueScopes = [...][]string{
		fault.ScopeTask:     {fault.ScopeTask.String()},
		fault.ScopeService:  {fault.ScopeService.String()},
		fault.ScopeCustomer: {fault.ScopeCustomer.String()},
	}
	valueUsedUp   = []string{`"quota";r=0`}
	valueGRPC     = []string{"application/grpc"}
	valueNoRetry  = []string{"-1"}
	grpcBusy      = []string{"14"} // UNAVAILABLE
	grpcExhausted = []string{"8"}  // RESOURCE_EXHAUSTED
	valueText     = []string{"text/plain; charset=utf-8"}
)

// Reject answers a request as a [Handler] does when it rejects one: in the form of its
// protocol, gRPC included, and without reading a body. It is for handlers that reject requests
// themselves: a call that they would have to make was rejected (spillway.ErrRejected), or the
// process is about to end. Nothing must have been written to w before.
//
// A zero Outcome means [spillway.OutcomeOverloaded]. RetryAfter is sent unchanged, if it is
// above zero: a handler that rejects many requests at once should add jitter. Set DontRetry if
// the error of the handler's call does (fault.Of): if each layer retried the failures of the
// one below, they would multiply.
func Reject(w http.ResponseWriter, r *http.Request, why ingress.Rejection) {
	if why.Outcome == 0 {
		why.Outcome = spillway.OutcomeOverloaded
	}
	reject(w, r, &why, wordingOf(ingress.ReasonsCoarse, &why))
}

// reject writes the answer to a request that is rejected. The body is one line for people; programs
// find all of it in the headers. Over HTTP/2 there is none: a second frame would cost a fifth of
// the rejection. There a Date takes net/http longer than any other header, so an answer of class 5xx,
// in which it is optional, has none.
func reject(w http.ResponseWriter, r *http.Request, why *ingress.Rejection, text *wording) {
	h := w.Header()
	if text.reason != nil {
		h[headerReason] = text.reason
	}
	if s := why.Scope(); s != fault.ScopeUnknown {
		h[headerScope] = valueScopes[s]
	}
	if r.ProtoMajor >= 2 && isGRPC(first(r.Header, "Content-Type")) {
		rejectGRPC(w, why, text)
		return
	}
	status := answerTo(h, why)
	if r.ProtoMajor >= 2 {
		h["Content-Length"] = valueZero
		if _, set := h["Date"]; !set && status == http.StatusServiceUnavailable {
			h["Date"] = nil
		}
		w.WriteHeader(status)
		return
	}
	h["Content-Length"] = text.length
	if text.reason != nil {
		h["Content-Type"] = valueText
	}
	if unread(r) {
		h["Connection"] = valueClose
	}
	w.WriteHeader(status)
	if text.body != nil {
		_, _ = w.Write(text.body) // net/http drops it for HEAD; who has left does not read it
	}
}

// answerTo adds to h what a rejection over HTTP says of retries, and returns its status.
func answerTo(h http.Header, why *ingress.Rejection) (status int) {
	if why.Outcome == spillway.OutcomeOverQuota {
		h[headerRateLimited] = valueTrue
		h[headerRateLimit] = valueUsedUp
		if why.RetryAfter > 0 {
			h[headerRateLimit] = []string{valueUsedUp[0] + ";t=" + seconds(why.RetryAfter)}
			comeBack(h, why.RetryAfter)
		}
		return http.StatusTooManyRequests
	}
	h[headerOverloaded] = valueTrue
	if why.DontRetry {
		// Many clients take Retry-After for an invitation.
		h[headerShouldRetry] = valueFalse
	} else if why.RetryAfter > 0 {
		comeBack(h, why.RetryAfter)
	}
	return http.StatusServiceUnavailable
}

// comeBack says when to come back: in whole seconds, and for clients that know it in
// milliseconds, without which most of the jitter would be lost.
func comeBack(h http.Header, d time.Duration) {
	values := &[...]string{seconds(d), milliseconds(d)}
	h[headerRetryAfter] = values[0:1:1]
	h[headerRetryAfterMs] = values[1:2:2]
}

// seconds returns d in seconds, rounded up.
func seconds(d time.Duration) string {
	return strconv.FormatInt(int64((d+time.Second-1)/time.Second), 10)
}

// rejectGRPC answers a gRPC call: a status instead of headers, with nothing after it. Only
// from such an answer do clients read the retry delay.
func rejectGRPC(w http.ResponseWriter, why *ingress.Rejection, text *wording) {
	h := w.Header()
	h["Content-Type"] = valueGRPC
	h[headerGRPCStatus] = grpcBusy
	if why.Outcome == spillway.OutcomeOverQuota {
		h[headerGRPCStatus] = grpcExhausted
	}
	h[headerGRPCMessage] = text.message
	switch {
	case why.DontRetry:
		h[headerGRPCPushback] = valueNoRetry
	case why.RetryAfter > 0:
		h[headerGRPCPushback] = []string{milliseconds(why.RetryAfter)}
	}
	w.WriteHeader(http.StatusOK)
}

// isGRPC reports whether a content type is one of gRPC.
func isGRPC(contentType string) bool {
	rest, ok := strings.CutPrefix(contentType, valueGRPC[0])
	return ok && (rest == "" || rest[0] == '+' || rest[0] == ';')
}

// unread reports whether the rest of a body is so long that it is better to close the
// connection. net/http reads a shorter rest before it answers.
func unread(r *http.Request) bool {
	return r.ProtoMajor == 1 && (r.ContentLength < 0 || r.ContentLength > early.MaxBody)
}
