//lint:file-ignore SA1019 the driver marks its unstable packages as deprecated

package spillmongo

import (
	"context"
	"errors"
	"fmt"
	"time"

	"go.mongodb.org/mongo-driver/v2/x/mongo/driver"
	"go.mongodb.org/mongo-driver/v2/x/mongo/driver/description"
	"go.mongodb.org/mongo-driver/v2/x/mongo/driver/mnet"
)

// A conn stands in the connection of one operation, where the driver writes, reads
// and pins. Behind it is another connection after each retry.
type conn struct {
	exchange

	face   *mnet.Connection // what the driver has
	inner  mnet.ReadWriteCloser
	pinner mnet.Pinner // of inner; nil if it cannot be pinned
	server *server
	pins   int32
	final  bool     // the driver must not go on
	hidden []string // labels to put back
	early  bool     // the next Close comes before the driver's decision
	loose  bool     // the driver takes it for pinned, but the pinned one is broken

	settled bool // what the driver is told of next is of an attempt before the last

	place *place // in the queue for connections, until this one is back in its pool
}

// enter puts inner behind c. What the driver asks often it asks inner itself.
func (c *conn) enter(inner *mnet.Connection) {
	c.inner, c.pinner = inner.ReadWriteCloser, inner.Pinner
	c.place, c.server.place = c.server.place, nil
	f := c.face
	f.Describer, f.Streamer, f.Compressor = inner.Describer, inner.Streamer, inner.Compressor
	f.ReadWriteCloser, f.Pinner = c, nil
	if c.pinner != nil {
		f.Pinner = c
	}
}

// A departed describes a connection that went back to its pool, and cannot do so
// itself any more.
type departed struct {
	mnet.Describer

	description description.Server
}

func (d *departed) Description() description.Server { return d.description }

// leave gives the connection back, unless it is pinned, to a cursor or a
// transaction behind a load balancer, and not broken.
func (c *conn) leave(broken bool) {
	if c.pins > 0 && !broken {
		return
	}
	for ; c.pins > 0; c.pins-- { // the end of a transaction: nothing else is sent again then
		_ = c.pinner.UnpinFromTransaction() // it is closed below, pinned or not
		c.loose = true
	}
	c.freeze()
	defer c.pass()
	_ = c.inner.Close() // of a pooled connection, which does not fail
}

// pass gives the place of c to the next caller, unless the connection stays pinned.
func (c *conn) pass() {
	if c.place != nil && c.pins == 0 {
		c.place.Release()
		c.place = nil
	}
}

// freeze keeps the description of c for when it is back in its pool, and cannot
// compress any more.
func (c *conn) freeze() {
	if !c.gone() {
		c.face.Describer, c.face.Compressor = &departed{c.face.Describer, c.face.Description()}, nil
	}
}

// gone reports whether c has no connection.
func (c *conn) gone() bool {
	_, gone := c.face.Describer.(*departed)
	return gone
}

// reenter gets a connection for a retry. A cursor lives at its server. So does a
// transaction that began at a mongos, which the driver's selector sees to.
func (c *conn) reenter(ctx context.Context, stay bool, avoid []string) error {
	if !c.gone() {
		return nil // pinned
	}
	next, err := c.server.reconnect(ctx, stay, avoid)
	if err == nil {
		c.enter(next)
	}
	return err
}

// Close gives the connection back. The driver has decided then what it returns, and
// uses the message for another command; unless a transaction gives the connection up
// before, which is closed a second time then.
func (c *conn) Close() error {
	switch {
	case !c.early:
		relabel(c.hidden, hiddenLabel, driver.RetryableWriteError)
		c.hidden = nil
	case c.pins == 0:
		c.freeze() // the driver asks for it when it decides
	}
	if c.loose {
		c.freeze()
	}
	c.early, c.wm = false, nil
	c.abandon()
	defer c.pass()
	return c.inner.Close()
}

func (c *conn) PinToCursor() error      { return c.pin(+1, c.pinner.PinToCursor) }
func (c *conn) PinToTransaction() error { return c.pin(+1, c.pinner.PinToTransaction) }
func (c *conn) UnpinFromCursor() error  { return c.pin(-1, c.pinner.UnpinFromCursor) }
func (c *conn) UnpinFromTransaction() error {
	c.early = c.hidden != nil
	return c.pin(-1, c.pinner.UnpinFromTransaction)
}

func (c *conn) pin(by int32, f func() error) error {
	if by < 0 && c.pins == 0 {
		return nil // loose
	}
	err := f()
	if err == nil {
		c.pins += by
	}
	return err
}

// compressed returns the message of cmd, compressed if the connection does that.
func (c *conn) compressed(cmd *command) ([]byte, error) {
	if c.face.Compressor == nil || !cmd.compressible() {
		return cmd.wire, nil
	}
	return c.face.CompressWireMessage(cmd.wire, nil)
}

// stop keeps the driver from opening a change stream once more after its last error.
func (c *conn) stop(cmd *command, deadline bool, err error) {
	e, ok := errors.AsType[driver.Error](err)
	if ok && e.RetryableRead() && cmd.name == "aggregate" && (deadline || c.retrier.endless) && byChangeStream() {
		c.server.deployment.over.put(c.server.selector, e)
	}
}

// remaining returns how long the server may work, if the answer is to be here in time.
func (c *conn) remaining(deadline time.Time) time.Duration {
	return time.Until(deadline) - c.server.RTTMonitor().Min()
}

// opaque returns err as one that the driver does not retry.
func opaque(err error) error {
	if _, ok := err.(driver.RetryablePoolError); ok {
		return fmt.Errorf("%w", err)
	}
	return err
}

// settle reports a failed attempt that is not the last to the driver's server.
func (c *conn) settle(v verdict) {
	if p, ok := c.server.Server.(driver.ErrorProcessor); ok {
		p.ProcessError(v.err, c.face)
	}
}

func (c *conn) ids() ids {
	d := c.face.Description()
	return ids{
		connection: c.face.ID(), driver: c.face.DriverConnectionID(), address: c.address(),
		server: c.face.ServerConnectionID(), service: d.ServiceID,
	}
}

func (c *conn) address() string { return string(c.face.Address()) }
