package spillsql

import (
	"context"
	"database/sql/driver"
	"errors"
	"fmt"
	"io"
	"math"
	"time"

	"github.com/seed90641741/spillway"
	"github.com/seed90641741/spillway/fault"
	"github.com/seed90641741/spillway/inflight"
	"github.com/seed90641741/spillway/internal/late"
	"github.com/seed90641741/spillway/throttle"
)

// A Connector is a [driver.Connector] in front of another one, for [sql.OpenDB]. It is safe
// for concurrent use; make one with [NewConnector]. Use it for one [sql.DB].
type Connector struct {
	base     driver.Connector
	gate     *gate
	pool     *pool
	lifetime func() time.Duration // what SetConnMaxLifetime has set; nil: unknown
	panicked late.Panic           // of the driver, when the caller had left
}

var (
	_ driver.Connector = (*Connector)(nil)
	_ io.Closer        = (*Connector)(nil)
)

// NewConnector returns a Connector to the database of base, or an error that names the
// field of c that is wrong. Most callers use [OpenDB].
func NewConnector(base driver.Connector, c Config) (*Connector, error) {
	g, err := c.build()
	if err != nil {
		return nil, err
	}
	p := &pool{limit: c.MaxConns, queue: queue{interval: c.QueueInterval}}
	switch {
	case p.limit == 0:
		p.limit = DefaultMaxConns
	case p.limit < 0:
		p.limit = math.MaxInt32
	}
	if c.QueueInterval == 0 {
		p.queue.interval = DefaultQueueInterval
	}
	p.queue.limit = p.limit
	p.full = &spillway.RejectedError{
		Policy: "spillsql", Reason: spillway.ReasonQueueFull,
		Level: float64(p.limit), Limit: float64(p.limit), Unit: "connections in use",
		Advice: fmt.Sprintf("the database is overloaded, or MaxConns (%d) is too low for it", p.limit),
	}
	p.unreachable = &spillway.RejectedError{
		Policy: "spillsql", Reason: spillway.ReasonQueueFull,
		Level: float64(p.limit), Limit: float64(p.limit), Unit: "callers waiting for a connection",
		Advice: "the database refuses connections, so they are opened one at a time",
	}
	return &Connector{base: base, gate: g, pool: p}, nil
}

// Driver returns the driver of the Connector below.
func (c *Connector) Driver() driver.Driver { return c.base.Driver() }

// Close closes the connections that no caller uses, and the Connector below if that can be
// closed. [sql.DB.Close] calls it.
func (c *Connector) Close() error {
	c.pool.close()
	if closer, ok := c.base.(io.Closer); ok {
		return closer.Close()
	}
	return nil
}

// Connect waits until there may be one more connection, and returns it. database/sql calls
// it when no connection is idle.
func (c *Connector) Connect(ctx context.Context) (driver.Conn, error) {
	c.panicked.GoOn()
	if c.lifetime != nil {
		c.pool.lifetime.Store(int64(c.lifetime()))
	}
	p, err := c.acquire(ctx)
	if err == nil && p == nil {
		p, err = c.open(ctx)
	}
	if err != nil {
		return nil, err
	}
	return c.wrap(p), nil
}

// acquire waits for a connection that changes hands, or for the right to open one: then it
// returns nil.
func (c *Connector) acquire(ctx context.Context) (*physical, error) {
	for {
		p, err := c.pool.acquire(ctx, spillway.CriticalityFrom(ctx))
		if err != nil {
			return nil, c.gate.rejected(ctx, err)
		}
		if p == nil || c.pool.good(ctx, p) {
			return p, nil
		}
	}
}

// open uses a right to open a connection. Between two attempts it gives the right back.
func (c *Connector) open(ctx context.Context) (p *physical, err error) {
	held, dialed, returned := true, false, false
	defer func() {
		if held { // a policy rejects, or the driver panics
			c.pool.opened(notOpened)
		}
		if !returned && p != nil { // the Observer panics
			c.pool.pass(p)
		}
	}()
	err = c.gate.do(ctx, &operation{
		key: "connect",
		send: func(ctx context.Context) (err error) {
			if dialed = held; !held {
				if p, err = c.acquire(ctx); p != nil || err != nil {
					return err
				}
				held, dialed = true, true
			}
			held = false
			p, err = c.connect(ctx)
			return err
		},
		describe: func(err error, f fault.Failure) fault.Failure {
			if !dialed {
				return fault.Failure{Unsent: true}
			}
			return unconnected(ctx, err, f)
		},
	})
	returned = true
	return p, err
}

// openFor is how long opening a connection may take whose caller has left. One packet may be lost
// on the way: TCP sends the first one again after a second (RFC 6298).
const openFor = 2 * time.Second

// connect uses a right to open a connection. If the caller leaves, the opening goes on, and the next
// caller in the queue gets the connection. Otherwise callers with less time than it takes to open one
// would be served by none. database/sql does the same where it has a limit.
//
// A panic of the driver goes to the caller, which can recover as without this package. If the caller
// has left, it goes to the next one.
func (c *Connector) connect(ctx context.Context) (*physical, error) {
	done := make(chan dialed) // received by the caller only
	go func() {
		until, cancel := openUntil(ctx)
		defer cancel()
		d := dialed{err: errNotDialed}
		defer func() {
			d.panics = recover()
			c.pool.opened(openedWith(until, d.err))
			select {
			case done <- d:
			case <-ctx.Done():
				c.panicked.Put(d.panics)
				if d.err == nil {
					c.pool.pass(d.physical)
				}
			}
		}()
		if opened, err := c.base.Connect(until); err != nil {
			d.err = err
		} else {
			d = dialed{physical: &physical{Conn: opened, since: time.Now()}}
		}
	}()
	select {
	case d := <-done:
		if d.panics != nil {
			panic(d.panics) //nolint:forbidigo // it goes on where the caller expects it
		}
		return d.physical, d.err
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// A dialed is how opening a connection has ended. With a panic there is an error, too.
type dialed struct {
	physical *physical
	err      error
	panics   any
}

// errNotDialed is the error of a driver that does not return. It says nothing of the server.
var errNotDialed = errors.New("spillsql: the driver has ended its goroutine")

// openUntil returns a context that ends with ctx, but not before openFor has passed.
func openUntil(ctx context.Context) (context.Context, context.CancelFunc) {
	least := time.Now().Add(openFor)
	until, end := context.WithCancel(context.WithoutCancel(ctx))
	stop := context.AfterFunc(ctx, func() {
		rest := time.NewTimer(time.Until(least))
		defer rest.Stop()
		select {
		case <-rest.C:
			end()
		case <-until.Done():
		}
	})
	cancel := func() {
		stop()
		end()
	}
	if d, ok := ctx.Deadline(); ok { // drivers divide the time that they have
		if d.Before(least) {
			d = least
		}
		timed, endTimed := context.WithDeadline(until, d)
		return timed, func() { endTimed(); cancel() }
	}
	return until, cancel
}

// good prepares a connection for its next user, and reports whether it is good. If not, as the driver says so or
// panics, or as the connection is too old, it is closed.
func (p *pool) good(ctx context.Context, c *physical) (ok bool) {
	defer func() {
		if !ok {
			p.drop(c)
		}
	}()
	return !p.expired(c) && c.reset(ctx)
}

// reset prepares a connection for its next user, as database/sql does with idle
// connections, and reports whether it is good.
func (p *physical) reset(ctx context.Context) bool {
	p.adopt()
	if r, ok := p.Conn.(driver.SessionResetter); ok {
		return !unsent(r.ResetSession(ctx))
	}
	return true
}

// Stats says how a [Connector] stands.
type Stats struct {
	// Throttle is the state of adaptive throttling.
	Throttle throttle.Stats
	// Inflight is the state of [Config.Inflight], if there is one.
	InFlight inflight.Stats
	// Open is how many connections are open or being opened, and MaxOpen the limit.
	Open, MaxOpen int
	// Waiting is how many callers wait for a connection now, and Rejected how many were
	// ever rejected because too many waited.
	Waiting       int
	RejectedTotal uint64
}

// Stats returns the levels of the policies.
func (c *Connector) Stats(now time.Time) Stats {
	s := Stats{Throttle: c.gate.routes.Stats(now), MaxOpen: c.pool.limit}
	if l, ok := c.gate.policies.InFlight.(*inflight.Limiter); ok {
		s.InFlight = l.Stats(now)
	}
	c.pool.mu.Lock()
	defer c.pool.mu.Unlock()
	s.Open, s.Waiting, s.RejectedTotal = c.pool.open, c.pool.queue.length, c.pool.queue.rejected
	return s
}
