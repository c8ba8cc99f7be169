package main

import (
	"crypto/tls"
	"net"
	"net/http"

	"github.com/failsafe-go/failsafe-go/adaptivelimiter"
	"github.com/failsafe-go/failsafe-go/failsafehttp"
	"github.com/go-kratos/aegis/ratelimit"
	"github.com/go-kratos/aegis/ratelimit/bbr"
	zeroload "github.com/zeromicro/go-zero/core/load"
	"github.com/zeromicro/go-zero/core/stat"

	"github.com/seed90641741/spillway"
	"github.com/seed90641741/spillway/ingress"
	"github.com/seed90641741/spillway/load"
	"github.com/seed90641741/spillway/spillhttp"
)

// A front protects the handler of the server.
type front struct {
	name string
	// wrap puts it before the handler, with its defaults; nil for none and for Spillway.
	wrap func(http.Handler) http.Handler
	// averages says that it reads the CPU use of its container, and averages it for
	// many seconds: it then needs a container to read, and time.
	averages bool
	spillway bool
	// decrypted puts spillhttp.Listener above TLS, where it sees requests. net/http then
	// sees no TLS: HTTP/1.1 only, and no Request.TLS.
	decrypted bool
	// inHandler rejects in spillhttp.Handler alone, as where another program owns the listener.
	inHandler bool
	// clients says that the clients use Spillway, too, with its defaults.
	clients bool
	// paced resets connections above connectionRate before their TLS handshake.
	paced bool
}

const (
	frontNone     = "none"
	frontSpillway = "spillway"
)

// fronts has the rows of a table, in their order.
var fronts = []front{
	{name: frontNone},
	{name: "static", wrap: func(next http.Handler) http.Handler { return limited(staticLimit, next) }},
	{name: "failsafe-go", wrap: func(next http.Handler) http.Handler {
		return failsafehttp.NewHandler(next, adaptivelimiter.NewWithDefaults[*http.Response]())
	}},
	{name: "go-zero", averages: true, wrap: func(next http.Handler) http.Handler {
		stat.SetReporter(nil)
		return shedding(zeroload.NewAdaptiveShedder(), next)
	}},
	{name: "aegis", averages: true, wrap: func(next http.Handler) http.Handler {
		return limiting(bbr.NewLimiter(), next)
	}},
	{name: frontSpillway, spillway: true},
	{name: "spillway-both", spillway: true, clients: true},
	{name: "spillway-handler", spillway: true, inHandler: true},
	{name: "spillway-decrypted", spillway: true, decrypted: true},
	{name: "spillway-connections", spillway: true, paced: true},
}

// rejects reports whether the front can be asked to reject every call. Clients that use
// Spillway would soon send none.
func (f *front) rejects() bool { return f.spillway && !f.clients || f.name == frontNone }

// suits reports whether the front makes a difference on w.
func (f *front) suits(w wire) bool {
	if w.grpc && (f.wrap != nil || f.inHandler) {
		return false
	}
	return (!f.decrypted || w.tls && !w.http2) && (!f.inHandler || !w.tls) && (!f.paced || w.fresh || w.tls)
}

// serve serves next with s from ln, behind the front. If reject is set, every call is rejected.
func (f *front) serve(s *http.Server, ln net.Listener, next http.Handler, reject bool) error {
	if f.spillway {
		return f.serveSpillway(s, ln, next, reject)
	}
	switch {
	case f.wrap != nil:
		next = f.wrap(next)
	case reject:
		next = http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { unavailable(w) })
	}
	s.Handler = next
	if s.TLSConfig != nil {
		return s.ServeTLS(ln, "", "")
	}
	return s.Serve(ln)
}

// protection has the defaults but for one thing: the server is an internal one, so that it
// believes what calls say of their criticality. If reject is set, it rejects every call.
func protection(reject bool) (*ingress.Server, error) {
	config := ingress.Config{Trust: ingress.Trust{Boundary: ingress.Internal, DefaultMax: spillway.CriticalPlus}}
	if reject {
		config.Load.Signals = []load.Signal{{Name: "always overloaded", Read: func() float64 { return 2 }}}
	}
	return ingress.New(config)
}

func (f *front) serveSpillway(s *http.Server, ln net.Listener, next http.Handler, reject bool) error {
	server, err := protection(reject)
	if err != nil {
		return err
	}
	h, err := spillhttp.NewHandler(next, spillhttp.HandlerConfig{Ingress: server})
	if err != nil {
		return err
	}
	s.Handler = h
	if f.paced {
		if ln, err = limitConnections(ln, reject); err != nil {
			return err
		}
	}
	switch {
	case f.inHandler:
		return s.Serve(ln)
	case reject && s.TLSConfig == nil: // each connection is to get its rejection
		return serveEarly(s, ln, h)
	case reject && f.decrypted:
		return serveEarly(s, tls.NewListener(ln, s.TLSConfig), h)
	case reject:
		return s.ServeTLS(ln, "", "")
	case s.TLSConfig == nil:
		return h.Serve(s, ln)
	case f.decrypted:
		return h.Serve(s, tls.NewListener(ln, s.TLSConfig))
	}
	return h.ServeTLS(s, ln, "", "")
}

// serveEarly is Handler.Serve without its limit on connections.
func serveEarly(s *http.Server, ln net.Listener, h *spillhttp.Handler) error {
	s.ConnState = spillhttp.ConnState
	return s.Serve(spillhttp.NewListener(ln, h))
}

// frontNamed returns the front of that name.
func frontNamed(name string) (front, bool) {
	for _, f := range fronts {
		if f.name == name {
			return f, true
		}
	}
	return front{}, false
}

// staticLimit is twice what the blocking backend has on its way when it does what
// it can: eight slots. No limit that is set by hand is better there.
const staticLimit = 16

// limited serves at most n requests at once.
func limited(n int, next http.Handler) http.Handler {
	places := make(chan struct{}, n)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		select {
		case places <- struct{}{}:
		default:
			unavailable(w)
			return
		}
		defer func() { <-places }()
		next.ServeHTTP(w, r)
	})
}

// shedding is how go-zero's own server uses its shedder, without the logs.
func shedding(s zeroload.Shedder, next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		promise, err := s.Allow()
		if err != nil {
			unavailable(w)
			return
		}
		defer promise.Pass() // the handler has no answer that says overload
		next.ServeHTTP(w, r)
	})
}

// limiting is how kratos uses its limiter.
func limiting(l ratelimit.Limiter, next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		done, err := l.Allow()
		if err != nil {
			unavailable(w)
			return
		}
		defer done(ratelimit.DoneInfo{})
		next.ServeHTTP(w, r)
	})
}

func unavailable(w http.ResponseWriter) { w.WriteHeader(http.StatusServiceUnavailable) }
