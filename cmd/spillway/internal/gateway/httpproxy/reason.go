package httpproxy

import (
	"errors"
	"net/http"

	"github.com/seed90641741/spillway"
	"github.com/seed90641741/spillway/cmd/spillway/internal/gateway/accounts"
	"github.com/seed90641741/spillway/cmd/spillway/internal/gateway/body"
	"github.com/seed90641741/spillway/ingress"
)

// reasonHeader says why a request was rejected, and scopeHeader how far that reaches.
const (
	reasonHeader = "X-Overload-Reason"
	scopeHeader  = "X-Overload-Scope"
)

// coarse is the reason of an overload that untrusted clients learn.
const coarse = "overload"

// body returns the body of the answer: one line. That of a rejection has the reason, as the gates of
// package spillhttp write it; that of a failure begins with the name of the proxy.
func (a *own) body(reason string) []byte {
	switch {
	case a == tooBusy && reason == "":
		return nil
	case a == tooBusy:
		return []byte("rejected: " + reason + "\n")
	case a.account == accounts.Rejected:
		return []byte("rejected: " + a.reason.String() + " (" + a.text + ")\n")
	default:
		return []byte("spillway: " + a.text + "\n")
	}
}

// message returns the message of a call of gRPC.
func (a *own) message(reason string) string {
	if reason == "" || reason == coarse {
		return a.text
	}
	return a.text + " (" + reason + ")"
}

// disclosed returns the reason that the client of a rejected request learns; empty for none.
func disclosed(r *http.Request, a *own, err error) string {
	if a != tooBusy {
		return ""
	}
	switch accountingOf(r.Context()).listener.settings.Load().discloses {
	case ingress.ReasonsNone:
		return ""
	case ingress.ReasonsFull:
		if by, ok := errors.AsType[*spillway.RejectedError](err); ok {
			return by.Reason.String()
		}
		return accounts.MaxRequests.String()
	default:
		return coarse
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
	reason, message := coarse, tooBusy.text
	if resp.StatusCode == http.StatusTooManyRequests || h.Get("Grpc-Status") == "8" {
		reason, message = "quota", "over quota"
	}
	h[reasonHeader] = []string{reason}
	line := "rejected: " + reason + "\n"
	if s.discloses == ingress.ReasonsNone {
		delete(h, reasonHeader)
		line = ""
	}
	if h["Grpc-Message"] != nil {
		h["Grpc-Message"] = []string{message}
	}
	if resp.StatusCode == http.StatusServiceUnavailable || resp.StatusCode == http.StatusTooManyRequests {
		body.Replace(resp, line)
	}
}
