package proxy

import (
	"context"
	"errors"
	"net"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/seed90641741/spillway"
)

var (
	errNoRoute  = errors.New("no route matches")
	errDraining = errors.New("the proxy is ending")
)

// An answer of the proxy itself, in place of one of the upstream.
type own struct {
	status int    // of HTTP
	code   string // of gRPC
	text   string
}

// What there is to say. The texts tell what happened, and nothing of the inside.
var (
	tooBusy     = own{http.StatusServiceUnavailable, "14", "overloaded"}
	notReached  = own{http.StatusBadGateway, "14", "the upstream gave no answer"}
	tooLate     = own{http.StatusGatewayTimeout, "4", "the upstream gave no answer in time"}
	tooLong     = own{http.StatusRequestEntityTooLarge, "8", "the body is too long"}
	tooSlow     = own{http.StatusRequestTimeout, "1", "the body did not come in time"}
	cutShort    = own{http.StatusBadRequest, "1", "the body ended too soon"}
	nowhere     = own{http.StatusNotFound, "12", "no route"}
	ending      = own{http.StatusServiceUnavailable, "14", "ending"}
	clientLeft  = own{499, "1", "the client has left"}
	grpcContent = []string{"application/grpc"}
)

// ownOf returns what to say for an error.
func ownOf(r *http.Request, err error) own {
	if failed, ok := errors.AsType[*bodyError](context.Cause(r.Context())); ok {
		err = failed // by which all ended
	}
	_, long := errors.AsType[*http.MaxBytesError](err)
	_, body := errors.AsType[*bodyError](err)
	timeout, ok := errors.AsType[net.Error](err)
	incoming, _ := r.Context().Value(watchedKey{}).(*watched)
	late := errors.Is(err, context.DeadlineExceeded) || ok && timeout.Timeout()
	switch {
	case errors.Is(err, errNoRoute):
		return nowhere
	case errors.Is(err, errDraining):
		return ending
	case long:
		return tooLong
	case body && late, incoming != nil && incoming.overdue():
		return tooSlow
	case body:
		return cutShort
	case errors.Is(r.Context().Err(), context.Canceled):
		return clientLeft
	case errors.Is(err, spillway.ErrRejected):
		return tooBusy
	case late:
		return tooLate
	default:
		return notReached
	}
}

// answer answers a request itself. A call of gRPC gets a status in the place of
// headers. A client that was refused is told to come back after so long.
func answer(w http.ResponseWriter, r *http.Request, err error, after time.Duration) own {
	a := ownOf(r, err)
	h := w.Header()
	ms := strconv.FormatInt(after.Milliseconds(), 10)
	if isGRPC(r) && r.ProtoMajor >= 2 {
		h["Content-Type"] = grpcContent
		h["Grpc-Status"] = []string{a.code}
		h["Grpc-Message"] = []string{a.text}
		if a == tooBusy {
			h["Grpc-Retry-Pushback-Ms"] = []string{ms}
		}
		w.WriteHeader(http.StatusOK)
		return a
	}
	if a == tooBusy {
		h.Set("X-Envoy-Overloaded", "true")
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
		_, _ = w.Write([]byte("spillway: " + a.text + "\n")) // who has left does not read it
	}
	return a
}

// isGRPC reports whether a request is a call of gRPC.
func isGRPC(r *http.Request) bool {
	values := r.Header["Content-Type"]
	if len(values) == 0 {
		return false
	}
	rest, ok := strings.CutPrefix(values[0], grpcContent[0])
	return ok && (rest == "" || rest[0] == '+' || rest[0] == ';')
}
