package spillsql

import (
	"context"
	"database/sql/driver"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seed90641741/spillway"
	"github.com/seed90641741/spillway/fault"
	"github.com/seed90641741/spillway/inflight"
)

// A panicker counts calls, and panics at one of them.
type panicker struct{ calls, at int }

func (p *panicker) call() {
	if p.calls++; p.calls == p.at {
		panic("user")
	}
}

// Observe implements [spillway.Observer].
func (p *panicker) Observe(spillway.Event) { p.call() }

// work does with a connection what database/sql does. It returns whether something has panicked.
func work(ctx context.Context, c *Connector) (panicked bool) {
	var open driver.Conn
	recovered := func(f func(conn driver.Conn)) {
		defer func() {
			if p := recover(); p == "user" {
				panicked = true
			} else if p != nil {
				panic(p)
			}
		}()
		f(open)
	}
	recovered(func(driver.Conn) { open, _ = c.Connect(ctx) })
	if open == nil {
		return panicked
	}
	recovered(func(c driver.Conn) { _, _ = c.(driver.ExecerContext).ExecContext(ctx, "bad", nil) })
	recovered(func(c driver.Conn) {
		rows, err := c.(driver.QueryerContext).QueryContext(ctx, "good", nil)
		if err == nil {
			defer rows.Close()
			_ = rows.Next(make([]driver.Value, 2))
		}
	})
	for _, query := range []string{"good", "bad"} {
		recovered(func(c driver.Conn) {
			tx, err := c.(driver.ConnBeginTx).BeginTx(ctx, driver.TxOptions{})
			if err != nil {
				return
			}
			defer func() { _ = tx.Commit() }()
			_, _ = c.(driver.ExecerContext).ExecContext(ctx, query, nil)
		})
	}
	recovered(func(c driver.Conn) { _ = c.Close() })
	return panicked
}

// Classify or the Observer panics at each of its calls in turn. Nothing is held after that, and no
// connection is lost.
func TestPanicsOfTheUser(t *testing.T) {
	for _, which := range []string{"Classify", "Observer"} {
		for at := 1; at < 100; at++ {
			panicked := false
			synctest.Test(t, func(t *testing.T) {
				limiter, err := inflight.New(inflight.Config{})
				if err != nil {
					t.Fatal(err)
				}
				p := &panicker{at: at}
				config := Config{MaxConns: 1, InFlight: limiter}
				if which == "Observer" {
					config.Observer = p
				} else {
					config.Classify = func(error) (fault.Failure, bool) { p.call(); return fault.Failure{}, false }
				}
				w := &worker{sent: make(map[string]int)}
				w.answer = func(query string) error {
					if query == "connect" && w.sent["connect"] == 0 || query == "bad" {
						return errFake
					}
					return nil
				}
				c, err := NewConnector(w, config)
				if err != nil {
					t.Fatal(err)
				}
				for range 2 {
					panicked = work(t.Context(), c) || panicked
				}
				p.at = 0
				if s := limiter.Stats(time.Now()); s.InFlight != 0 || s.SurplusTotal != 0 {
					t.Errorf("%s panics at call %d: %+v", which, at, s)
				}
				ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
				defer cancel()
				conn, err := c.Connect(ctx)
				if err == nil {
					err = errors.Join(conn.Close(), c.Close())
				}
				if s := c.Stats(time.Now()); err != nil || s.Open != 0 || w.opened != w.closed {
					t.Errorf("%s panics at call %d: %v; %d open, %d of %d closed", which, at, err, s.Open, w.closed, w.opened)
				}
			})
			if !panicked {
				if at < 4 {
					t.Errorf("%s was called %d times", which, at)
				}
				break
			}
		}
	}
}

// A driver that panics while a connection is reset for the next caller loses the connection, and not its place.
func TestPanicOfReset(t *testing.T) {
	f := &fake{panics: "conn.ResetSession", conn: resetting(t)}
	c, first, _ := idleWithStatement(t, f)
	panics(t, func() { _, _ = c.Connect(t.Context()) })
	f.panics = ""
	ctx, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	again, err := c.Connect(ctx)
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(first.Close(), again.Close()); err != nil || c.Stats(time.Now()).Open != 0 {
		t.Errorf("%d open: %v", c.Stats(time.Now()).Open, err)
	}
}

// resetting returns the index of a connection with ResetSession.
func resetting(t *testing.T) int {
	t.Helper()
	for i, c := range connFakes(&fakeConn{}) {
		if _, ok := c.(driver.SessionResetter); ok {
			return i
		}
	}
	t.Fatal(fmt.Errorf("none of %d", len(connFakes(&fakeConn{}))))
	return 0
}
