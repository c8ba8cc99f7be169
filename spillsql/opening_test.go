package spillsql

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"net"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seed90641741/spillway"
)

// A door is a server that takes some time to answer a new connection, and counts how many it
// deals with at once.
type door struct {
	worker
	answers time.Duration

	down      error // the answer while the server takes no connections; nil: it does
	dialed    int
	opening   int
	mostTotal int
}

func (d *door) Connect(ctx context.Context) (driver.Conn, error) {
	d.mu.Lock()
	d.dialed++
	d.opening++
	d.mostTotal = max(d.mostTotal, d.opening)
	d.mu.Unlock()
	defer func() {
		d.mu.Lock()
		defer d.mu.Unlock()
		d.opening--
	}()
	select {
	case <-ctx.Done():
		return nil, ctx.Err()
	case <-time.After(d.answers):
	}
	d.mu.Lock()
	err := d.down
	d.mu.Unlock()
	if err != nil {
		return nil, err
	}
	return d.worker.Connect(ctx)
}

// set changes the answer, and returns how many connections were opened at once before.
func (d *door) set(down error) (most int) {
	d.mu.Lock()
	defer d.mu.Unlock()
	most = d.mostTotal
	d.down, d.mostTotal = down, 0
	return most
}

// behind returns a database behind d.
func behind(t *testing.T, d *door, c Config) *sql.DB {
	t.Helper()
	d.sent = make(map[string]int)
	db, err := OpenDB(d, c)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	return db
}

// demand has callers make a call each every so often until stop is closed. It returns when
// the first call succeeded that began after a time.
func demand(t *testing.T, db *sql.DB, every time.Duration, stop <-chan struct{}, after time.Time) (first time.Time, served int) {
	t.Helper()
	var mu sync.Mutex
	var all sync.WaitGroup
	tick := time.NewTicker(every)
	defer tick.Stop()
	for {
		select {
		case <-stop:
			all.Wait()
			return first, served
		case begun := <-tick.C:
			all.Go(func() {
				ctx, cancel := context.WithTimeout(t.Context(), time.Second)
				defer cancel()
				if _, err := db.ExecContext(ctx, "statement"); err != nil {
					return
				}
				mu.Lock()
				defer mu.Unlock()
				served++
				if first.IsZero() && begun.After(after) {
					first = time.Now()
				}
			})
		}
	}
}

// A server that takes no connections sees one of this process at a time, under any load, and
// the first callers are served when it takes one.
func TestServerAway(t *testing.T) {
	for name, down := range map[string]error{
		"rejected": &net.OpError{Op: "dial", Err: syscall.ECONNREFUSED},
		"starting": state("57P03"),
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				d := &door{worker: worker{takes: time.Millisecond}, answers: 2 * time.Millisecond}
				d.down = down
				db := behind(t, d, Config{MaxConns: 20})
				back := time.Now().Add(2 * time.Second)
				time.AfterFunc(time.Second, func() { d.set(down) }) // the first callers have failed
				time.AfterFunc(2*time.Second, func() {
					if n := d.set(nil); n != 1 {
						t.Errorf("%d connections were opened at once", n)
					}
				})
				stop := make(chan struct{})
				time.AfterFunc(3*time.Second, func() { close(stop) })
				first, served := demand(t, db, time.Millisecond, stop, back)
				if late := first.Sub(back); late < 0 || late > 20*time.Millisecond {
					t.Errorf("the first call was served %v after the return", late)
				}
				if served < 900 { // of the 1,000 of the last second
					t.Errorf("%d calls were served after the return", served)
				}
			})
		})
	}
}

// After the return twice as many connections are opened at once with each that was opened.
func TestSlowStart(t *testing.T) {
	var o opening
	o.begin()
	o.end(wasRejected)
	for _, want := range []int{1, 2, 4, 8, 16} {
		n := 0
		for o.begin() {
			n++
		}
		if n != want {
			t.Errorf("%d at once, want %d", n, want)
		}
		for range n - 1 {
			o.end(notOpened)
		}
		o.end(isOpen)
	}
	for range 10 {
		o.begin()
		o.end(isOpen)
	}
	for range 10_000 {
		if !o.begin() {
			t.Fatal("limited after the recovery")
		}
	}
}

// Connections without an answer are no rejection: the next ones do not wait for them, and the
// throttle does not count the deadlines of callers.
func TestNoAnswer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := &door{worker: worker{}, answers: time.Hour}
		var seen events
		db := behind(t, d, Config{MaxConns: 5, Observer: &seen})
		for range 20 {
			each(5, func(int) error {
				ctx, cancel := context.WithTimeout(t.Context(), time.Second)
				defer cancel()
				return db.PingContext(ctx)
			})
		}
		if n, most := seen.outcomes(), d.set(nil); most != 5 || len(n) != 1 || n[spillway.OutcomeAbandoned] < 50 {
			t.Errorf("%d at once, want 5; outcomes %v, want 50 or more abandoned", most, n)
		}
		time.Sleep(openFor)
	})
}

// A server that rejects more connections serves all callers over the ones that it has.
func TestTooManyConnections(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := &door{worker: worker{takes: time.Millisecond}, answers: time.Millisecond}
		db := behind(t, d, Config{MaxConns: 20, QueueInterval: -1})
		if n := failures(each(2, func(int) error { _, err := db.ExecContext(t.Context(), "first"); return err })); n > 0 {
			t.Fatal(n, "failed")
		}
		d.set(state("53300"))
		errs := each(1000, func(i int) error {
			time.Sleep(time.Duration(i) * time.Millisecond)
			_, err := db.ExecContext(t.Context(), "statement")
			return err
		})
		if n := failures(errs); n > 10 {
			t.Errorf("%d of 1,000 failed, the last one with %v", n, errs[len(errs)-1])
		}
	})
}

// The error of a caller that finds the queue too long says why it is long.
func TestQueueBeforeServerAway(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := &door{worker: worker{}, answers: 50 * time.Millisecond}
		d.down = &net.OpError{Op: "dial", Err: syscall.ECONNREFUSED}
		db := behind(t, d, Config{MaxConns: 2})
		errs := each(200, func(i int) error {
			time.Sleep(time.Duration(i) * 5 * time.Millisecond)
			return db.PingContext(t.Context())
		})
		rejected := 0
		for _, err := range errs {
			if r, ok := errors.AsType[*spillway.RejectedError](err); ok && r.Policy == "spillsql" {
				rejected++
				if r.Unit != "callers waiting for a connection" {
					t.Fatal(err)
				}
			}
		}
		if rejected < 100 {
			t.Errorf("%d of 200 were rejected", rejected)
		}
	})
}

// Opening a connection takes longer than any caller waits. The first callers leave, and those who
// come later get the connections that were opened for them.
func TestSlowOpening(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := &door{answers: 300 * time.Millisecond}
		db := behind(t, d, Config{MaxConns: 5})
		var all sync.WaitGroup
		var mu sync.Mutex
		served := 0
		for range 500 { // 5 s
			all.Go(func() {
				ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
				defer cancel()
				begun := time.Now()
				_, err := db.ExecContext(ctx, "x")
				mu.Lock()
				defer mu.Unlock()
				if err == nil {
					served++
				}
				if took := time.Since(begun); took > 101*time.Millisecond {
					t.Errorf("a caller waited %v", took)
				}
			})
			time.Sleep(10 * time.Millisecond)
		}
		all.Wait()
		time.Sleep(openFor)
		synctest.Wait()
		if served < 400 || d.dialed > 10 {
			t.Errorf("%d of 500 callers were served over %d connections", served, d.dialed)
		}
	})
}

// If the caller has left, a connection is kept for the next caller, and closed with the database.
func TestOpenedForNone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := &door{answers: 300 * time.Millisecond}
		d.sent = make(map[string]int)
		c, err := NewConnector(d, Config{MaxConns: 5})
		if err != nil {
			t.Fatal(err)
		}
		for range 20 {
			ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
			if _, err := c.Connect(ctx); err == nil {
				t.Error("no error")
			}
			cancel()
		}
		time.Sleep(time.Second)
		begun := time.Now()
		conn, err := c.Connect(t.Context())
		if err != nil || time.Since(begun) > 0 || d.opened != 5 {
			t.Fatalf("after %v: %v; %d connections opened", time.Since(begun), err, d.opened)
		}
		if err := errors.Join(conn.Close(), c.Close()); err != nil {
			t.Error(err)
		}
		if s := c.Stats(time.Now()); s.Open != 0 || s.Waiting != 0 || d.closed != 5 {
			t.Errorf("%d of 5 closed: %+v", d.closed, s)
		}
	})
}

// The place of a connection is free again when the server has not answered for a time.
func TestOpenedForNoneByAServerThatHangs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := &door{answers: time.Hour}
		d.sent = make(map[string]int)
		c, err := NewConnector(d, Config{MaxConns: 5})
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
		defer cancel()
		if _, err := c.Connect(ctx); !errors.Is(err, context.DeadlineExceeded) {
			t.Error(err)
		}
		time.Sleep(openFor)
		synctest.Wait()
		if s := c.Stats(time.Now()); s.Open != 0 {
			t.Errorf("after %v of a server that hangs: %+v", openFor, s)
		}
	})
}

// A caller leaves without a deadline, or long before it, while the server answers nothing. What was
// opened for it ends, so that its place is free; a caller that stays may wait.
func TestOpenedForOneThatLeaves(t *testing.T) {
	for _, deadline := range []time.Duration{0, time.Hour} {
		synctest.Test(t, func(t *testing.T) {
			d := &door{answers: 5 * openFor}
			d.sent = make(map[string]int)
			c, err := NewConnector(d, Config{MaxConns: 5})
			if err != nil {
				t.Fatal(err)
			}
			for _, leaves := range []time.Duration{10 * time.Millisecond, 2 * openFor} {
				ctx, cancel := context.WithCancel(t.Context())
				if deadline > 0 {
					ctx, cancel = context.WithTimeout(ctx, deadline)
				}
				time.AfterFunc(leaves, cancel)
				if _, err := c.Connect(ctx); !errors.Is(err, context.Canceled) {
					t.Error(err)
				}
				time.Sleep(max(0, openFor-leaves))
				synctest.Wait()
				if s := c.Stats(time.Now()); s.Open != 0 {
					t.Errorf("a caller with %v left after %v: %+v", deadline, leaves, s)
				}
			}
			conn, err := c.Connect(t.Context())
			if err != nil {
				t.Fatal("a caller that stays:", err)
			}
			_ = conn.Close() // of a fake
		})
	}
}
