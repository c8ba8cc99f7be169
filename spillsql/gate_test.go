package spillsql

import (
	"context"
	"database/sql/driver"
	"errors"
	"io"
	"net"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seed90641741/spillway"
	"github.com/seed90641741/spillway/inflight"
)

// state is an error with an SQLSTATE, like the errors of PostgreSQL drivers.
type state string

func (s state) Error() string    { return "SQLSTATE " + string(s) }
func (s state) SQLState() string { return string(s) }

func TestRetries(t *testing.T) {
	rejected := &net.OpError{Op: "dial", Err: syscall.ECONNREFUSED}
	reset := &net.OpError{Op: "read", Err: syscall.ECONNRESET}
	for _, c := range []struct {
		name       string
		err        error
		connect    bool // the error is of Connect
		idempotent bool
		conflicts  bool
		sent       int // three attempts are allowed
		outcome    spillway.Outcome
	}{
		{"syntax", state("42601"), false, true, false, 1, spillway.OutcomeFailed},
		{"memory", state("53200"), false, false, false, 1, spillway.OutcomeOverloaded},
		{"memory", state("53200"), false, true, false, 3, spillway.OutcomeOverloaded},
		{"disk", state("53100"), false, true, false, 1, spillway.OutcomeOverloaded},
		{"conflict", state("40001"), false, true, false, 1, spillway.OutcomeFailed},
		{"conflict", state("40001"), false, false, true, 3, spillway.OutcomeFailed},
		{"deadlock", state("40P01"), false, false, true, 3, spillway.OutcomeFailed},
		{"timeout", state("57014"), false, true, false, 1, spillway.OutcomeTimedOut},
		{"unknown", errFake, false, false, false, 1, spillway.OutcomeFailed},
		{"unknown", errFake, false, true, false, 3, spillway.OutcomeFailed},
		{"reset", reset, false, false, false, 1, spillway.OutcomeFailed},
		{"reset", reset, false, true, false, 3, spillway.OutcomeFailed},
		{"end", io.ErrUnexpectedEOF, false, false, false, 1, spillway.OutcomeFailed},
		{"shutdown", state("57P01"), false, false, false, 1, spillway.OutcomeFailed},
		{"shutdown", state("57P01"), false, true, false, 3, spillway.OutcomeFailed},
		{"clients", state("53300"), true, false, false, 3, spillway.OutcomeOverloaded},
		{"starting", state("57P03"), true, false, false, 3, spillway.OutcomeFailed},
		{"password", state("28P01"), true, true, false, 1, spillway.OutcomeFailed},
		{"rejected", rejected, true, false, false, 3, spillway.OutcomeFailed},
		{"no answer", &net.OpError{Op: "dial", Err: syscall.ETIMEDOUT}, true, false, false, 3, spillway.OutcomeOverloaded},
		{"backlog", &net.OpError{Op: "dial", Err: syscall.EAGAIN}, true, false, false, 3, spillway.OutcomeOverloaded},
		{"bad", driver.ErrBadConn, false, false, false, 3, 0}, // by database/sql
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				what := "statement"
				if c.connect {
					what = "connect"
				}
				w := &worker{answer: func(query string) error {
					if query == what {
						return c.err
					}
					return nil
				}}
				var seen events
				db, _ := open(t, w, Config{RetryConflicts: c.conflicts, Observer: &seen})
				ctx := t.Context()
				if c.idempotent {
					ctx = Idempotent(ctx)
				}
				_, err := db.ExecContext(ctx, "statement")
				if !errors.Is(err, c.err) {
					t.Errorf("failed with %v", err)
				}
				if w.sent[what] != c.sent {
					t.Errorf("sent %d times, want %d", w.sent[what], c.sent)
				}
				if n := seen.outcomes()[c.outcome]; n != c.sent && c.outcome != 0 {
					t.Errorf("outcomes %v, want %d times %v", seen.outcomes(), c.sent, c.outcome)
				}
			})
		})
	}
}

// A retry is paid for, also where database/sql sends it on another connection. Only answers earn what it costs.
func TestBudget(t *testing.T) {
	reset := &net.OpError{Op: "read", Err: syscall.ECONNRESET}
	for err, want := range map[error][2]int{state("53200"): {1080, 1130}, reset: {1001, 1003}} { // a tenth, and three on credit
		synctest.Test(t, func(t *testing.T) {
			w := &worker{answer: func(query string) error {
				if query == "connect" {
					return nil
				}
				return err
			}}
			db, _ := open(t, w, Config{ThrottleMode: spillway.ModeOff})
			for range 1000 {
				_, _ = db.ExecContext(Idempotent(t.Context()), "statement")
			}
			if n := w.sent["statement"]; n < want[0] || n > want[1] {
				t.Errorf("%v: sent %d times for 1,000 calls, want %v", err, n, want)
			}
		})
	}
}

// Statements in a transaction are not repeated, and not rejected; the worst of them is the
// result of the whole.
func TestTransaction(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := &worker{answer: func(query string) error {
			if query == "bad" {
				return state("53200")
			}
			return nil
		}}
		var seen events
		db, _ := open(t, w, Config{Observer: &seen, RetryConflicts: true})
		tx, err := db.BeginTx(Idempotent(t.Context()), nil)
		if err != nil {
			t.Fatal(err)
		}
		if len(seen.outcomes()) > 1 { // of connect
			t.Errorf("outcomes %v before the end", seen.outcomes())
		}
		for _, query := range []string{"good", "bad", "good"} {
			_, _ = tx.ExecContext(Idempotent(t.Context()), query)
		}
		if err := tx.Rollback(); err != nil {
			t.Error(err)
		}
		if w.sent["bad"] != 1 || seen.outcomes()[spillway.OutcomeOverloaded] != 1 {
			t.Errorf("sent %v; outcomes %v", w.sent, seen.outcomes())
		}
	})
}

// A backend that rejects is throttled. The rejections end no connection and are not
// repeated by database/sql, and a transaction that was admitted goes on.
func TestThrottle(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := &worker{answer: func(query string) error {
			if query == "statement" {
				return state("53200")
			}
			return nil
		}}
		db, _ := open(t, w, Config{})
		tx, err := db.BeginTx(t.Context(), nil)
		if err != nil {
			t.Fatal(err)
		}
		rejected := 0
		for range 500 {
			if _, err := db.ExecContext(t.Context(), "statement"); errors.Is(err, spillway.ErrRejected) {
				rejected++
			}
		}
		if rejected < 300 || w.sent["statement"] != 500-rejected {
			t.Errorf("%d of 500 rejected, %d sent", rejected, w.sent["statement"])
		}
		if _, err := tx.ExecContext(t.Context(), "in the transaction"); err != nil {
			t.Error(err)
		}
		if err := tx.Commit(); err != nil {
			t.Error(err)
		}
		if w.opened != 2 || w.closed != 0 {
			t.Errorf("%d connections opened, %d closed", w.opened, w.closed)
		}
	})
}

// The place in flight is held until the first row, and by a transaction until its end.
func TestPlaceInFlight(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		limiter, err := inflight.New(inflight.Config{})
		if err != nil {
			t.Fatal(err)
		}
		db, connector := open(t, new(worker), Config{InFlight: limiter})
		want := func(when string, n int) {
			t.Helper()
			if s := limiter.Stats(time.Now()); s.InFlight != n || s.SurplusTotal != 0 {
				t.Errorf("%s: %+v, want %d in flight", when, s, n)
			}
		}
		rows, err := db.QueryContext(t.Context(), "query")
		if err != nil {
			t.Fatal(err)
		}
		want("before the first row", 1)
		rows.Next()
		want("after the first row", 0)
		if err := rows.Close(); err != nil {
			t.Error(err)
		}
		tx, err := db.BeginTx(t.Context(), nil)
		if err != nil {
			t.Fatal(err)
		}
		want("in a transaction", 1)
		if err := tx.Commit(); err != nil {
			t.Error(err)
		}
		want("after it", 0)
		c, err := connector.Connect(t.Context()) // database/sql loses the connection of a query that panics
		if err != nil {
			t.Fatal(err)
		}
		for range 3 {
			panics(t, func() { _, _ = c.(driver.QueryerContext).QueryContext(t.Context(), "panic", nil) })
		}
		if err := c.Close(); err != nil {
			t.Error(err)
		}
		want("after panics of the driver", 0)
	})
}

func panics(t *testing.T, f func()) {
	t.Helper()
	defer func() {
		if recover() == nil {
			t.Error("did not panic")
		}
	}()
	f()
}

// A caller that leaves says nothing about the database. A deadline does.
func TestContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var seen events
		db, _ := open(t, &worker{takes: time.Second}, Config{Observer: &seen})
		ctx, cancel := context.WithCancel(t.Context())
		time.AfterFunc(10*time.Millisecond, cancel)
		_, err := db.ExecContext(ctx, "left")
		if !errors.Is(err, context.Canceled) || seen.outcomes()[spillway.OutcomeAbandoned] != 1 {
			t.Errorf("%v: %v", err, seen.outcomes())
		}
		ctx, cancel = context.WithTimeout(t.Context(), 10*time.Millisecond)
		defer cancel()
		_, err = db.ExecContext(ctx, "late")
		if !errors.Is(err, context.DeadlineExceeded) || seen.outcomes()[spillway.OutcomeTimedOut] != 1 {
			t.Errorf("%v: %v", err, seen.outcomes())
		}
	})
}

func TestConfig(t *testing.T) {
	for _, c := range []Config{{ThrottleMode: 9}, {InFlightMode: 9}} {
		if _, err := NewConnector(new(worker), c); err == nil {
			t.Errorf("%+v is accepted", c)
		}
	}
	if _, err := Open("no such driver", "", Config{}); err == nil {
		t.Error("opened with an unknown driver")
	}
}

// A statement belongs to the task of its context, which counts it when it was served.
func TestStatementsOfATask(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := &worker{answer: func(query string) error {
			if query == "fails" {
				return errFake
			}
			return nil
		}}
		var seen events
		db, _ := open(t, w, Config{Observer: &seen})
		var task spillway.Task
		task.Begin(9, 4)
		ctx := spillway.WithTask(t.Context(), &task)
		if _, err := db.ExecContext(ctx, "works"); err != nil {
			t.Fatal(err)
		}
		if _, err := db.ExecContext(ctx, "fails"); err == nil {
			t.Fatal("it has not failed")
		}
		if task.Progress() != 5 {
			t.Errorf("progress %d after a connection, a statement that works and one that fails; want 5", task.Progress())
		}
		for _, e := range seen.all {
			if e.Call.Level != 9 {
				t.Errorf("%s of %s has level %d, want 9", e.Policy, e.Call.Key, e.Call.Level)
			}
		}
	})
}
