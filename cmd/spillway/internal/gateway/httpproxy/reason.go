package httpproxy

import (
	"errors"
	"io"
	"net/http"
	"strconv"
	"strings"

	"github.com/seed90641741/spillway"
	"github.com/seed90641741/spillway/cmd/spillway/internal/gateway/accounts"
	"github.com/seed90641741/spillway/ingress"
)

// reasonHeader says why a request was rejected.
const reasonHeader = "X-Overload-Reason"

// disclosed returns the reason that the client of a rejected request learns; empty for none.
func disclosed(r *http.Request, a own, err error) string {
	n := accountingOf(r.Context())
	if a != tooBusy || n == nil {
		return ""
	}
	switch n.listener.settings.Load().discloses {
	case ingress.ReasonsNone:
		return ""
	case ingress.ReasonsFull:
		if by, ok := errors.AsType[*spillway.RejectedError](err); ok {
			return by.Reason.String()
		}
		return accounts.MaxRequests.String()
	default:
		return "overload"
	}
}

// conceal removes what a rejection by the upstream says of its reason, if the client may not learn
// that: from the header, from the message of gRPC and from the body.
func (s *settings) conceal(resp *http.Response) {
	h := resp.Header
	values := h[reasonHeader]
	if values == nil || s.discloses == ingress.ReasonsFull {
		return
	}
	reason, message := "overload", tooBusy.text
	if resp.StatusCode == http.StatusTooManyRequests || h.Get("Grpc-Status") == "8" {
		reason, message = "quota", "over quota"
	}
	h[reasonHeader] = []string{reason}
	if s.discloses == ingress.ReasonsNone {
		delete(h, reasonHeader)
	}
	if h["Grpc-Message"] != nil {
		h["Grpc-Message"] = []string{message}
	}
	if resp.StatusCode == http.StatusServiceUnavailable || resp.StatusCode == http.StatusTooManyRequests {
		replaceBody(resp, message+"\n")
	}
}

// unreadBody is how much of a body that is replaced is read, so that its connection can be used
// again. The bodies of rejections are shorter.
const unreadBody = 512

// replaceBody replaces the body of an answer.
func replaceBody(resp *http.Response, text string) {
	_, _ = io.CopyN(io.Discard, resp.Body, unreadBody) // an error costs the connection
	_ = resp.Body.Close()                              // it is replaced
	resp.Body, resp.ContentLength = io.NopCloser(strings.NewReader(text)), int64(len(text))
	resp.TransferEncoding, resp.Trailer = nil, nil
	resp.Header.Set("Content-Length", strconv.Itoa(len(text)))
	resp.Header.Set("Content-Type", "text/plain; charset=utf-8")
	delete(resp.Header, "Content-Encoding")
	if resp.Request.Method == http.MethodHead {
		resp.Body = http.NoBody
	}
}
