package sqltest

import (
	"context"
	"database/sql"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/seed90641741/spillway/spillsql"
)

// A writer inserts rows, each with another number, and keeps which were acknowledged.
type writer struct {
	db     *sql.DB
	insert string
	wrap   func(context.Context) context.Context

	next  atomic.Int64
	mu    sync.Mutex
	acked map[int64]bool
	back  time.Time // the first success after the restart
	since atomic.Pointer[time.Time]
}

// run writes with n callers until ctx ends.
func (w *writer) run(ctx context.Context, n int) {
	var all sync.WaitGroup
	for range n {
		all.Go(func() {
			for ctx.Err() == nil {
				w.write(ctx)
			}
		})
	}
	all.Wait()
}

func (w *writer) write(ctx context.Context) {
	id := w.next.Add(1)
	begun := time.Now()
	limited, cancel := context.WithTimeout(w.wrap(ctx), 5*time.Second)
	defer cancel()
	if _, err := w.db.ExecContext(limited, w.insert, id); err != nil {
		select {
		case <-ctx.Done():
		case <-time.After(5 * time.Millisecond):
		}
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.acked[id] = true
	if up := w.since.Load(); up != nil && begun.After(*up) && w.back.IsZero() {
		w.back = time.Now()
	}
}

// again lasts from the restart until the writers are compared.
const again = 1500 * time.Millisecond

// TestRestart ends the server while callers write, and starts it again, at the same time with
// spillsql and without. No write that was acknowledged is lost and none is made twice. Callers
// write again within a second of the callers of database/sql alone, and as many of their writes are
// acknowledged. A write sleeps in the server, so that none takes the processor from another.
func TestRestart(t *testing.T) {
	if testing.Short() {
		t.Skip("takes seconds")
	}
	s := start(t)
	plain := s.plain(t, 5)
	writers := map[string]*writer{
		"once":     {db: s.behind(t, spillsql.Config{MaxConns: 5}), wrap: same},
		"repeated": {db: s.behind(t, spillsql.Config{MaxConns: 5}), wrap: spillsql.Idempotent},
		"plain":    {db: plain, wrap: same},
	}
	for table, w := range writers {
		if _, err := plain.ExecContext(t.Context(), "DROP TABLE IF EXISTS "+table+"; CREATE TABLE "+table+" (id bigint)"); err != nil {
			t.Fatal(err)
		}
		w.acked, w.insert = make(map[int64]bool), "INSERT INTO "+table+" SELECT $1 FROM pg_sleep(0.01)"
	}
	if _, err := plain.ExecContext(t.Context(), "CREATE UNIQUE INDEX one ON repeated (id)"); err != nil {
		t.Fatal(err)
	}
	writers["repeated"].insert += " ON CONFLICT DO NOTHING"
	up := restart(t, s, writers)
	bare := writers["plain"]
	for table, w := range writers {
		check(t, bare.db, table, w.acked)
		if w.back.IsZero() {
			t.Fatalf("%s: no write after the restart", table)
		}
		t.Logf("%s: %d of %d writes acknowledged; the first one %v after the restart", table, len(w.acked), w.next.Load(), w.back.Sub(up))
		if late := w.back.Sub(bare.back); *measure && late > time.Second {
			t.Errorf("%s: writes %v later than database/sql alone", table, late)
		}
		if *measure && len(w.acked)*10 < len(bare.acked)*9 { // what chance makes of it
			t.Errorf("%s: fewer writes acknowledged than with database/sql alone", table)
		}
	}
}

func same(ctx context.Context) context.Context { return ctx }

// restart ends the server under the load of writers, and starts it again. It returns when
// the server answered again.
func restart(t *testing.T, s *postgres, writers map[string]*writer) (up time.Time) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	var all sync.WaitGroup
	for _, w := range writers {
		all.Go(func() { w.run(ctx, 10) })
	}
	pause(t, 300*time.Millisecond)
	s.stop(syscall.SIGQUIT)
	pause(t, 500*time.Millisecond)
	if err := s.run(); err != nil {
		t.Fatal(err)
	}
	up = time.Now()
	for _, w := range writers {
		w.since.Store(&up)
	}
	pause(t, again)
	cancel()
	all.Wait()
	return up
}

// check compares the table with what was acknowledged.
func check(t *testing.T, db *sql.DB, table string, acked map[int64]bool) {
	t.Helper()
	rows, err := db.QueryContext(context.WithoutCancel(t.Context()), "SELECT id, count(*) FROM "+table+" GROUP BY id")
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()
	found := make(map[int64]bool)
	for rows.Next() {
		var id, n int64
		if err := rows.Scan(&id, &n); err != nil {
			t.Fatal(err)
		}
		found[id] = true
		if n != 1 {
			t.Errorf("%s: write %d was made %d times", table, id, n)
		}
	}
	if err := rows.Err(); err != nil {
		t.Fatal(err)
	}
	for id := range acked {
		if !found[id] {
			t.Errorf("%s: write %d was acknowledged and is lost", table, id)
		}
	}
}

// pause waits while other goroutines work.
func pause(t *testing.T, d time.Duration) {
	t.Helper()
	select {
	case <-t.Context().Done():
	case <-time.After(d):
	}
}
