package spillsql

//lint:file-ignore SA1019 drivers have these methods still

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"

	"github.com/seed90641741/spillway/fault"
	"github.com/seed90641741/spillway/internal/calls"
)

// A tx is a transaction. It passes the policies as one call, which begins with BEGIN and
// ends with it: its statements are neither rejected, which would waste what was done before,
// nor repeated. The worst of their results is that of the call.
type tx struct {
	driver.Tx
	conn  *conn
	flow  calls.Flow
	ctx   context.Context //nolint:containedctx // of BeginTx, as COMMIT and ROLLBACK get none
	worst error
	means fault.Failure
}

// Begin implements [driver.Conn].
func (c *conn) Begin() (driver.Tx, error) {
	return c.BeginTx(context.Background(), driver.TxOptions{})
}

// BeginTx implements [driver.ConnBeginTx].
func (c *conn) BeginTx(ctx context.Context, options driver.TxOptions) (driver.Tx, error) {
	t := &tx{conn: c, ctx: ctx}
	err := c.gate.drive(ctx, &t.flow, c.operation("transaction", "", true, func(ctx context.Context) (err error) {
		t.Tx, err = begin(ctx, c.Conn, options)
		return err
	}))
	if err != nil {
		return nil, err
	}
	c.tx = t
	return t, nil
}

// begin begins a transaction, as database/sql does with drivers that know no context.
func begin(ctx context.Context, c driver.Conn, options driver.TxOptions) (driver.Tx, error) {
	if with, ok := c.(driver.ConnBeginTx); ok {
		return with.BeginTx(ctx, options)
	}
	if options.Isolation != driver.IsolationLevel(sql.LevelDefault) {
		return nil, errors.New("sql: driver does not support non-default isolation level")
	}
	if options.ReadOnly {
		return nil, errors.New("sql: driver does not support read-only transactions")
	}
	t, err := oldConn(c).Begin()
	if err == nil && ctx.Err() != nil {
		_ = t.Rollback() // the caller has left
		return nil, ctx.Err()
	}
	return t, err
}

// note takes in how a statement of t has ended, and returns err.
func (t *tx) note(ctx context.Context, err error) error {
	if success(err) || unsent(err) {
		return err
	}
	f := t.conn.gate.meaning(ctx, err)
	if t.worst == nil || f.Overload || f.Timeout {
		t.worst, t.means = err, f
	}
	return err
}

// Commit implements [driver.Tx].
func (t *tx) Commit() error {
	defer t.abandon() // if the driver, Classify or the Observer panics
	return t.end(t.note(t.ctx, t.Tx.Commit()))
}

// Rollback implements [driver.Tx]. database/sql calls it when the context has ended, whatever the
// connection does at that moment.
func (t *tx) Rollback() error {
	defer t.abandon() // if the driver, Classify or the Observer panics
	t.conn.unclean = t.ctx.Err() != nil && !cleans(t.conn.Conn)
	return t.end(t.Tx.Rollback())
}

// end ends the call and returns err. If the Observer panics, abandon does the rest.
func (t *tx) end(err error) error {
	g := t.conn.gate
	if t.worst == nil {
		t.flow.Succeed(g.now(&t.flow))
	} else {
		g.end(t.ctx, &t.flow, t.worst, t.means)
	}
	t.conn.tx = nil
	return err
}

// abandon ends the call of a transaction with an unknown result, if it is under way.
func (t *tx) abandon() {
	if t.conn.tx == t {
		t.conn.tx = nil
		t.flow.Abort()
	}
}
