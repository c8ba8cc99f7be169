package spillsql

import (
	"context"
	"database/sql/driver"
	"errors"
	"io"
	"sync/atomic"
	"testing"
	"time"

	"github.com/seed90641741/spillway/egress"
	"github.com/seed90641741/spillway/fault"
	"github.com/seed90641741/spillway/inflight"
	"github.com/seed90641741/spillway/spilltest"
)

// A rig is a Connector whose driver burns. Its caller is a pool that closes what it has: database/sql itself keeps locks and counts of
// connections if a driver panics.
type rig struct {
	*Connector
	limiter *inflight.Limiter
	driver  *burningDriver
}

// Held counts what waits for a connection as well.
func (r rig) Held() int {
	return r.limiter.Stats(time.Now()).InFlight + r.Stats(time.Now()).Waiting
}

func (r rig) Close() error {
	err := r.Connector.Close()
	if n := r.driver.open.Load(); n != 0 {
		err = errors.Join(err, errors.New("connections are left open"))
	}
	return err
}

// burningDriver opens connections that do the work of a fuse.
type burningDriver struct {
	f    *spilltest.Fuse
	open atomic.Int32
}

func (d *burningDriver) Driver() driver.Driver { return nil }

func (d *burningDriver) Connect(context.Context) (driver.Conn, error) {
	d.f.Burn("Connect")
	d.open.Add(1)
	return &burningConn{d: d}, nil
}

type burningConn struct {
	driver.Conn // nil

	d *burningDriver
}

func (c *burningConn) Close() error {
	c.d.open.Add(-1)
	c.d.f.Burn("Conn.Close")
	return nil
}

func (c *burningConn) ResetSession(context.Context) error { return c.burn("ResetSession") }

func (c *burningConn) burn(method string) error {
	c.d.f.Burn(method)
	return nil
}

func (c *burningConn) BeginTx(context.Context, driver.TxOptions) (driver.Tx, error) {
	return burningTx{c}, c.burn("BeginTx")
}

func (c *burningConn) ExecContext(ctx context.Context, _ string, _ []driver.NamedValue) (driver.Result, error) {
	err := c.d.f.Work(ctx)
	if errors.Is(err, spilltest.ErrBusy) {
		err = state("53200")
	}
	return driver.RowsAffected(1), err
}

func (c *burningConn) QueryContext(context.Context, string, []driver.NamedValue) (driver.Rows, error) {
	return &burningRows{c, 2}, c.burn("QueryContext")
}

type burningTx struct{ c *burningConn }

func (t burningTx) Commit() error   { return t.c.burn("Commit") }
func (t burningTx) Rollback() error { return t.c.burn("Rollback") }

type burningRows struct {
	c    *burningConn
	left int
}

func (r *burningRows) Columns() []string { return []string{"c"} }
func (r *burningRows) Close() error      { return r.c.burn("Rows.Close") }

func (r *burningRows) Next([]driver.Value) error {
	if r.c.d.f.Burn("Rows.Next"); r.left == 0 {
		return io.EOF
	}
	r.left--
	return nil
}

// read reads rows in a transaction, and ends both whatever happens.
func read(ctx context.Context, _ *spilltest.Fuse, r rig) error {
	conn, err := r.Connect(ctx)
	if err != nil {
		return err
	}
	defer conn.Close()
	tx, err := conn.(driver.ConnBeginTx).BeginTx(ctx, driver.TxOptions{})
	if err != nil {
		return err
	}
	defer func() { _ = tx.Commit() }()
	rows, err := conn.(driver.QueryerContext).QueryContext(ctx, "query", nil)
	for err == nil {
		err = rows.Next(make([]driver.Value, 1))
	}
	if !errors.Is(err, io.EOF) {
		return err
	}
	return rows.Close()
}

func testPanics(t *testing.T) {
	points := spilltest.Calls(func(ctx context.Context, r rig) error {
		conn, err := r.Connect(ctx)
		if err != nil {
			return err
		}
		defer conn.Close()
		_, err = conn.(driver.ExecerContext).ExecContext(Idempotent(ctx), "statement", nil)
		return err
	}, nil)
	points.Hedge.Do, points.Hedge.Not = nil, "statements are not hedged"
	points.Stream.Do = read
	spilltest.TestPanics(t, func(t *testing.T, f *spilltest.Fuse) rig {
		limiter, err := inflight.New(inflight.Config{MaxInFlight: 1})
		if err != nil {
			t.Fatal(err)
		}
		of := f.Egress(egress.Config{})
		c := Config{
			MaxConns: 1, QueueInterval: -1, InFlight: limiter, Retry: of.Retry, Observer: of.Observer, ThrottleMode: of.ThrottleMode,
			Classify: func(error) (fault.Failure, bool) { f.Burn("Classify"); return fault.Failure{}, false },
		}
		if f.Point == "Rejected" {
			c.MaxConns = 2 // the second is rejected by the limit for statements
		}
		d := &burningDriver{f: f}
		connector, err := NewConnector(d, c)
		if err != nil {
			t.Fatal(err)
		}
		return rig{connector, limiter, d}
	}, points)
}
