package sqltest

import (
	"database/sql"
	"errors"
	"fmt"
	"path/filepath"
	"testing"

	"github.com/go-sql-driver/mysql"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/stdlib"
	_ "modernc.org/sqlite"

	"github.com/seed90641741/spillway/fault"
	"github.com/seed90641741/spillway/spillsql"
)

func TestMySQLErrors(t *testing.T) {
	for number, want := range map[uint16]fault.Failure{
		1040: {Overload: true, Unprocessed: true, Party: fault.Server},
		1203: {Overload: true, Unprocessed: true, Party: fault.Server},
		1205: {Safety: fault.RetryUnsafe},
		1213: {Safety: fault.RetryUnsafe},
		1062: {Safety: fault.RetryUnsafe, Party: fault.Client}, // duplicate entry
	} {
		if got := spillsql.Classify(fmt.Errorf("wrapped: %w", &mysql.MySQLError{Number: number})); got != want {
			t.Errorf("%d: %+v", number, got)
		}
	}
}

// A table that another connection has locked is busy: the statement was not executed, and
// is repeated until the other one is done or the attempts are used up.
func TestSQLiteBusy(t *testing.T) {
	path := filepath.Join(t.TempDir(), "db")
	db, err := spillsql.Open("sqlite", path, spillsql.Config{})
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	other, err := sql.Open("sqlite", path)
	if err != nil {
		t.Fatal(err)
	}
	defer other.Close()
	if _, err := db.ExecContext(t.Context(), "CREATE TABLE t (id INTEGER)"); err != nil {
		t.Fatal(err)
	}
	c, err := other.Conn(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if _, err := c.ExecContext(t.Context(), "BEGIN EXCLUSIVE"); err != nil {
		t.Fatal(err)
	}
	_, err = db.ExecContext(t.Context(), "INSERT INTO t VALUES (1)")
	if f := spillsql.Classify(err); err == nil || !f.Overload || !f.Unprocessed {
		t.Errorf("busy: %v: %+v", err, f)
	}
	if _, err := c.ExecContext(t.Context(), "COMMIT"); err != nil {
		t.Fatal(err)
	}
	r, err := db.ExecContext(t.Context(), "INSERT INTO t VALUES (2)")
	if err != nil {
		t.Fatal(err)
	}
	if id, err := r.LastInsertId(); err != nil || id != 1 {
		t.Errorf("the row has the id %d: %v", id, err)
	}
	if err := db.QueryRowContext(t.Context(), "SELECT id FROM t WHERE id = 3").Scan(new(int)); !errors.Is(err, sql.ErrNoRows) {
		t.Error(err)
	}
}

// What pgx does beyond database/sql works as without spillsql.
func TestPgx(t *testing.T) {
	s := start(t)
	db := s.behind(t, spillsql.Config{})
	var list []string
	if err := db.QueryRowContext(t.Context(), "SELECT count(*) > 0 FROM unnest($1::int[])", []int{1, 2}).Scan(new(bool)); err != nil {
		t.Error("an array as an argument:", err)
	}
	c, err := db.Conn(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	err = c.Raw(func(c any) error {
		own, ok := spillsql.Unwrap(c).(*stdlib.Conn)
		if !ok {
			return fmt.Errorf("the connection is a %T", spillsql.Unwrap(c))
		}
		return own.Conn().QueryRow(t.Context(), "SELECT ARRAY['a', 'b']").Scan(&list)
	})
	if err != nil || len(list) != 2 {
		t.Error("the connection of pgx:", list, err)
	}
	_, err = db.ExecContext(t.Context(), "SELECT 1/0")
	if answer, ok := errors.AsType[*pgconn.PgError](err); !ok || answer.Code != "22012" {
		t.Error("the error of pgx:", err)
	}
	if _, err := db.ExecContext(t.Context(), "SET statement_timeout = 10; SELECT pg_sleep(1)"); !spillsql.Classify(err).Timeout {
		t.Error("statement_timeout:", err)
	}
}

// A server that has no connections left refuses more, which is overload, and nothing was
// executed.
func TestTooManyClients(t *testing.T) {
	s := start(t)
	for _, do := range []string{"DROP ROLE IF EXISTS few", "CREATE ROLE few LOGIN CONNECTION LIMIT 1"} {
		if _, err := s.plain(t, 1).ExecContext(t.Context(), do); err != nil {
			t.Fatal(err)
		}
	}
	db, err := spillsql.Open("pgx", "host="+s.dir+" user=few dbname=postgres", spillsql.Config{})
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	first, err := db.Conn(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer first.Close()
	_, err = db.Conn(t.Context())
	if f := spillsql.Classify(err); err == nil || !f.Overload || !f.Unprocessed {
		t.Errorf("%v: %+v", err, f)
	}
}
