//go:build thorough

package tasks

import (
	"net/http"

	"github.com/gin-gonic/gin"

	"github.com/seed90641741/spillway/spillhttp"
)

func beforeGin(e *gin.Engine) (http.Handler, error) {
	return e, nil
}

// A server with the framework Gin: each of its routes has its own limit.
func afterGin(e *gin.Engine) (http.Handler, error) {
	return spillhttp.NewHandler(e, spillhttp.HandlerConfig{
		HealthPaths: []string{"/healthz"},
		Route: spillhttp.Routes(func(add func(method, path string)) {
			for _, r := range e.Routes() {
				add(r.Method, r.Path)
			}
		}),
	})
}
