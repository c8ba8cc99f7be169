package upstream

import (
	"net/http"
	"slices"
	"strings"

	"github.com/seed90641741/spillway/fault"
)

// headTooLong is the text of the error of net/http for a request whose headers are longer than an endpoint accepts by
// HTTP/2 (SETTINGS_MAX_HEADER_LIST_SIZE). The error itself is private.
const headTooLong = "request header list larger than peer's advertised limit"

// rejectedHead returns the answer to a request whose headers an endpoint does not accept, or nil: RFC 6585, section 5.
// That is the client's fault, and nothing was sent.
func rejectedHead(r *http.Request, err error) *http.Response {
	if !strings.HasSuffix(err.Error(), headTooLong) {
		return nil
	}
	const status = http.StatusRequestHeaderFieldsTooLarge
	return &http.Response{
		Status: "431 " + http.StatusText(status), StatusCode: status, Proto: "HTTP/2.0", ProtoMajor: 2,
		Header: make(http.Header), Body: http.NoBody, Request: r,
	}
}

// answersTooLong are parts of the texts of the errors of net/http for an answer whose head is longer than maxAnswerHead.
var answersTooLong = []string{
	"net/http: server response headers exceeded ",
	"http2: response header list larger than advertised limit",
}

// brokenByHead is that text for all requests of a connection of HTTP/2 that such an answer has broken, and for those of one that was
// broken by something else.
const brokenByHead = "connection error: PROTOCOL_ERROR"

// A tooLongError says that the head of an answer is too long. The endpoint has processed the request, and would answer the same again.
type tooLongError struct{ error }

// Unwrap returns the error of net/http.
func (e tooLongError) Unwrap() error { return e.error }

// Failure implements [fault.Failurer].
func (tooLongError) Failure() fault.Failure {
	return fault.Failure{Safety: fault.RetryUnsafe, Party: fault.Server}
}

// tooLong reports whether err says that the head of the answer is too long. last says that on a connection of HTTP/2 no head longer than
// a frame has begun after it.
func tooLong(err error, last bool) bool {
	text := err.Error()
	in := func(part string) bool { return strings.Contains(text, part) }
	return slices.ContainsFunc(answersTooLong, in) || last && in(brokenByHead)
}
