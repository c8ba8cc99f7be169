package early

import (
	"context"
	"net"
	"net/http"
	"sync"
	"time"

	"github.com/seed90641741/spillway/internal/netconn"
)

// A Gate decides on a request when only its head has arrived. Each connection calls it from one
// goroutine. Its methods must not wait.
type Gate interface {
	// Looks reports whether requests are examined now. If not, all bytes are passed through.
	Looks() bool
	// Now returns the time.
	Now() time.Time
	// Decide returns the complete answer to the request, or nil to pass it through. The answer is
	// HTTP/1.1, and keeps the connection open. The next call with the same Head may overwrite it.
	Decide(now time.Time, c *Conn, h *Head) (answer []byte)
}

// A Rejecter lets a [Gate] decide on the requests of connections. It is safe for concurrent use.
type Rejecter struct {
	gate  Gate
	known *table
	heads sync.Pool
}

// NewRejecter returns a Rejecter that calls g, and shows it the fields with these names.
func NewRejecter(g Gate, names Names) *Rejecter {
	r := &Rejecter{gate: g, known: newTable(&names)}
	r.heads.New = func() any { return newHead(r.known) }
	return r
}

// Wrap returns a connection that answers the requests that the Gate rejects, and passes all others
// through.
func (r *Rejecter) Wrap(c net.Conn) *Conn {
	x := &Conn{Conn: netconn.Conn{Conn: c}, rejecter: r}
	x.owed.Store(untracked)
	return x
}

// State tells a [Conn] where requests end. It must be the [http.Server.ConnState] of the server, or
// be called by it. Without it all bytes are passed through.
func State(c net.Conn, state http.ConnState) {
	if x, ok := c.(*Conn); ok {
		x.enter(state)
	}
}

// connKey is the key of a connection in its context.
type connKey struct{}

// Context returns ctx with c, if c is a [Conn], for [TakeNote].
func Context(ctx context.Context, c net.Conn) context.Context {
	if x, ok := c.(*Conn); ok {
		return context.WithValue(ctx, connKey{}, x)
	}
	return ctx
}

// TakeNote returns the last note on the connection of a request, and removes it. Without a note it
// returns 0.
func TakeNote(ctx context.Context) uint32 {
	if x, ok := ctx.Value(connKey{}).(*Conn); ok {
		return x.note.Swap(0)
	}
	return 0
}
