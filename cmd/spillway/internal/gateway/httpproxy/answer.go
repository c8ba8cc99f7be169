package httpproxy

import (
	"context"
	"errors"
	"net"
	"net/http"
	"strconv"
	"time"

	"github.com/seed90641741/spillway"
	"github.com/seed90641741/spillway/cmd/spillway/internal/gateway/accounts"
	"github.com/seed90641741/spillway/cmd/spillway/internal/gateway/clients"
	"github.com/seed90641741/spillway/cmd/spillway/internal/gateway/headers"
	"github.com/seed90641741/spillway/cmd/spillway/internal/gateway/media"
	"github.com/seed90641741/spillway/cmd/spillway/internal/gateway/routes"
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

// Error implements error.
func (a *own) Error() string { return a.text }

// The answers of the proxy. The texts report what happened without internal details. GoneWaiting is the
// account of clients that have left, whether or not their request was sent on.
var (
	tooBusy     = &own{http.StatusServiceUnavailable, "14", accounts.Rejected, accounts.MaxRequests, "overloaded"}
	notReached  = &own{http.StatusBadGateway, "14", accounts.Failed, 0, "the upstream gave no answer"}
	tooLate     = &own{http.StatusGatewayTimeout, "4", accounts.Late, 0, "the upstream gave no answer in time"}
	tooLong     = &own{http.StatusRequestEntityTooLarge, "8", accounts.Rejected, accounts.BadRequest, "the body is too long"}
	tooSlow     = &own{http.StatusRequestTimeout, "1", accounts.GoneWaiting, 0, "the body did not come in time"}
	cutShort    = &own{http.StatusBadRequest, "1", accounts.GoneWaiting, 0, "the body ended too soon"}
	nowhere     = &own{http.StatusNotFound, "12", accounts.Rejected, accounts.NoRoute, "no route"}
	noTunnel    = &own{http.StatusMethodNotAllowed, "12", accounts.Rejected, accounts.BadRequest, "CONNECT is not allowed"}
	badPath     = &own{http.StatusBadRequest, "3", accounts.Rejected, accounts.BadRequest, "the path can be read as another one"}
	ending      = &own{http.StatusServiceUnavailable, "14", accounts.Rejected, accounts.Draining, "ending"}
	clientLeft  = &own{499, "1", accounts.GoneWaiting, 0, "the client has left"}
	grpcContent = []string{media.GRPC}
)

// A rejection by the proxy's own throttle, in-flight limit or queue concerns the whole
// cluster: a retry by the layer above would be rejected, too.
var (
	dontRetry    = []string{"false"}
	noPushback   = []string{"-1"}
	scopeService = []string{"service"}
	scopeTask    = []string{"task"} // another proxy may have capacity
)

// ownOf returns the answer for an error.
func ownOf(r *http.Request, err error) *own {
	if failed, ok := errors.AsType[*clients.BodyError](context.Cause(r.Context())); ok {
		err = failed // by which all ended
	}
	decided, isOwn := errors.AsType[*own](err)
	_, long := errors.AsType[*http.MaxBytesError](err)
	_, body := errors.AsType[*clients.BodyError](err)
	timeout, ok := errors.AsType[net.Error](err)
	late := errors.Is(err, context.DeadlineExceeded) || ok && timeout.Timeout()
	switch {
	case isOwn && decided != tooBusy:
		return decided
	case errors.Is(err, routes.ErrPath):
		return badPath
	case long:
		return tooLong
	case body && late:
		return tooSlow
	case body:
		return cutShort
	case errors.Is(r.Context().Err(), context.Canceled):
		return clientLeft
	case isOwn, errors.Is(err, spillway.ErrRejected):
		return tooBusy
	case late:
		return tooLate
	default:
		return notReached
	}
}

// answer sends a response from the proxy itself. A gRPC call gets a status in the headers
// (trailers-only). For a rejected request, after is the Retry-After hint.
func answer(w http.ResponseWriter, r *http.Request, err error, after time.Duration) *own {
	a := ownOf(r, err)
	n, h := accountingOf(r.Context()), w.Header()
	n.note(a, err)
	h[headers.RequestID] = n.id
	ms := strconv.FormatInt(after.Milliseconds(), 10)
	final := a == tooBusy && errors.Is(err, spillway.ErrRejected)
	reason := disclosed(r, a, err)
	if reason != "" {
		h[reasonHeader] = []string{reason}
	}
	switch {
	case final:
		h[scopeHeader] = scopeService
	case a == tooBusy, a == ending:
		h[scopeHeader] = scopeTask
	}
	if media.IsGRPC(r) {
		h["Content-Type"] = grpcContent
		h["Grpc-Status"] = []string{a.code}
		h["Grpc-Message"] = []string{a.message(reason)}
		switch {
		case final:
			h["Grpc-Retry-Pushback-Ms"] = noPushback
		case a == tooBusy:
			h["Grpc-Retry-Pushback-Ms"] = []string{ms}
		}
		w.WriteHeader(http.StatusOK)
		return a
	}
	if a == tooBusy {
		h.Set("X-Envoy-Overloaded", "true")
		if final {
			h["X-Should-Retry"] = dontRetry
		}
		h.Set("Retry-After", strconv.FormatInt(int64((after.Truncate(time.Millisecond)+time.Second-1)/time.Second), 10))
		h.Set("Retry-After-Ms", ms)
	}
	h.Set("Content-Type", "text/plain; charset=utf-8")
	h.Set("X-Content-Type-Options", "nosniff")
	if a == tooSlow || a == cutShort || a == tooLong {
		h.Set("Connection", "close") // what is left of the body is not worth reading
	}
	w.WriteHeader(a.status)
	if r.Method != http.MethodHead {
		_, _ = w.Write(a.body(reason)) // who has left does not read it
	}
	return a
}
