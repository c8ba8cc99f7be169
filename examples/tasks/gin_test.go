//go:build thorough

package tasks

import (
	"net/http"
	"testing"

	"github.com/gin-gonic/gin"
)

var _ = beforeGin

func TestGin(t *testing.T) {
	gin.SetMode(gin.ReleaseMode)
	g := gin.New()
	g.GET("/users/:id", gin.WrapF(func(http.ResponseWriter, *http.Request) {}))
	g.GET("/healthz", gin.WrapF(func(http.ResponseWriter, *http.Request) {}))
	checkRouter(t, func() (http.Handler, error) { return afterGin(g) })
}
