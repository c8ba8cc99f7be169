package mongoproxy

import (
	"errors"
	"io"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"github.com/seed90641741/spillway/cmd/spillway/internal/gateway/mongoproxy/wire"
)

// relay copies bytes between client and server without parsing them, until one side closes, a
// write stalls for the stall timeout, or both sides are silent for the idle timeout. It
// returns why the connection ended.
func (c *conn) relay() error {
	c.streams.Store(true)
	if err := c.up.Write(c.down.Peek()); err != nil {
		return err
	}
	c.down.Discard()
	r := &relaying{began: time.Now(), idle: c.settings.config.IdleTimeout, stall: c.settings.config.StallTimeout}
	var both sync.WaitGroup
	both.Go(func() { c.kill(r.copy(c.up, c.down, Left)) })
	end := r.copy(c.down, c.up, HungUp)
	c.kill(end)
	both.Wait()
	return end
}

// A relaying has the two directions of a connection that is not parsed.
type relaying struct {
	idle, stall time.Duration // not above zero: no limit
	began       time.Time
	moved       atomic.Int64 // when something was copied last, in either direction: nanoseconds since began
}

// relayLook is the maximum duration of a read, after which it is interrupted to check whether
// the connection is idle: only then the number of copied bytes is known.
const relayLook = 30 * time.Second

// copy copies one direction, in the kernel where possible.
func (r *relaying) copy(to, from *wire.Link, over Reason) *end {
	for {
		start := time.Now()
		look := relayLook
		if r.idle > 0 {
			look = min(look, r.idle/4)
		}
		if err := from.Conn.SetReadDeadline(start.Add(look)); err != nil {
			return &end{over, err}
		}
		var giveUp time.Time
		if r.stall > 0 { // a write may begin as late as the read ends
			giveUp = start.Add(look + r.stall)
		}
		if err := to.Conn.SetWriteDeadline(giveUp); err != nil {
			return &end{over, err}
		}
		n, err := io.CopyN(to.Conn, from.Conn, wire.Piece)
		now := time.Now()
		if n > 0 {
			r.moved.Store(int64(now.Sub(r.began)))
		}
		switch {
		case err == nil:
		case !errors.Is(err, os.ErrDeadlineExceeded):
			return &end{over, err}
		case !giveUp.IsZero() && !now.Before(giveUp):
			return &end{Stalled, err}
		case r.idle > 0 && now.Sub(r.began)-time.Duration(r.moved.Load()) >= r.idle:
			return &end{Idle, err}
		}
	}
}
