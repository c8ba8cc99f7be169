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

// These are header values of rejections, which all answers share.
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

// Reject answers a request as a [Handler] does when it rejects one: in the form of its protocol,
// gRPC included, and without reading a body. It is for handlers that reject requests themselves,
// for example because a call that they need was rejected ([spillway.ErrRejected]), or because the
// process is about to end. Nothing must have been written to w before.
//
// A zero Outcome means [spillway.OutcomeOverloaded]. RetryAfter is sent unchanged if it is above
// zero: a handler that rejects many requests at once should add jitter. Set DontRetry if the error
// of the handler's call does (fault.Of): if each layer retried the failures of the layer below,
// retries would multiply.
func Reject(w http.ResponseWriter, r *http.Request, why ingress.Rejection) {
	if why.Outcome == 0 {
		why.Outcome = spillway.OutcomeOverloaded
	}
	reject(w, r, &why, wordingOf(ingress.ReasonsCoarse, &why))
}

// reject writes the answer to a rejected request. The body is one line for people; programs find
// everything in the headers. Over HTTP/2 there is no body, because a second frame would cost a
// fifth of the rejection. There an answer with 503 has no Date either: it is optional for class
// 5xx, and costs net/http more than any other header.
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
		_, _ = w.Write(text.body) // net/http drops it for HEAD; an error means that the client left
	}
}

// answerTo adds the headers of a rejection over HTTP to h, and returns its status.
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
		// There is no Retry-After: many clients retry whenever they see one.
		h[headerShouldRetry] = valueFalse
	} else if why.RetryAfter > 0 {
		comeBack(h, why.RetryAfter)
	}
	return http.StatusServiceUnavailable
}

// comeBack says when to retry, in whole seconds. The same in milliseconds is for clients that know
// that header: rounding to seconds would remove most of the jitter.
func comeBack(h http.Header, d time.Duration) {
	values := &[...]string{seconds(d), milliseconds(d)}
	h[headerRetryAfter] = values[0:1:1]
	h[headerRetryAfterMs] = values[1:2:2]
}

// seconds returns d in seconds, rounded up.
func seconds(d time.Duration) string {
	return strconv.FormatInt(int64((d+time.Second-1)/time.Second), 10)
}

// rejectGRPC answers a gRPC call with a status in the headers and nothing after it. Clients read
// the retry delay only from such an answer.
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

// unread reports whether the rest of a body is so long that closing the connection is better.
// net/http reads a shorter rest before it answers.
func unread(r *http.Request) bool {
	return r.ProtoMajor == 1 && (r.ContentLength < 0 || r.ContentLength > early.MaxBody)
}
