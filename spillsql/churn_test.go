package spillsql

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// bursts has callers make calls one after another, and pause together from time to time.
func bursts(t *testing.T, db *sql.DB, callers, bursts, calls int) {
	t.Helper()
	for range bursts {
		errs := each(callers, func(int) error {
			for range calls {
				if _, err := db.ExecContext(t.Context(), "statement"); err != nil {
					return err
				}
			}
			return nil
		})
		if err := errors.Join(errs...); err != nil {
			t.Fatal(err)
		}
	}
}

// Callers that wait for one another's connections open no more of them than with database/sql alone. Each burst begins when all
// connections are in use and callers wait: how quick the machine is makes no difference to how many are needed.
func TestConnectionsAreKept(t *testing.T) {
	const conns = 8
	bare, w := &worker{sent: make(map[string]int)}, &worker{}
	plain := sql.OpenDB(bare)
	defer plain.Close()
	plain.SetMaxOpenConns(conns)
	plain.SetMaxIdleConns(conns)
	db, _ := open(t, w, Config{MaxConns: conns})
	for worker, db := range map[*worker]*sql.DB{bare: plain, w: db} {
		for range 100 {
			worker.answer = together(conns)
			bursts(t, db, 12, 1, 50)
		}
	}
	if bare.opened != conns || bare.most != conns || w.most != conns {
		t.Fatalf("not saturated: %d connections in use at once, by database/sql alone %d of %d opened", w.most, bare.most, bare.opened)
	}
	if w.opened > bare.opened+2 {
		t.Errorf("%d connections were opened, by database/sql alone %d", w.opened, bare.opened)
	}
}

// together returns an answer for which the first n statements wait until all of them are in the database.
func together(n int) func(query string) error {
	var begun atomic.Int64
	var all sync.WaitGroup
	all.Add(n)
	return func(query string) error {
		if query != "connect" && begun.Add(1) <= int64(n) {
			all.Done()
			all.Wait()
		}
		return nil
	}
}

// SetConnMaxIdleTime closes all connections when no caller comes, also those that have changed hands.
func TestIdleTimeAfterAQueue(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := &worker{takes: time.Microsecond}
		db, c := open(t, w, Config{MaxConns: 8})
		db.SetConnMaxIdleTime(time.Second)
		bursts(t, db, 12, 20, 50)
		if s := c.Stats(time.Now()); s.Open != 8 || w.opened != 8 {
			t.Errorf("%d connections are open, %d were opened", s.Open, w.opened)
		}
		time.Sleep(5 * time.Second)
		if s := c.Stats(time.Now()); s.Open != 0 {
			t.Errorf("%d connections are open after 5 s without a caller", s.Open)
		}
	})
}

// Two connections are returned while one caller waits. The second connection is kept.
func TestTwoConnectionsForOneCaller(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := &worker{sent: make(map[string]int)}
		c, err := NewConnector(w, Config{MaxConns: 2})
		if err != nil {
			t.Fatal(err)
		}
		first, err1 := c.Connect(t.Context())
		second, err2 := c.Connect(t.Context())
		var third driver.Conn
		var err3 error
		go func() { third, err3 = c.Connect(t.Context()) }()
		synctest.Wait()
		if first.(driver.Validator).IsValid() || !second.(driver.Validator).IsValid() {
			t.Error("one connection changes hands, and not the other")
		}
		err = first.Close()
		synctest.Wait()
		if err := errors.Join(err, err1, err2, err3); err != nil || w.closed > 0 {
			t.Fatalf("%d connections closed: %v", w.closed, err)
		}
		if err := errors.Join(second.Close(), third.Close()); err != nil || w.closed != 2 || w.opened != 2 {
			t.Errorf("%d connections opened, %d closed: %v", w.opened, w.closed, err)
		}
	})
}

// A caller leaves when a connection has just been returned for it. The next caller gets the connection.
func TestConnectionForOneThatHasLeft(t *testing.T) {
	w := &worker{sent: make(map[string]int)}
	c, err := NewConnector(w, Config{MaxConns: 1})
	if err != nil {
		t.Fatal(err)
	}
	first, err := c.Connect(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	left := &waiter{ready: make(chan grant, 1)}
	c.pool.queue.enter(time.Now(), left)
	if first.(driver.Validator).IsValid() || first.Close() != nil {
		t.Error("the connection did not change hands")
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := c.pool.leave(ctx, left); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	next, err := c.Connect(t.Context())
	if err != nil || w.opened != 1 || w.closed != 0 {
		t.Fatalf("%d connections opened, %d closed: %v", w.opened, w.closed, err)
	}
	if err := errors.Join(next.Close(), c.Close()); err != nil || w.closed != 1 {
		t.Errorf("%d connections closed in the end: %v", w.closed, err)
	}
}

// SetConnMaxLifetime bounds the time that a connection is open, also while callers queue and it changes
// hands all the time. A database/sql whose fields are not as expected fails here.
func TestLifetimeUnderAStandingQueue(t *testing.T) {
	const lifetime = 100 * time.Millisecond
	synctest.Test(t, func(t *testing.T) {
		w := &worker{takes: time.Millisecond, sent: make(map[string]int)}
		db, err := OpenDB(w, Config{MaxConns: 8, QueueInterval: -1})
		if err != nil {
			t.Fatal(err)
		}
		db.SetConnMaxLifetime(lifetime)
		var all sync.WaitGroup
		for range 12 {
			all.Go(func() {
				for begun := time.Now(); time.Since(begun) < time.Second; {
					if _, err := db.ExecContext(t.Context(), "statement"); err != nil {
						t.Error(err)
					}
				}
			})
		}
		all.Wait()
		if w.opened < 8*9 || w.opened > 8*11 { // each lives for 100 ms, or to the end of a statement after that
			t.Errorf("%d connections opened in 1 s, want about %d", w.opened, 8*10)
		}
		db.SetConnMaxLifetime(0)
		before := w.opened
		bursts(t, db, 12, 1, 500)
		if n := w.opened - before; n > 8 {
			t.Errorf("%d connections opened after the end of the limit", n)
		}
		if err := db.Close(); err != nil || w.opened != w.closed {
			t.Errorf("%d connections opened, %d closed: %v", w.opened, w.closed, err)
		}
	})
}

// A driver that panics while it opens a connection does so for its caller, who can recover as with
// database/sql alone, or for the next one if that caller has left. Nothing is left of the attempt.
func TestPanicOfConnect(t *testing.T) {
	for _, leaves := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			w := &worker{}
			w.answer = func(query string) error {
				if query == "connect" {
					time.Sleep(time.Second)
					panic("driver")
				}
				return nil
			}
			db, _ := open(t, w, Config{MaxConns: 1})
			for i := range 4 { // more than there are places
				recovers := !leaves || i%2 == 1
				ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
				if leaves {
					ctx, cancel = context.WithTimeout(t.Context(), time.Millisecond)
				}
				func() {
					defer func() {
						if p := recover(); (p == "driver") != recovers {
							t.Errorf("call %d: the caller leaves: %v, and recovers %v", i, leaves, p)
						}
					}()
					if err := db.PingContext(ctx); recovers || !errors.Is(err, context.DeadlineExceeded) {
						t.Errorf("no panic, but %v", err)
					}
				}()
				cancel()
				time.Sleep(time.Second)
			}
			w.mu.Lock()
			w.answer = nil
			w.mu.Unlock()
			if err := db.PingContext(t.Context()); err != nil {
				t.Error(err)
			}
		})
	}
}
