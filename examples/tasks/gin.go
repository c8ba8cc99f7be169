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

// A server with the framework Gin. All routes share one limit: Gin finds the route of a request
// only when it serves it. The recipe for Gin has a limit for each.
func afterGin(e *gin.Engine) (http.Handler, error) {
	return spillhttp.NewHandler(e, spillhttp.HandlerConfig{
		HealthPaths: []string{"/healthz"},
		Key:         func(*http.Request) string { return "gin" },
	})
}
