package tasks

import (
	"net/http"

	"github.com/go-chi/chi/v5"
	"github.com/labstack/echo/v4"

	"github.com/seed90641741/spillway/spillhttp"
)

func beforeChi(r *chi.Mux) (http.Handler, error) {
	return r, nil
}

// A server with the router chi: each of its routes has its own limit.
func afterChi(r *chi.Mux) (http.Handler, error) {
	return spillhttp.NewHandler(r, spillhttp.HandlerConfig{
		HealthPaths: []string{"/healthz"},
		Route:       func(req *http.Request) string { return r.Find(chi.NewRouteContext(), req.Method, req.URL.Path) },
	})
}

func beforeEcho(e *echo.Echo) (http.Handler, error) {
	return e, nil
}

// A server with the framework Echo: each of its routes has its own limit.
func afterEcho(e *echo.Echo) (http.Handler, error) {
	return spillhttp.NewHandler(e, spillhttp.HandlerConfig{
		HealthPaths: []string{"/healthz"},
		Route: spillhttp.Routes(func(add func(method, path string)) {
			for _, r := range e.Routes() {
				add(r.Method, r.Path)
			}
		}),
	})
}
