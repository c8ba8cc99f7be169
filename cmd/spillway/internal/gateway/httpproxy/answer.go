package httpproxy

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/seed90641741/spillway"
	"github.com/seed90641741/spillway/cmd/spillway/internal/gateway/clients"
	"github.com/seed90641741/spillway/cmd/spillway/internal/gateway/message"
	"github.com/seed90641741/spillway/cmd/spillway/internal/gateway/routes"
	"github.com/seed90641741/spillway/ingress"
	"github.com/seed90641741/spillway/internal/admin/accounts"
)

// An own is a response that the proxy sends instead of the upstream's. As an error it is the reason for
// this response.
type own struct {
	status  int    // of HTTP
	code    string // of gRPC
	account accounts.Account
	reason  accounts.Reason
	text    string
}

func (a *own) Error() string { return a.text }

// The answers of the proxy. The texts report what happened without internal details. GoneWaiting is the
// account of clients that have left, whether or not their request was sent on.
var (
	errBusy       = &own{http.StatusServiceUnavailable, "14", accounts.Rejected, accounts.MaxRequests, "overloaded"}
	errNotReached = &own{http.StatusBadGateway, "14", accounts.Failed, 0, "the upstream gave no answer"}
	errLate       = &own{http.StatusGatewayTimeout, "4", accounts.Late, 0, "the upstream gave no answer in time"}
	errTooLong    = &own{http.StatusRequestEntityTooLarge, "8", accounts.Rejected, accounts.BadRequest, "the body is too long"}
	errSlow       = &own{http.StatusRequestTimeout, "1", accounts.GoneWaiting, 0, "the body did not come in time"}
	errCutShort   = &own{http.StatusBadRequest, "1", accounts.GoneWaiting, 0, "the body ended too soon"}
	errNoRoute    = &own{http.StatusNotFound, "12", accounts.Rejected, accounts.NoRoute, "no route"}
	errTunnel     = &own{http.StatusMethodNotAllowed, "12", accounts.Rejected, accounts.BadRequest, "CONNECT is not allowed"}
	errPath       = &own{http.StatusBadRequest, "3", accounts.Rejected, accounts.BadRequest, "the path can be read as another one"}
	errMalformed  = &own{http.StatusBadRequest, "3", accounts.Rejected, accounts.BadRequest, "the method, the host or a trailer is malformed"}
	errDraining   = &own{http.StatusServiceUnavailable, "14", accounts.Rejected, accounts.Draining, "ending"}
	errClientLeft = &own{499, "1", accounts.GoneWaiting, 0, "the client has left"}
	grpcContent   = []string{message.GRPC}
)

// A rejection by the proxy's own throttle, in-flight limit or queue concerns the whole
// cluster: a retry by the layer above would be rejected, too.
var (
	dontRetry    = []string{"false"}
	noPushback   = []string{"-1"}
	scopeService = []string{"service"}
	scopeTask    = []string{"task"} // another proxy may have capacity
)

func ownOf(r *http.Request, err error) *own {
	broken := false
	for _, e := range []error{err, context.Cause(r.Context())} {
		if failed, ok := errors.AsType[*clients.BodyError](e); ok {
			err, broken = failed, true // by which all ended, without what was made of it
		}
	}
	decided, isOwn := errors.AsType[*own](err)
	_, long := errors.AsType[*http.MaxBytesError](err)
	timeout, ok := errors.AsType[net.Error](err)
	late := errors.Is(err, context.DeadlineExceeded) || ok && timeout.Timeout()
	switch {
	case isOwn && decided != errBusy:
		return decided
	case errors.Is(err, routes.ErrPath):
		return errPath
	case long:
		return errTooLong
	case late && (broken || message.Late(r.Context())):
		return errSlow
	case broken:
		return errCutShort
	case errors.Is(r.Context().Err(), context.Canceled):
		return errClientLeft
	case isOwn, errors.Is(err, spillway.ErrRejected):
		return errBusy
	case late:
		return errLate
	default:
		return errNotReached
	}
}

// answer sends a response from the proxy itself. A gRPC call gets a status in the headers
// (trailers-only). For a rejected request, after is the Retry-After hint.
func answer(w http.ResponseWriter, r *http.Request, err error, after time.Duration) {
	a := ownOf(r, err)
	n, h := accountingOf(r.Context()), w.Header()
	n.note(a, err)
	h[message.RequestID] = n.id
	ms := strconv.FormatInt(after.Milliseconds(), 10)
	final := a == errBusy && errors.Is(err, spillway.ErrRejected)
	reason := disclosed(r, a, err)
	if reason != "" {
		h[reasonHeader] = []string{reason}
	}
	switch {
	case final:
		h[scopeHeader] = scopeService
	case a == errBusy, a == errDraining:
		h[scopeHeader] = scopeTask
	}
	if message.IsGRPC(r) {
		h["Content-Type"] = grpcContent
		h["Grpc-Status"] = []string{a.code}
		h["Grpc-Message"] = []string{a.message(reason)}
		switch {
		case final:
			h["Grpc-Retry-Pushback-Ms"] = noPushback
		case a == errBusy:
			h["Grpc-Retry-Pushback-Ms"] = []string{ms}
		}
		w.WriteHeader(http.StatusOK)
		return
	}
	if a == errBusy {
		h.Set("X-Envoy-Overloaded", "true")
		if final {
			h["X-Should-Retry"] = dontRetry
		}
		h.Set("Retry-After", strconv.FormatInt(int64((after.Truncate(time.Millisecond)+time.Second-1)/time.Second), 10))
		h.Set("Retry-After-Ms", ms)
	}
	h.Set("Content-Type", "text/plain; charset=utf-8")
	h.Set("X-Content-Type-Options", "nosniff")
	if r.ProtoMajor == 1 && (a == errSlow || a == errCutShort || a == errTooLong) {
		h.Set("Connection", "close") // what is left of the body is not worth reading; by HTTP/2 its stream is reset
	}
	w.WriteHeader(a.status)
	if r.Method != http.MethodHead {
		_, _ = w.Write(a.body(reason)) //nolint:gosec,nolintlint // a text of our own, which gosec minds in some orders of packages; who has left does not read it
	}
}

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
	case a == errBusy && reason == "":
		return nil
	case a == errBusy:
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
	if a != errBusy {
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
	h, status := resp.Header, resp.StatusCode
	if h[reasonHeader] == nil || s.discloses == ingress.ReasonsFull {
		return
	}
	line := s.concealIn(h, status == http.StatusTooManyRequests || h.Get("Grpc-Status") == "8")
	if status == http.StatusServiceUnavailable || status == http.StatusTooManyRequests {
		replaceBody(resp, line)
	}
}

// concealIn is conceal for headers or trailers. It returns the body of the answer.
func (s *settings) concealIn(h http.Header, quota bool) (line string) {
	reason, message := coarse, errBusy.text
	if quota {
		reason, message = "quota", "over quota"
	}
	if h["Grpc-Message"] != nil {
		h["Grpc-Message"] = []string{message}
	}
	if s.discloses == ingress.ReasonsNone {
		delete(h, reasonHeader)
		return ""
	}
	h[reasonHeader] = []string{reason}
	return "rejected: " + reason + "\n"
}

// unread is how much of a body that is replaced is read, so that its connection can be used again.
// The bodies of rejections are shorter.
const unread = 512

func replaceBody(resp *http.Response, text string) {
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
