package spillsql

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"testing"
	"time"

	"github.com/seed90641741/spillway"
	"github.com/seed90641741/spillway/inflight"
	"github.com/seed90641741/spillway/retry"
	"github.com/seed90641741/spillway/spilltest"
)

// contracted is a database whose statements run the work of a call, which travels in its
// context.
type contracted struct{ fake }

type workKey struct{}

func (c *contracted) Connect(context.Context) (driver.Conn, error) {
	return struct {
		driver.Conn
		driver.ExecerContext
	}{&fakeConn{new(fake)}, c}, nil
}

func (c *contracted) ExecContext(ctx context.Context, _ string, _ []driver.NamedValue) (driver.Result, error) {
	err := ctx.Value(workKey{}).(func(context.Context) error)(ctx)
	if errors.Is(err, spilltest.ErrBusy) {
		err = state("53200")
	}
	return driver.RowsAffected(1), err
}

// through makes calls through a Connector.
func through(t *testing.T, c Config) spilltest.Do {
	t.Helper()
	c.MaxConns = -1
	connector, err := NewConnector(new(contracted), c)
	if err != nil {
		t.Fatal(err)
	}
	return callsOn(t, connector)
}

// callsOn makes calls as statements, on connections that are open.
func callsOn(t *testing.T, connector driver.Connector) spilltest.Do {
	t.Helper()
	db := sql.OpenDB(connector)
	t.Cleanup(func() { _ = db.Close() })
	var conns [20]*sql.Conn // more than the calls at once
	db.SetMaxIdleConns(len(conns))
	for i := range conns {
		var err error
		if conns[i], err = db.Conn(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	for _, c := range conns {
		if err := c.Close(); err != nil {
			t.Fatal(err)
		}
	}
	return func(ctx context.Context, work func(context.Context) error) error {
		_, err := db.ExecContext(context.WithValue(ctx, workKey{}, work), "statement")
		return err
	}
}

func TestContract(t *testing.T) {
	spilltest.TestStack(t, func(t *testing.T, s spilltest.Setup) spilltest.Stack {
		limiter, err := inflight.New(inflight.Config{MaxInFlight: s.Limit})
		if err != nil {
			t.Fatal(err)
		}
		own := spillway.ObserverFunc(func(e spillway.Event) {
			if e.Call.Key != "connect" {
				s.Observer.Observe(e)
			}
		})
		do := through(t, Config{InFlight: limiter, InFlightMode: s.Mode, Observer: own})
		stack := spilltest.Stack{
			Do:       do,
			Bare:     callsOn(t, new(contracted)),
			InFlight: func() int { return limiter.Stats(time.Now()).InFlight },
			Update:   func(s spilltest.Setup) error { return limiter.Update(inflight.Config{MaxInFlight: s.Limit}) },
		}
		stack.Allocations.Served, stack.Allocations.Rejected = 3, 2
		return stack
	})
}

func TestContractOfRetries(t *testing.T) {
	spilltest.TestRetries(t, func(t *testing.T, s retry.Strategy) spilltest.Do {
		do := through(t, Config{Retry: s, ThrottleMode: spillway.ModeOff})
		return func(ctx context.Context, work func(context.Context) error) error { return do(Idempotent(ctx), work) }
	})
}
