package sqltest

import (
	"errors"
	"fmt"
	"testing"

	"github.com/go-sql-driver/mysql"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/stdlib"

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

// A server that has no connections left rejects more, which is overload, and nothing was
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
