package spillsql

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"testing"
)

// A nullDriver has connections that answer at once.
type nullDriver struct{}

func (nullDriver) Connect(context.Context) (driver.Conn, error) { return nullDriver{}, nil }
func (nullDriver) Driver() driver.Driver                        { return nil }
func (nullDriver) Prepare(string) (driver.Stmt, error)          { return nil, driver.ErrSkip }
func (nullDriver) Begin() (driver.Tx, error)                    { return nil, driver.ErrSkip }
func (nullDriver) Close() error                                 { return nil }
func (nullDriver) ExecContext(context.Context, string, []driver.NamedValue) (driver.Result, error) {
	return driver.RowsAffected(1), nil
}

// BenchmarkExec is the cost of a statement, and what this package adds to it.
func BenchmarkExec(b *testing.B) {
	own, err := OpenDB(nullDriver{}, Config{})
	if err != nil {
		b.Fatal(err)
	}
	defer own.Close()
	bare := sql.OpenDB(nullDriver{})
	defer bare.Close()
	for name, db := range map[string]*sql.DB{"bare": bare, "protected": own} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if _, err := db.ExecContext(b.Context(), "UPDATE t SET x = 1"); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
