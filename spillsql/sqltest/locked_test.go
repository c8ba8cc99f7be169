package sqltest

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/seed90641741/spillway"
	"github.com/seed90641741/spillway/spillsql"
)

// A table that is locked holds up its own statements until their deadlines. The throttle
// rejects none of the others.
func TestLockedTable(t *testing.T) {
	if testing.Short() {
		t.Skip("takes seconds")
	}
	s := start(t)
	plain, db := s.plain(t, 1), s.behind(t, spillsql.Config{})
	if _, err := plain.ExecContext(t.Context(), "DROP TABLE IF EXISTS locked, free; CREATE TABLE locked (id bigint); CREATE TABLE free (id bigint)"); err != nil {
		t.Fatal(err)
	}
	tx, err := plain.BeginTx(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = tx.Rollback() }()
	if _, err := tx.ExecContext(t.Context(), "LOCK TABLE locked"); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
	defer cancel()
	var late, served, rejected atomic.Int64
	call := func(insert string, patience time.Duration) {
		for id := 0; ctx.Err() == nil; id++ {
			limited, cancel := context.WithTimeout(ctx, patience)
			_, err := db.ExecContext(limited, insert, id)
			cancel()
			switch {
			case insert == "INSERT INTO locked VALUES ($1)":
				late.Add(1)
				pause(t, time.Millisecond)
			case errors.Is(err, spillway.ErrRejected):
				rejected.Add(1)
			case err == nil:
				served.Add(1)
			}
		}
	}
	var all sync.WaitGroup
	for range 12 {
		all.Go(func() { call("INSERT INTO locked VALUES ($1)", 50*time.Millisecond) })
	}
	for range 2 {
		all.Go(func() { call("INSERT INTO free VALUES ($1)", time.Minute) })
	}
	all.Wait()
	t.Logf("%d statements for the locked table; of the others %d served, %d rejected", late.Load(), served.Load(), rejected.Load())
	if late.Load() < 100 || served.Load() == 0 || rejected.Load() > 0 {
		t.Error("statements for another table are rejected, or nothing was tested")
	}
}
