//go:build thorough

// Package gin protects a server with the framework Gin. Leave the line with the tag out of a copy: it saves the minute that Gin
// takes to compile in `go test work`.
package gin

import (
	"github.com/gin-gonic/gin"

	"github.com/seed90641741/spillway/spillhttp"
)

// Protect puts the server policies in front of an engine that has all its routes. Each route has a separate limit.
func Protect(e *gin.Engine, c spillhttp.HandlerConfig) (*spillhttp.Handler, error) {
	c.Route = spillhttp.Routes(func(add func(method, path string)) {
		for _, r := range e.Routes() {
			add(r.Method, r.Path)
		}
	})
	return spillhttp.NewHandler(e, c)
}
