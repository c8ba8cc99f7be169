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

// A writer inserts rows, each with a number of its own, and keeps which were acknowledged.
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

// again reports whether w has written after the restart.
func (w *writer) again() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return !w.back.IsZero()
}

// TestRestart ends the server while callers write, and starts it again. No write that was
// acknowledged is lost, none is made twice, and callers write again soon: compared with
// database/sql alone, at the same time, about a second later.
func TestRestart(t *testing.T) {
	if testing.Short() {
		t.Skip("takes seconds")
	}
	s := start(t)
	plain := s.plain(t, 5)
	for _, table := range []string{"once", "repeated", "plain"} {
		if _, err := plain.ExecContext(t.Context(), "DROP TABLE IF EXISTS "+table+"; CREATE TABLE "+table+" (id bigint)"); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := plain.ExecContext(t.Context(), "CREATE UNIQUE INDEX one ON repeated (id)"); err != nil {
		t.Fatal(err)
	}
	same := func(ctx context.Context) context.Context { return ctx }
	writers := map[string]*writer{
		"once":     {db: s.behind(t, spillsql.Config{MaxConns: 5}), insert: "INSERT INTO once VALUES ($1)", wrap: same},
		"repeated": {db: s.behind(t, spillsql.Config{MaxConns: 5}), insert: "INSERT INTO repeated VALUES ($1) ON CONFLICT DO NOTHING", wrap: spillsql.Idempotent},
		"plain":    {db: plain, insert: "INSERT INTO plain VALUES ($1)", wrap: same},
	}
	ctx, cancel := context.WithCancel(t.Context())
	var all sync.WaitGroup
	for _, w := range writers {
		w.acked = make(map[int64]bool)
		all.Go(func() { w.run(ctx, 10) })
	}
	pause(t, 300*time.Millisecond)
	s.stop(syscall.SIGQUIT)
	pause(t, 500*time.Millisecond)
	if err := s.run(); err != nil {
		t.Fatal(err)
	}
	up := time.Now()
	for _, w := range writers {
		w.since.Store(&up)
	}
	for range 100 { // 10 s
		pause(t, 100*time.Millisecond)
		if writers["once"].again() && writers["repeated"].again() && writers["plain"].again() {
			break
		}
	}
	cancel()
	all.Wait()
	for table, w := range writers {
		check(t, plain, table, w.acked)
		if w.back.IsZero() {
			t.Fatalf("%s: no write after the restart", table)
		}
		t.Logf("%s: %d of %d writes acknowledged; the first one %v after the restart", table, len(w.acked), w.next.Load(), w.back.Sub(up))
		if late := w.back.Sub(writers["plain"].back); late > 2*time.Second {
			t.Errorf("%s: writes %v later than database/sql alone", table, late)
		}
	}
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
