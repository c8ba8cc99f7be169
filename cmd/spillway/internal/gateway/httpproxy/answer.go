package httpproxy

import (
	"context"
	"errors"
	"net"
	"net/http"
	"strconv"
	"time"

	"github.com/seed90641741/spillway"
	"github.com/seed90641741/spillway/cmd/spillway/internal/gateway/clients"
	"github.com/seed90641741/spillway/cmd/spillway/internal/gateway/headers"
	"github.com/seed90641741/spillway/cmd/spillway/internal/gateway/media"
	"github.com/seed90641741/spillway/cmd/spillway/internal/gateway/routes"
)

var (
	errNoRoute  = errors.New("no route matches")
	errDraining = errors.New("the proxy is ending")
	errCrowded  = errors.New("max_requests of the listener is reached")
	errConnect  = errors.New("the proxy opens no tunnels")
)

// An own is a response that the proxy sends instead of the upstream's.
type own struct {
	status int    // of HTTP
	code   string // of gRPC
	text   string
}

// The answers of the proxy. The texts report what happened without internal details.
var (
	tooBusy     = own{http.StatusServiceUnavailable, "14", "overloaded"}
	notReached  = own{http.StatusBadGateway, "14", "the upstream gave no answer"}
	tooLate     = own{http.StatusGatewayTimeout, "4", "the upstream gave no answer in time"}
	tooLong     = own{http.StatusRequestEntityTooLarge, "8", "the body is too long"}
	tooSlow     = own{http.StatusRequestTimeout, "1", "the body did not come in time"}
	cutShort    = own{http.StatusBadRequest, "1", "the body ended too soon"}
	nowhere     = own{http.StatusNotFound, "12", "no route"}
	noTunnel    = own{http.StatusMethodNotAllowed, "12", "CONNECT is not allowed"}
	badPath     = own{http.StatusBadRequest, "3", "the path can be read as another one"}
	ending      = own{http.StatusServiceUnavailable, "14", "ending"}
	clientLeft  = own{499, "1", "the client has left"}
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
func ownOf(r *http.Request, err error) own {
	if failed, ok := errors.AsType[*clients.BodyError](context.Cause(r.Context())); ok {
		err = failed // by which all ended
	}
	_, long := errors.AsType[*http.MaxBytesError](err)
	_, body := errors.AsType[*clients.BodyError](err)
	timeout, ok := errors.AsType[net.Error](err)
	late := errors.Is(err, context.DeadlineExceeded) || ok && timeout.Timeout()
	switch {
	case errors.Is(err, errNoRoute):
		return nowhere
	case errors.Is(err, errDraining):
		return ending
	case errors.Is(err, errConnect):
		return noTunnel
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
	case errors.Is(err, spillway.ErrRejected), errors.Is(err, errCrowded):
		return tooBusy
	case late:
		return tooLate
	default:
		return notReached
	}
}

// answer sends a response from the proxy itself. A gRPC call gets a status in the headers
// (trailers-only). For a rejected request, after is the Retry-After hint.
func answer(w http.ResponseWriter, r *http.Request, err error, after time.Duration) own {
	a := ownOf(r, err)
	n, h := accountingOf(r.Context()), w.Header()
	if n.note(a, err); n != nil {
		h[headers.RequestID] = n.id
	}
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
