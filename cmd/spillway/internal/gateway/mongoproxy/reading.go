package mongoproxy

import (
	"errors"
	"time"

	"github.com/seed90641741/spillway/cmd/spillway/internal/gateway/mongoproxy/wire"
	"github.com/seed90641741/spillway/internal/mongowire"
)

// read reads the next message. If the process is short of memory, there may be too little of a compressed one.
// Then it waits for memory, as long as a client may stop in the middle.
func (c *conn) read(cmd *wire.Command) (f wire.Frame, err error) {
	began := time.Now()
	for {
		if f, err = c.next(); err != nil {
			return f, err
		}
		err = cmd.Read(f, c.space(f))
		if !errors.Is(err, wire.ErrShort) || f.Rest == 0 || len(f.Head) >= wire.CompressedHead {
			return f, because(Malformed, err)
		}
		if stall := c.settings.config.StallTimeout; stall > 0 && time.Since(began) > stall {
			return f, because(Cut, errNoMemory)
		}
		select {
		case <-time.After(memoryLook):
		case <-c.ctx.Done():
			return f, because(Left, c.ctx.Err())
		}
	}
}

// next returns the next message as far as it is kept, whose first byte has arrived.
func (c *conn) next() (f wire.Frame, err error) {
	keep := 0
	if c.patient() {
		keep = c.settings.config.Retry.MaxBytes
	}
	f, err = c.down.Next(keep, c.longest())
	switch {
	case errors.Is(err, wire.ErrLength):
		return f, because(Malformed, err)
	case errors.Is(err, wire.ErrTooLong):
		return f, because(Unauthenticated, errUnprovenLength)
	default:
		return f, err
	}
}

// space returns the buffer for decompressing a message.
func (c *conn) space(f wire.Frame) []byte {
	if f.OpCode != mongowire.OpCompressed {
		return nil
	}
	if c.scratch == nil {
		c.scratch = wire.GetPage()
	}
	return c.scratch[:]
}

func (c *conn) unscratch() {
	if c.scratch != nil {
		wire.PutPage(c.scratch)
		c.scratch = nil
	}
}
