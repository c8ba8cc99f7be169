//go:build thorough

// Package fiber protects a server with the framework Fiber, which does not stand on net/http. Leave the line with the tag out of a
// copy: it saves the half minute that Fiber takes to compile in `go test work`.
package fiber

import (
	"context"
	"errors"
	"net/http"
	"net/url"
	"sync"

	"github.com/gofiber/fiber/v3"
	"github.com/gofiber/fiber/v3/middleware/adaptor"

	"github.com/seed90641741/spillway"
	"github.com/seed90641741/spillway/ingress"
	"github.com/seed90641741/spillway/spillhttp"
)

// Protect has the server policies decide on all requests to routes and middleware that are registered after it. Each route has a
// separate limit. What a stream sends after its handler has returned is not counted, nor is a hijacked connection.
func Protect(app *fiber.App, server *ingress.Server) {
	key := sync.OnceValue(func() func(*http.Request) string {
		return spillhttp.Routes(func(add func(method, path string)) {
			for _, r := range app.GetRoutes(true) {
				add(r.Method, r.Path)
			}
		})
	})
	app.Use(func(c fiber.Ctx) (answer error) {
		call := spillway.Call{Key: key()(&http.Request{Method: c.Method(), URL: &url.URL{Path: c.Path()}})}
		if class, err := spillway.ParseCriticality(c.Get("X-Request-Criticality")); err == nil {
			call.Criticality = min(class, spillway.Critical) // clients may only lower their class
		}
		why, _ := server.Do(c.Context(), call, func(ctx context.Context) error {
			c.SetContext(ctx)
			answer = c.Next()
			return failure(c, answer)
		})
		if why.Rejected() {
			return adaptor.HTTPHandlerFunc(func(w http.ResponseWriter, r *http.Request) { spillhttp.Reject(w, r, why) })(c)
		}
		return answer
	})
}

// failure returns why the server could not answer a request, nil if it could. An error of the client's is an answer.
func failure(c fiber.Ctx, err error) error {
	status := c.Response().StatusCode()
	if e, ok := errors.AsType[*fiber.Error](err); ok {
		status, err = e.Code, nil
	}
	if err == nil && status >= http.StatusInternalServerError {
		return fiber.NewError(status)
	}
	return err
}
