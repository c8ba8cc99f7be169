//go:build thorough

package recipes_test

import (
	"bufio"
	"net"
	"testing"

	"github.com/gofiber/fiber/v3"
	"github.com/gofiber/fiber/v3/middleware/adaptor"
	"github.com/gofiber/fiber/v3/middleware/recover"

	fiberrecipe "github.com/seed90641741/spillway/examples/recipes/fiber"
	"github.com/seed90641741/spillway/spillhttp"
)

func TestFiber(t *testing.T) {
	recipe{"GET /users/:id", serveFiber, allPromises}.check(t)
}

func serveFiber(t *testing.T, c spillhttp.HandlerConfig, s *site) string {
	app := fiber.New()
	app.Get("/healthz", func(fiber.Ctx) error { return nil })
	fiberrecipe.Protect(app, c.Ingress)
	app.Use("/users/panics", recover.New(), func(fiber.Ctx) error { panic("recipe") })
	app.Get("/users/:id", adaptor.HTTPHandlerFunc(s.users))
	send := func(before, after string) fiber.Handler {
		return func(c fiber.Ctx) error {
			return c.SendStreamWriter(func(w *bufio.Writer) {
				defer s.end()
				for text := range s.feed {
					_, _ = w.WriteString(before + text + after)
					if w.Flush() != nil {
						return
					}
				}
			})
		}
	}
	app.Get("/stream", send("", ""))
	app.Get("/events", func(c fiber.Ctx) error {
		c.Set("Content-Type", "text/event-stream")
		return send("data:", "\n\n")(c)
	})
	app.Get("/socket", adaptor.HTTPHandlerFunc(s.socket))
	app.Get("/panics", recover.New(), func(fiber.Ctx) error { panic("recipe") })
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	go func() { _ = app.Listener(listener, fiber.ListenConfig{DisableStartupMessage: true}) }()
	t.Cleanup(func() { _ = app.Shutdown() })
	return listener.Addr().String()
}
