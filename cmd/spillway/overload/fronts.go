package main

import (
	"net/http"

	"github.com/failsafe-go/failsafe-go/adaptivelimiter"
	"github.com/failsafe-go/failsafe-go/failsafehttp"
	"github.com/go-kratos/aegis/ratelimit"
	"github.com/go-kratos/aegis/ratelimit/bbr"
	"github.com/zeromicro/go-zero/core/load"
	"github.com/zeromicro/go-zero/core/logx"
	"github.com/zeromicro/go-zero/core/stat"
)

// A front is what stands before the handler of the server.
type front struct {
	name string
	// wrap puts it there, with its defaults; nil for those that the backend knows.
	wrap func(http.Handler) http.Handler
	// averages says that it reads the CPU use of its container, and averages it for
	// many seconds: it then needs a container to read, and time.
	averages bool
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
		logx.Disable() // it has a line for each refusal
		stat.SetReporter(nil)
		return shedding(load.NewAdaptiveShedder(), next)
	}},
	{name: "aegis", averages: true, wrap: func(next http.Handler) http.Handler {
		return limiting(bbr.NewLimiter(), next)
	}},
	{name: frontSpillway},
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
// it can: eight slots. Whoever sets a limit by hand can do no better there.
const staticLimit = 16

// limited serves at most n requests at once.
func limited(n int, next http.Handler) http.Handler {
	places := make(chan struct{}, n)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		select {
		case places <- struct{}{}:
		default:
			refuse(w)
			return
		}
		defer func() { <-places }()
		next.ServeHTTP(w, r)
	})
}

// shedding is how go-zero's own server uses its shedder, without the logs.
func shedding(s load.Shedder, next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		promise, err := s.Allow()
		if err != nil {
			refuse(w)
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
			refuse(w)
			return
		}
		defer done(ratelimit.DoneInfo{})
		next.ServeHTTP(w, r)
	})
}

func refuse(w http.ResponseWriter) { w.WriteHeader(http.StatusServiceUnavailable) }
