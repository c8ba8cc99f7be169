package spillsql

//lint:file-ignore SA1019 drivers have these methods still

import (
	"context"
	"database/sql/driver"
	"errors"
	"io"
	"net"

	"github.com/seed90641741/spillway/fault"
)

// A conn is a connection as database/sql sees it. It has every method that database/sql
// looks for. Where the driver lacks it, the method does what database/sql would do without
// it. That is possible for all but the methods that skip the preparation of a
// statement, which decide how arguments are checked: see wrap.
//
// database/sql calls it from one goroutine at a time.
type conn struct {
	*physical // nil after it has changed hands, or was closed
	gate      *gate
	pool      *pool
	prepares  map[*stmt]struct{} // what is prepared on it
	tx        *tx                // under way, or nil
	hollow    bool               // database/sql keeps this conn, but the connection has changed hands
	unclean   bool               // a transaction may be open on it still
}

var (
	_ driver.ConnPrepareContext = (*conn)(nil)
	_ driver.ConnBeginTx        = (*conn)(nil)
	_ driver.NamedValueChecker  = (*conn)(nil)
	_ driver.SessionResetter    = (*conn)(nil)
	_ driver.Validator          = (*conn)(nil)
	_ driver.Pinger             = (*conn)(nil)
)

// wrap returns p as database/sql is to see it.
func (c *Connector) wrap(p *physical) driver.Conn {
	own := &conn{physical: p, gate: c.gate, pool: c.pool}
	execs, queries := executes(p.Conn), asks(p.Conn)
	switch {
	case execs && queries:
		return fullConn{own, execer{own}, queryer{own}}
	case execs:
		return execConn{own, execer{own}}
	case queries:
		return queryConn{own, queryer{own}}
	default:
		return own
	}
}

type (
	execConn struct {
		*conn
		execer
	}
	queryConn struct {
		*conn
		queryer
	}
	fullConn struct {
		*conn
		execer
		queryer
	}
)

// Unwrap returns the connection of the driver, given that which [database/sql.Conn.Raw]
// passes on. What is done with it passes no policy. Do not keep it. A value that is not of
// this package is returned as it is.
func Unwrap(driverConn any) any {
	if c, ok := driverConn.(interface{ unwrap() driver.Conn }); ok {
		return c.unwrap()
	}
	return driverConn
}

func (c *conn) unwrap() driver.Conn { return c.Conn }

// Close implements [driver.Conn].
func (c *conn) Close() error {
	if c.tx != nil { // database/sql ends transactions first
		c.tx.abandon()
	}
	return c.pool.discard(c)
}

// ResetSession implements [driver.SessionResetter]. database/sql calls it before it uses
// an idle connection again.
func (c *conn) ResetSession(ctx context.Context) error {
	if !c.pool.take(c) {
		return driver.ErrBadConn
	}
	if r, ok := c.Conn.(driver.SessionResetter); ok {
		return r.ResetSession(ctx)
	}
	return nil
}

// IsValid implements [driver.Validator]. database/sql calls it when it gets the connection
// back.
func (c *conn) IsValid() bool { return c.works() && c.pool.put(c) }

// works reports whether the driver calls the connection valid, and another caller may have it.
func (c *conn) works() bool {
	if c.unclean {
		return false
	}
	v, ok := c.Conn.(driver.Validator)
	return !ok || v.IsValid()
}

// cleans reports whether the driver resets connections before their next use and says whether it could. If
// not, database/sql closes the connection of a transaction whose context has ended. Here it cannot tell, as
// a conn has both methods.
func cleans(c driver.Conn) bool {
	_, resets := c.(driver.SessionResetter)
	_, validates := c.(driver.Validator)
	return resets && validates
}

// CheckNamedValue implements [driver.NamedValueChecker].
func (c *conn) CheckNamedValue(v *driver.NamedValue) error {
	if checker, ok := c.Conn.(driver.NamedValueChecker); ok {
		return checker.CheckNamedValue(v)
	}
	return driver.ErrSkip
}

// Ping implements [driver.Pinger].
func (c *conn) Ping(ctx context.Context) error {
	p, ok := c.Conn.(driver.Pinger)
	if !ok {
		return nil
	}
	return c.do(ctx, "ping", "", true, p.Ping)
}

// do makes a call with the policies, or without them inside a transaction, which has
// passed them.
func (c *conn) do(ctx context.Context, key, text string, repeatable bool, send func(context.Context) error) error {
	if c.tx != nil {
		return c.tx.note(ctx, send(ctx))
	}
	return c.gate.do(ctx, c.operation(key, text, repeatable, send))
}

// operation returns the call of a statement on c outside transactions. text is that of the
// statement, and repeatable says that it changes nothing.
func (c *conn) operation(key, text string, repeatable bool, send func(context.Context) error) *operation {
	return &operation{key: key, text: text, send: send, conn: c, repeatable: repeatable}
}

// attempt sends the statement, unless its connection has broken.
func (o *operation) attempt(ctx context.Context) error {
	if o.conn != nil && (o.broken || o.failed != nil && !o.conn.works()) {
		return &elsewhere{o.failed}
	}
	return o.send(ctx)
}

// meaning returns what an error of an attempt means, given f as far as the error tells it.
func (o *operation) meaning(err error, f fault.Failure) fault.Failure {
	if o.conn == nil {
		return o.describe(err, f)
	}
	o.failed, o.broken = err, breaks(err)
	if o.repeatable && o.broken && f.Safety == fault.RetryUnknown {
		f.Safety = fault.RetrySafe
	}
	return f
}

// elsewhere has database/sql send a statement on another connection, which may be done and
// is paid for, as this one is broken. Where database/sql has done that too often, its
// caller gets the error that broke the connection.
type elsewhere struct{ error }

func (e *elsewhere) Is(target error) bool { return target == driver.ErrBadConn }
func (e *elsewhere) Unwrap() error        { return e.error }

// breaks reports whether err certainly ends the connection.
func breaks(err error) bool {
	if v := answer(err); v.answered {
		return v.fatal
	}
	return network(err)
}

// network reports whether err is one of the network and not of the driver or the database.
func network(err error) bool {
	_, ok := errors.AsType[net.Error](err)
	return ok || errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF)
}

// execer is the ExecContext of connections whose driver has one.
type execer struct{ c *conn }

func executes(c driver.Conn) bool {
	_, with := c.(driver.ExecerContext)
	_, without := c.(oldExecer)
	return with || without
}

// ExecContext implements [driver.ExecerContext].
func (e execer) ExecContext(ctx context.Context, query string, args []driver.NamedValue) (result driver.Result, err error) {
	err = e.c.do(ctx, "exec", query, false, func(ctx context.Context) (err error) {
		result, err = execute(ctx, e.c.Conn, query, args)
		return err
	})
	return result, err
}

func execute(ctx context.Context, c driver.Conn, query string, args []driver.NamedValue) (driver.Result, error) {
	if with, ok := c.(driver.ExecerContext); ok {
		return with.ExecContext(ctx, query, args)
	}
	values, err := unnamed(ctx, args)
	if err != nil {
		return nil, err
	}
	return c.(oldExecer).Exec(query, values) //nolint:forcetypeassert // it has one
}

// queryer is the QueryContext of connections whose driver has one.
type queryer struct{ c *conn }

func asks(c driver.Conn) bool {
	_, with := c.(driver.QueryerContext)
	_, without := c.(oldQueryer)
	return with || without
}

// QueryContext implements [driver.QueryerContext].
func (q queryer) QueryContext(ctx context.Context, query string, args []driver.NamedValue) (driver.Rows, error) {
	return q.c.query(ctx, query, func(ctx context.Context) (driver.Rows, error) { return ask(ctx, q.c.Conn, query, args) })
}

func ask(ctx context.Context, c driver.Conn, query string, args []driver.NamedValue) (driver.Rows, error) {
	if with, ok := c.(driver.QueryerContext); ok {
		return with.QueryContext(ctx, query, args)
	}
	values, err := unnamed(ctx, args)
	if err != nil {
		return nil, err
	}
	return c.(oldQueryer).Query(query, values) //nolint:forcetypeassert // it has one
}

// query makes a call that returns rows. They keep the place in flight until the first one
// has arrived.
func (c *conn) query(ctx context.Context, text string, send func(context.Context) (driver.Rows, error)) (driver.Rows, error) {
	wrapped := new(rows)
	keep := func(ctx context.Context) (err error) {
		wrapped.Rows, err = send(ctx)
		return err
	}
	if c.tx != nil {
		if err := c.tx.note(ctx, keep(ctx)); err != nil {
			return nil, err
		}
		return wrapped, nil
	}
	if err := c.gate.hold(ctx, c.operation("query", text, false, keep), &wrapped.place); err != nil {
		return nil, err
	}
	return wrapped, nil
}

// unnamed returns args for the methods of drivers that know no context and no names, with
// the errors of database/sql.
func unnamed(ctx context.Context, args []driver.NamedValue) ([]driver.Value, error) {
	values := make([]driver.Value, len(args))
	for i, arg := range args {
		if arg.Name != "" {
			return nil, errors.New("sql: driver does not support the use of Named Parameters")
		}
		values[i] = arg.Value
	}
	return values, ctx.Err()
}
