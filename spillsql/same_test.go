package spillsql

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"maps"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seed90641741/spillway/retry"
)

// TestSame runs a script on a database with each set of optional methods, once through a
// Connector and once without. The driver must see the same calls, and the caller the same
// results.
func TestSame(t *testing.T) {
	conns, stmts, rows := len(connFakes(&fakeConn{})), len(stmtFakes(&fakeStmt{})), len(rowsFakes(&fakeRows{}))
	if conns != 46 || stmts != 16 || rows != 8 {
		t.Fatalf("%d connections, %d statements, %d rows", conns, stmts, rows)
	}
	var fakes []fake
	for c := range conns {
		for s := range stmts {
			fakes = append(fakes, fake{conn: c, stmt: s, rows: rows - 1})
		}
	}
	for r := range rows {
		fakes = append(fakes, fake{rows: r}, fake{conn: conns - 1, rows: r})
	}
	for _, f := range fakes {
		for i, fail := range []map[string]error{
			nil,
			{"conn.ExecContext": driver.ErrSkip, "conn.Exec": driver.ErrSkip, "conn.QueryContext": driver.ErrSkip, "conn.Query": driver.ErrSkip},
			{"conn.ExecContext": driver.ErrBadConn, "stmt.Query": driver.ErrBadConn, "conn.Begin": driver.ErrBadConn, "conn.ResetSession": driver.ErrBadConn},
			{"conn.QueryContext": errFake, "stmt.ExecContext": errFake, "conn.BeginTx": errFake, "rows.Next": errFake, "conn.IsValid": errFake, "CheckNamedValue": errFake},
			{"conn.Ping": errFake, "conn.PrepareContext": errFake, "tx.Commit": errFake, "conn.ResetSession": errFake, "stmt.Close": errFake, "connect": errFake},
		} {
			if i == 0 || !testing.Short() {
				same(t, f, fail)
			}
			if t.Failed() {
				return
			}
		}
	}
}

var errFake = errors.New("fake")

func same(t *testing.T, f fake, fail map[string]error) {
	t.Helper()
	plain, behind := f, f
	plain.fail, behind.fail = copied(fail), copied(fail)
	want := script(sql.OpenDB(&plain))
	once, err := retry.NewBudgeted(retry.BudgetedConfig{MaxAttempts: 1})
	if err != nil {
		t.Fatal(err)
	}
	db, err := OpenDB(&behind, Config{Retry: once})
	if err != nil {
		t.Fatal(err)
	}
	db.SetMaxIdleConns(2) // as without
	got := script(db)
	if !slices.Equal(got, want) || !slices.Equal(behind.trace, plain.trace) {
		t.Errorf("conn %d, stmt %d, rows %d, failing %v:\ngot  %q\nwant %q\ndriver got  %q\ndriver want %q",
			f.conn, f.stmt, f.rows, fail, got, want, behind.trace, plain.trace)
	}
}

func copied(m map[string]error) map[string]error {
	c := make(map[string]error)
	maps.Copy(c, m)
	return c
}

// script uses everything that database/sql has, and returns what it answers.
func script(db *sql.DB) (said []string) {
	ctx := context.Background()
	say := func(what string, values ...any) { said = append(said, fmt.Sprintln(append([]any{what}, values...)...)) }
	said = append(said, scriptStatements(ctx, db, "db")...)
	say("ping", db.PingContext(ctx))
	left, cancel := context.WithCancel(ctx)
	cancel()
	_, err := db.ExecContext(left, "left")
	say("left", err)

	prepared, err := db.PrepareContext(ctx, "prepared")
	say("prepare", err)
	if err == nil {
		r, err := prepared.ExecContext(ctx, 1, point{2})
		say("stmt exec", resultOf(r), err)
		r, err = prepared.ExecContext(ctx, sql.Named("name", 3))
		say("stmt exec named", resultOf(r), err)
		rows, err := prepared.QueryContext(ctx, 4)
		say("stmt query", rowsOf(rows), err)
		say("stmt close", prepared.Close())
	}
	for _, o := range []*sql.TxOptions{nil, {Isolation: sql.LevelSerializable}, {ReadOnly: true}} {
		tx, err := db.BeginTx(ctx, o)
		say("begin", err)
		if err != nil {
			continue
		}
		said = append(said, scriptStatements(ctx, tx, "tx")...)
		if o == nil {
			say("commit", tx.Commit())
		} else {
			say("rollback", tx.Rollback())
		}
	}
	c, err := db.Conn(ctx)
	say("conn", err)
	if err == nil {
		said = append(said, scriptStatements(ctx, c, "conn")...)
		say("raw", c.Raw(func(c any) error { _, ok := Unwrap(c).(*conn); say("unwrapped", !ok); return nil }))
		say("conn close", c.Close())
	}
	say("open", db.Stats().OpenConnections, db.Stats().InUse)
	say("close", db.Close())
	return said
}

type statements interface {
	ExecContext(ctx context.Context, query string, args ...any) (sql.Result, error)
	QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error)
}

func scriptStatements(ctx context.Context, s statements, on string) (said []string) {
	for _, args := range [][]any{nil, {1}, {point{2}}, {sql.Named("name", 3)}} {
		r, err := s.ExecContext(ctx, "exec", args...)
		said = append(said, fmt.Sprintln(on, "exec", args, resultOf(r), err))
		rows, err := s.QueryContext(ctx, "query", args...)
		said = append(said, fmt.Sprintln(on, "query", args, rowsOf(rows), err))
	}
	return said
}

func resultOf(r sql.Result) string {
	if r == nil {
		return "none"
	}
	n, err := r.RowsAffected()
	id, err2 := r.LastInsertId()
	return fmt.Sprint(n, err, id, err2)
}

func rowsOf(r *sql.Rows) (said string) {
	if r == nil {
		return "none"
	}
	types, err := r.ColumnTypes()
	if err == nil {
		for _, c := range types {
			length, ok := c.Length()
			null, ok2 := c.Nullable()
			precision, scale, ok3 := c.DecimalSize()
			said += fmt.Sprint(c.Name(), c.ScanType(), c.DatabaseTypeName(), length, ok, null, ok2, precision, scale, ok3, "; ")
		}
	}
	for r.Next() {
		var a, b any
		said += fmt.Sprint(r.Scan(&a, &b), a, b)
	}
	said += fmt.Sprint(r.NextResultSet(), r.Err())
	return said + fmt.Sprint(r.Close())
}

// Arguments are the caller's again when a call has returned, also if its context has ended before: the driver does not use them any more,
// as with database/sql alone.
func TestArgumentsAreTheCallersAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := &worker{answer: func(query string) error {
			if query != "connect" {
				time.Sleep(time.Second) // whatever becomes of the context
			}
			return nil
		}}
		db, _ := open(t, w, Config{MaxConns: 1})
		for _, call := range []func(context.Context, any) error{
			func(ctx context.Context, arg any) error { _, err := db.ExecContext(ctx, "statement", arg); return err },
			func(ctx context.Context, arg any) error {
				rows, err := db.QueryContext(ctx, "query", arg)
				if err == nil {
					err = rows.Close()
				}
				return err
			},
		} {
			ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
			_ = call(ctx, []byte("argument"))
			w.mu.Lock()
			if w.running > 0 {
				t.Error("the driver still has the arguments")
			}
			w.mu.Unlock()
			cancel()
		}
	})
}
