package spillsql

import (
	"context"
	"database/sql"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seed90641741/spillway/retry"
)

// uses are what callers do with a database, up to a panic.
var uses = map[string]func(context.Context, *sql.DB) error{
	"exec": func(ctx context.Context, db *sql.DB) error {
		_, err := db.ExecContext(ctx, "exec", 1)
		return err
	},
	"query": func(ctx context.Context, db *sql.DB) error {
		rows, err := db.QueryContext(ctx, "query")
		if err != nil {
			return err
		}
		defer rows.Close()
		for rows.Next() {
		}
		return rows.Err()
	},
	"statement": func(ctx context.Context, db *sql.DB) error {
		prepared, err := db.PrepareContext(ctx, "prepared")
		if err != nil {
			return err
		}
		if _, err := prepared.ExecContext(ctx, 1); err != nil {
			return err
		}
		return prepared.Close()
	},
	"commit": func(ctx context.Context, db *sql.DB) error {
		tx, err := db.BeginTx(ctx, nil)
		if err != nil {
			return err
		}
		if _, err := tx.ExecContext(ctx, "exec"); err != nil {
			return err
		}
		return tx.Commit()
	},
	"rollback": func(ctx context.Context, db *sql.DB) error {
		tx, err := db.BeginTx(ctx, nil)
		if err != nil {
			return err
		}
		return tx.Rollback()
	},
	"ping": func(ctx context.Context, db *sql.DB) error { return db.PingContext(ctx) },
}

// A driver that panics in any of its methods does so for the caller who uses it, as with database/sql alone, and the database has as many
// connections as there. The next caller is served if it is served there.
func TestPanicsAreThoseOfDatabaseSQL(t *testing.T) {
	compared := 0
	for name, use := range uses {
		for _, method := range []string{
			"connect", "conn.ResetSession", "conn.IsValid", "CheckNamedValue", "conn.ExecContext", "conn.QueryContext", "conn.PrepareContext",
			"conn.BeginTx", "conn.Ping", "tx.Commit", "tx.Rollback", "stmt.ExecContext", "stmt.Close", "rows.Next", "rows.Close",
		} {
			bare, ours := panicked(t, method, use, alone), panicked(t, method, use, limited)
			if bare.value != nil {
				compared++
			}
			if ours.served = ours.served && bare.served; ours != bare {
				t.Errorf("%s, %s panics: %+v, with database/sql alone %+v", name, method, ours, bare)
			}
		}
	}
	if compared < 18 {
		t.Errorf("%d panics were compared: the test shows little", compared)
	}
}

// aftermath is what a caller sees of a panic, and after it.
type aftermath struct {
	value       any // recovered
	open, inUse int
	served      bool // the next caller
}

// panicked has a database used twice, the second time with a driver that panics in a method.
func panicked(t *testing.T, method string, use func(context.Context, *sql.DB) error, open func(*testing.T, *fake) *sql.DB) (a aftermath) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		f := &fake{conn: len(connFakes(&fakeConn{})) - 1, stmt: len(stmtFakes(&fakeStmt{})) - 1, rows: len(rowsFakes(&fakeRows{})) - 1}
		db := open(t, f)
		if method != "connect" { // which needs a new connection
			if err := use(ctx, db); err != nil {
				t.Fatal(err)
			}
		}
		f.panics = method
		func() {
			defer func() { a.value = recover() }()
			if err := use(ctx, db); err != nil {
				t.Fatal(err)
			}
		}()
		f.panics = ""
		s := db.Stats()
		a.open, a.inUse = s.OpenConnections, s.InUse
		next, end := context.WithTimeout(ctx, time.Second)
		defer end()
		_, err := db.ExecContext(next, "next")
		a.served = err == nil
		if err := db.Close(); err != nil {
			t.Error(err)
		}
	})
	return a
}

func alone(_ *testing.T, f *fake) *sql.DB {
	db := sql.OpenDB(f)
	db.SetMaxOpenConns(1)
	return db
}

func limited(t *testing.T, f *fake) *sql.DB {
	once, err := retry.NewBudgeted(retry.BudgetedConfig{MaxAttempts: 1})
	if err != nil {
		t.Fatal(err)
	}
	db, err := OpenDB(f, Config{Retry: once, MaxConns: 1})
	if err != nil {
		t.Fatal(err)
	}
	return db
}
