package upstream

import (
	"net/http"
	"strings"

	"github.com/seed90641741/spillway/fault"
)

// headTooLong is the text of the error of net/http for a request whose headers are longer than an endpoint accepts by
// HTTP/2 (SETTINGS_MAX_HEADER_LIST_SIZE). The error itself is private.
const headTooLong = "request header list larger than peer's advertised limit"

// refusedHead returns the answer to a request whose headers an endpoint does not accept, or nil: RFC 6585, section 5.
// That is the client's fault, and nothing was sent.
func refusedHead(r *http.Request, err error) *http.Response {
	if !strings.HasSuffix(err.Error(), headTooLong) {
		return nil
	}
	const status = http.StatusRequestHeaderFieldsTooLarge
	return &http.Response{
		Status: "431 " + http.StatusText(status), StatusCode: status, Proto: "HTTP/2.0", ProtoMajor: 2,
		Header: make(http.Header), Body: http.NoBody, Request: r,
	}
}

// answerTooLong is a part of the text of the error of net/http for an answer of HTTP/1.1 whose head is longer than maxAnswerHead. By
// HTTP/2 the whole connection fails, and its other requests may be repeated.
const answerTooLong = "net/http: server response headers exceeded "

// A tooLongError says that the head of an answer is too long. The endpoint has processed the request, and would answer the same again.
type tooLongError struct{ error }

// Unwrap returns the error of net/http.
func (e tooLongError) Unwrap() error { return e.error }

// Failure implements [fault.Failurer].
func (tooLongError) Failure() fault.Failure {
	return fault.Failure{Safety: fault.RetryUnsafe, Party: fault.Server}
}

// final returns err, as one that is not repeated if the head of the answer is too long.
func final(err error) error {
	if strings.Contains(err.Error(), answerTooLong) {
		return tooLongError{err}
	}
	return err
}
