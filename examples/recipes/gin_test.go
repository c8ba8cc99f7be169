//go:build thorough

package recipes_test

import (
	"io"
	"testing"

	"github.com/gin-gonic/gin"

	ginrecipe "github.com/seed90641741/spillway/examples/recipes/gin"
	"github.com/seed90641741/spillway/spillhttp"
)

func TestGin(t *testing.T) { recipe{"GET /users/:id", serveGin, allPromises}.check(t) }

func serveGin(t *testing.T, c spillhttp.HandlerConfig, s *site) string {
	gin.SetMode(gin.ReleaseMode)
	e := gin.New()
	e.GET("/users/:id", gin.WrapF(s.users))
	e.GET("/healthz", gin.WrapF(healthy))
	e.GET("/stream", func(c *gin.Context) {
		defer s.end()
		c.Stream(func(w io.Writer) bool {
			text, ok := s.next(c.Request.Context())
			_, _ = io.WriteString(w, text)
			return ok
		})
	})
	e.GET("/events", func(c *gin.Context) {
		defer s.end()
		c.Stream(func(io.Writer) bool {
			text, ok := s.next(c.Request.Context())
			c.SSEvent("", text)
			return ok
		})
	})
	e.GET("/socket", func(c *gin.Context) { s.socket(c.Writer, c.Request) })
	e.GET("/panics", gin.RecoveryWithWriter(io.Discard), func(*gin.Context) { panic("recipe") })
	return start(t)(ginrecipe.Protect(e, c))
}
