package spillsql

import (
	"context"
	"database/sql"
	"errors"
	"slices"
	"testing"
	"testing/synctest"
)

// The context of a transaction ends, and its ROLLBACK fails. With a driver that cannot reset its
// connections, database/sql closes this one, as the transaction may still be open there. The driver
// must see the same calls behind a Connector.
func TestTransactionLeft(t *testing.T) {
	for i := range connFakes(&fakeConn{}) {
		synctest.Test(t, func(t *testing.T) {
			plain := fake{conn: i, fail: map[string]error{"tx.Rollback": errFake}}
			behind := fake{conn: i, fail: map[string]error{"tx.Rollback": errFake}}
			db, err := OpenDB(&behind, Config{})
			if err != nil {
				t.Fatal(err)
			}
			for _, db := range []*sql.DB{sql.OpenDB(&plain), db} {
				ctx, cancel := context.WithCancel(t.Context())
				_, err := db.BeginTx(ctx, nil)
				cancel()
				synctest.Wait() // database/sql rolls back
				_, err2 := db.ExecContext(t.Context(), "of another caller")
				if err := errors.Join(err, err2, db.Close()); err != nil {
					t.Error(err)
				}
			}
			if !slices.Equal(plain.trace, behind.trace) {
				t.Errorf("conn %d: the driver got\n%q, without a Connector\n%q", i, behind.trace, plain.trace)
			}
		})
	}
}
