package spillsql

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"net"
	"os"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seed90641741/spillway"
	"github.com/seed90641741/spillway/egress"
	"github.com/seed90641741/spillway/spilltest"
)

// unopened is a database whose connections fail to open.
type unopened struct {
	contracted

	open func(ctx context.Context) error
}

func (u *unopened) Connect(ctx context.Context) (driver.Conn, error) { return nil, u.open(ctx) }

func dialError(op string, errno error) error {
	return &net.OpError{Op: "dial", Net: "tcp", Err: os.NewSyscallError(op, errno)}
}

// TestLessons: what each end of a statement teaches, and of opening a connection. A rejected connection teaches: the server was asked.
// A database has no answer to one customer.
func TestLessons(t *testing.T) {
	never, gone, ok := spilltest.NeverSent, spilltest.Unanswered, spilltest.Answered
	spilltest.TestLessons(t, func(t *testing.T, config egress.Config) (all []spilltest.Lesson) {
		add := func(name string, want spilltest.Evidence, attempts int, call func(context.Context) error) {
			all = append(all, spilltest.Lesson{Name: name, Want: want, Attempts: attempts, Call: call})
		}
		// connects opens a connection, which ends with err.
		connects := func(name string, want spilltest.Evidence, attempts int, err error) {
			db, failed := OpenDB(&unopened{open: func(context.Context) error { return err }}, Config{Observer: config.Observer, Retry: config.Retry})
			if failed != nil {
				t.Fatal(failed)
			}
			t.Cleanup(func() { _ = db.Close() })
			add(name, want, attempts, func(ctx context.Context) error { return db.PingContext(ctx) })
		}
		// states sends a statement, on a connection that is open, and it ends with err. Nil: with its context.
		states := func(name string, want spilltest.Evidence, attempts int, err error) {
			add(name, want, attempts, statementThatEnds(t, config, err))
		}
		connects("no descriptor", never, 3, dialError("socket", syscall.EMFILE))
		connects("no port", never, 3, dialError("connect", syscall.EADDRNOTAVAIL))
		connects("no name", never, 3, &net.OpError{Op: "dial", Err: &net.DNSError{Err: "no such host", IsNotFound: true}})
		connects("malformed address", never, 1, &net.OpError{Op: "dial", Err: &net.AddrError{Err: "missing port", Addr: "x"}})
		connects("rejected", gone, 3, dialError("connect", syscall.ECONNREFUSED))
		connects("no answer to the dial", gone, 3, dialError("connect", syscall.ETIMEDOUT))
		connects("too many connections", ok, 3, state("53300"))
		connects("wrong password", ok, 1, state("28P01"))
		states("memory", ok, 3, state("53200"))
		states("syntax", ok, 1, state("42601"))
		states("statement_timeout", ok, 1, state("57014"))
		states("unknown", ok, 3, errFake)
		states("connection of no use", never, 1, driver.ErrBadConn)
		states("large packet", never, 1, errors.New("packet for query is too large. Try adjusting the `Config.MaxAllowedPacket`"))
		states("reset", gone, 2, &net.OpError{Op: "read", Err: syscall.ECONNRESET}) // the second finds the connection broken
		states("timeout", gone, 1, nil)
		add("deadline in the queue", never, 0, queued(t, config))
		return all
	})
}

// statementThatEnds returns a call that sends a statement on a connection that is open already, so that what is learnt is of the statement.
func statementThatEnds(t *testing.T, config egress.Config, err error) func(context.Context) error {
	t.Helper()
	observer := spillway.ObserverFunc(func(e spillway.Event) {
		if config.Observer != nil && e.Call.Key != "connect" {
			config.Observer.Observe(e)
		}
	})
	db, failed := OpenDB(new(contracted), Config{Observer: observer, Retry: config.Retry})
	if failed != nil {
		t.Fatal(failed)
	}
	conn, failed := db.Conn(t.Context())
	if failed != nil {
		t.Fatal(failed)
	}
	t.Cleanup(func() { _, _ = conn.Close(), db.Close() })
	work := func(ctx context.Context) error {
		if err == nil {
			<-ctx.Done()
			return ctx.Err()
		}
		return err
	}
	return func(ctx context.Context) error {
		if err == nil {
			var cancel context.CancelFunc
			ctx, cancel = context.WithTimeout(ctx, 20*time.Millisecond)
			defer cancel()
		}
		_, failed := conn.ExecContext(context.WithValue(Idempotent(ctx), workKey{}, work), "statement")
		return failed
	}
}

// queued returns a call that waits for a connection until its deadline.
func queued(t *testing.T, config egress.Config) func(context.Context) error {
	t.Helper()
	db, err := OpenDB(new(contracted), Config{Observer: config.Observer, Retry: config.Retry, MaxConns: 1})
	if err != nil {
		t.Fatal(err)
	}
	conn, err := db.Conn(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _, _ = conn.Close(), db.Close() })
	return func(ctx context.Context) error {
		ctx, cancel := context.WithTimeout(ctx, 20*time.Millisecond)
		defer cancel()
		return db.PingContext(ctx)
	}
}

// TestLocalDials: a dial that this process could not make does not slow down the next ones.
func TestLocalDials(t *testing.T) {
	out := true
	u := &unopened{open: func(context.Context) error {
		if out {
			return dialError("socket", syscall.EMFILE)
		}
		return dialError("connect", syscall.ECONNREFUSED)
	}}
	c, err := NewConnector(u, Config{})
	if err != nil {
		t.Fatal(err)
	}
	db := sql.OpenDB(c)
	defer db.Close()
	for _, want := range []int{0, 1} {
		for range 100 {
			if err := db.PingContext(t.Context()); errors.Is(err, spillway.ErrRejected) {
				t.Fatal(err)
			}
			if !out {
				break
			}
		}
		if c.pool.opening.narrow != want {
			t.Errorf("%d connections may be opened at once, want %d (0: all)", c.pool.opening.narrow, want)
		}
		out = false
	}
}

// TestShortDeadlines: four callers with 8 ms for each that waits, of statements that take 20 ms. Callers that wait are served as without
// the others: a wait that is shorter than what is usual says nothing.
func TestShortDeadlines(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		do := through(t, Config{})
		work := func(ctx context.Context) error {
			select {
			case <-ctx.Done():
				return ctx.Err()
			case <-time.After(20 * time.Millisecond):
				return nil
			}
		}
		served := 0
		for i := range 1500 {
			ctx, cancel := context.WithTimeout(t.Context(), 8*time.Millisecond)
			if i%5 == 0 {
				ctx, cancel = context.WithTimeout(t.Context(), time.Second)
			}
			if err := do(ctx, work); err == nil {
				served++
			} else if i%5 == 0 {
				t.Errorf("call %d: %v", i, err)
			}
			cancel()
		}
		if served < 300 {
			t.Errorf("%d of 300 were served", served)
		}
	})
}
