// Package echo protects a server with the framework Echo.
package echo

import (
	"github.com/labstack/echo/v4"

	"github.com/seed90641741/spillway/spillhttp"
)

// Protect puts the server policies in front of an Echo that has all its routes. Each route has a separate limit.
func Protect(e *echo.Echo, c spillhttp.HandlerConfig) (*spillhttp.Handler, error) {
	c.Route = spillhttp.Routes(func(add func(method, path string)) {
		for _, r := range e.Routes() {
			add(r.Method, r.Path)
		}
	})
	return spillhttp.NewHandler(e, c)
}
