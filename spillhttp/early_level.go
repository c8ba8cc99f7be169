package spillhttp

import (
	"context"
	"net"

	"github.com/seed90641741/spillway"
)

// connKey is the key by which the context of a connection holds it.
type connKey struct{}

// ConnContext returns ctx with the connection, if it is one of a [Listener], so that a request which it lets pass is served with the
// [spillway.Level] that it has passed with. It should be the [http.Server.ConnContext] of a server that serves from a Listener, or be called
// by it. Without it the level is drawn again, and fewer requests pass both decisions.
func ConnContext(ctx context.Context, c net.Conn) context.Context {
	if x, ok := c.(*conn); ok {
		return context.WithValue(ctx, connKey{}, x)
	}
	return ctx
}

// drawnEarly returns the level with which the connection of a request has passed it through, or 0. A second draw would
// have it pass twice what others pass once.
func drawnEarly(ctx context.Context) spillway.Level {
	if c, ok := ctx.Value(connKey{}).(*conn); ok {
		return spillway.Level(c.drawn.Swap(0))
	}
	return 0
}
