package recipes_test

import (
	"fmt"
	"io"
	"net/http"
	"testing"

	"github.com/labstack/echo/v4"
	"github.com/labstack/echo/v4/middleware"

	echorecipe "github.com/seed90641741/spillway/examples/recipes/echo"
	"github.com/seed90641741/spillway/spillhttp"
)

func TestEcho(t *testing.T) { recipe{"GET /users/:id", serveEcho, allPromises}.check(t) }

func serveEcho(t *testing.T, c spillhttp.HandlerConfig, s *site) string {
	e := echo.New()
	e.Logger.SetOutput(io.Discard)
	e.GET("/users/:id", echo.WrapHandler(http.HandlerFunc(s.users)))
	e.GET("/healthz", func(c echo.Context) error { return c.NoContent(http.StatusOK) })
	send := func(format string) echo.HandlerFunc {
		return func(c echo.Context) error {
			defer s.end()
			for {
				text, ok := s.next(c.Request().Context())
				if !ok {
					return nil
				}
				fmt.Fprintf(c.Response(), format, text)
				c.Response().Flush()
			}
		}
	}
	e.GET("/stream", send("%s"))
	e.GET("/events", func(c echo.Context) error {
		c.Response().Header().Set(echo.HeaderContentType, "text/event-stream")
		return send("data:%s\n\n")(c)
	})
	e.GET("/socket", func(c echo.Context) error {
		s.socket(c.Response(), c.Request())
		return nil
	})
	e.GET("/panics", func(echo.Context) error { panic("recipe") }, middleware.Recover())
	return start(t)(echorecipe.Protect(e, c))
}
