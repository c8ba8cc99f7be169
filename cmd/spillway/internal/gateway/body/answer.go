package body

import (
	"io"
	"net/http"
	"strconv"
	"strings"
)

// unread is how much of a body that is replaced is read, so that its connection can be used again.
// The bodies of rejections are shorter.
const unread = 512

// Replace replaces the body of an answer.
func Replace(resp *http.Response, text string) {
	_, _ = io.CopyN(io.Discard, resp.Body, unread) // an error costs the connection
	_ = resp.Body.Close()                          // it is replaced
	resp.Body, resp.ContentLength = io.NopCloser(strings.NewReader(text)), int64(len(text))
	resp.TransferEncoding, resp.Trailer = nil, nil
	resp.Header.Set("Content-Length", strconv.Itoa(len(text)))
	resp.Header.Set("Content-Type", "text/plain; charset=utf-8")
	delete(resp.Header, "Content-Encoding")
	if resp.Request.Method == http.MethodHead {
		resp.Body = http.NoBody
	}
}
