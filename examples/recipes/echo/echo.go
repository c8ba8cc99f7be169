// Package echo protects a server with the framework Echo.
package echo

import (
	"net/http"

	"github.com/labstack/echo/v4"

	"github.com/seed90641741/spillway/spillhttp"
)

// New returns a protected server with one route. Middleware of Echo runs when Echo has found
// the route, so the key is the path that was registered.
func New(c spillhttp.HandlerConfig, users http.HandlerFunc) (http.Handler, error) {
	c.HealthPaths = []string{"/healthz"}
	protect, err := spillhttp.Middleware(c)
	if err != nil {
		return nil, err
	}
	e := echo.New()
	e.Use(setPattern, echo.WrapMiddleware(protect), writeErrors)
	e.GET("/users/:id", echo.WrapHandler(users))
	e.GET("/healthz", func(c echo.Context) error { return c.NoContent(http.StatusOK) })
	return e, nil
}

// setPattern puts the route where Spillway looks for it.
func setPattern(next echo.HandlerFunc) echo.HandlerFunc {
	return func(c echo.Context) error {
		c.Request().Pattern = c.Path()
		return next(c)
	}
}

// writeErrors has Echo write the answer to an error at once: otherwise it would be written
// after Spillway has taken the request for a success.
func writeErrors(next echo.HandlerFunc) echo.HandlerFunc {
	return func(c echo.Context) error {
		if err := next(c); err != nil {
			c.Error(err)
		}
		return nil
	}
}
