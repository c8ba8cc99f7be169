//go:build thorough

package sqltest

import (
	"database/sql"
	"errors"
	"path/filepath"
	"testing"

	_ "modernc.org/sqlite"

	"github.com/seed90641741/spillway/spillsql"
)

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
