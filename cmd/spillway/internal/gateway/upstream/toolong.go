package upstream

import (
	"net/http"
	"strings"
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
