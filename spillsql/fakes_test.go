package spillsql

import (
	"context"
	"database/sql/driver"
	"errors"
	"fmt"
	"io"
	"reflect"
)

// A fake is a database that writes down what it is asked. It picks the methods that its
// connections, statements and rows have.
type fake struct {
	conn, stmt, rows int // indexes into connFakes, stmtFakes, rowsFakes
	fail             map[string]error
	panics           string // the method that panics
	trace            []string
}

func (f *fake) note(method string, details ...any) error {
	f.trace = append(f.trace, fmt.Sprint(append([]any{method, " "}, details...)...))
	if f.panics == method {
		panic("driver")
	}
	if err, ok := f.fail[method]; ok {
		delete(f.fail, method)
		return err
	}
	return nil
}

func (f *fake) Connect(context.Context) (driver.Conn, error) {
	if err := f.note("connect"); err != nil {
		return nil, err
	}
	return connFakes(&fakeConn{f})[f.conn], nil
}

func (f *fake) Driver() driver.Driver { return nil }

func (f *fake) result() (driver.Result, error) { return driver.RowsAffected(7), nil }

func (f *fake) query() (driver.Rows, error) {
	return rowsFakes(&fakeRows{fake: f, left: 2})[f.rows], nil
}

// fakeConn has the methods that every connection has.
type fakeConn struct{ *fake }

func (c *fakeConn) Close() error { return c.note("conn.Close") }

func (c *fakeConn) Prepare(query string) (driver.Stmt, error) {
	if err := c.note("conn.Prepare", query); err != nil {
		return nil, err
	}
	return stmtFakes(&fakeStmt{c.fake})[c.stmt], nil
}

func (c *fakeConn) Begin() (driver.Tx, error) {
	if err := c.note("conn.Begin"); err != nil {
		return nil, err
	}
	return fakeTx{c.fake}, nil
}

type execCtx struct{ f *fake }

func (e execCtx) ExecContext(_ context.Context, query string, args []driver.NamedValue) (driver.Result, error) {
	if err := e.f.note("conn.ExecContext", query, args); err != nil {
		return nil, err
	}
	return e.f.result()
}

type execOld struct{ f *fake }

func (e execOld) Exec(query string, args []driver.Value) (driver.Result, error) {
	if err := e.f.note("conn.Exec", query, args); err != nil {
		return nil, err
	}
	return e.f.result()
}

type queryCtx struct{ f *fake }

func (q queryCtx) QueryContext(_ context.Context, query string, args []driver.NamedValue) (driver.Rows, error) {
	if err := q.f.note("conn.QueryContext", query, args); err != nil {
		return nil, err
	}
	return q.f.query()
}

type queryOld struct{ f *fake }

func (q queryOld) Query(query string, args []driver.Value) (driver.Rows, error) {
	if err := q.f.note("conn.Query", query, args); err != nil {
		return nil, err
	}
	return q.f.query()
}

type checker struct{ f *fake }

// CheckNamedValue takes point and leaves the rest to others.
func (c checker) CheckNamedValue(v *driver.NamedValue) error {
	if err := c.f.note("CheckNamedValue", v.Ordinal, v.Name); err != nil {
		return err
	}
	if p, ok := v.Value.(point); ok {
		v.Value = fmt.Sprint("checked ", p.x)
		return nil
	}
	return driver.ErrSkip
}

type prepareCtx struct{ f *fake }

func (p prepareCtx) PrepareContext(_ context.Context, query string) (driver.Stmt, error) {
	if err := p.f.note("conn.PrepareContext", query); err != nil {
		return nil, err
	}
	return stmtFakes(&fakeStmt{p.f})[p.f.stmt], nil
}

type beginCtx struct{ f *fake }

func (b beginCtx) BeginTx(_ context.Context, o driver.TxOptions) (driver.Tx, error) {
	if err := b.f.note("conn.BeginTx", o); err != nil {
		return nil, err
	}
	return fakeTx{b.f}, nil
}

type resetter struct{ f *fake }

func (r resetter) ResetSession(context.Context) error { return r.f.note("conn.ResetSession") }

type validator struct{ f *fake }

func (v validator) IsValid() bool { return v.f.note("conn.IsValid") == nil }

type pinger struct{ f *fake }

func (p pinger) Ping(context.Context) error { return p.f.note("conn.Ping") }

type fakeTx struct{ *fake }

func (t fakeTx) Commit() error   { return t.note("tx.Commit") }
func (t fakeTx) Rollback() error { return t.note("tx.Rollback") }

// fakeStmt has the methods that every statement has.
type fakeStmt struct{ *fake }

func (s *fakeStmt) Close() error  { return s.note("stmt.Close") }
func (s *fakeStmt) NumInput() int { return -1 }

func (s *fakeStmt) Exec(args []driver.Value) (driver.Result, error) {
	if err := s.note("stmt.Exec", args); err != nil {
		return nil, err
	}
	return s.result()
}

func (s *fakeStmt) Query(args []driver.Value) (driver.Rows, error) {
	if err := s.note("stmt.Query", args); err != nil {
		return nil, err
	}
	return s.query()
}

type stmtExec struct{ f *fake }

func (s stmtExec) ExecContext(_ context.Context, args []driver.NamedValue) (driver.Result, error) {
	if err := s.f.note("stmt.ExecContext", args); err != nil {
		return nil, err
	}
	return s.f.result()
}

type stmtQuery struct{ f *fake }

func (s stmtQuery) QueryContext(_ context.Context, args []driver.NamedValue) (driver.Rows, error) {
	if err := s.f.note("stmt.QueryContext", args); err != nil {
		return nil, err
	}
	return s.f.query()
}

type converter struct{ f *fake }

// ColumnConverter returns a converter that takes everything.
func (c converter) ColumnConverter(int) driver.ValueConverter { return c }

func (c converter) ConvertValue(v any) (driver.Value, error) {
	return fmt.Sprint("converted ", v), c.f.note("ConvertValue")
}

// fakeRows has the methods that all rows have.
type fakeRows struct {
	*fake
	left int
}

func (r *fakeRows) Columns() []string { return []string{"a", "b"} }
func (r *fakeRows) Close() error      { return r.note("rows.Close") }

func (r *fakeRows) Next(dest []driver.Value) error {
	if err := r.note("rows.Next"); err != nil {
		return err
	}
	if r.left == 0 {
		return io.EOF
	}
	r.left--
	dest[0], dest[1] = int64(r.left), "b"
	return nil
}

type moreSets struct{ f *fake }

func (m moreSets) HasNextResultSet() bool { return m.f.note("rows.HasNextResultSet") == nil }

// NextResultSet returns an error, as it knows not that there was one before.
func (m moreSets) NextResultSet() error {
	_ = m.f.note("rows.NextResultSet")
	return errors.New("no more rows")
}

type scanType struct{ f *fake }

func (s scanType) ColumnTypeScanType(int) reflect.Type { return reflect.TypeFor[string]() }

type typeName struct{ f *fake }

func (t typeName) ColumnTypeDatabaseTypeName(int) string { return "NAME" }

type typeLength struct{ f *fake }

func (t typeLength) ColumnTypeLength(int) (int64, bool) { return 9, true }

type nullable struct{ f *fake }

func (n nullable) ColumnTypeNullable(int) (nullable, ok bool) { return true, true }

type precision struct{ f *fake }

func (p precision) ColumnTypePrecisionScale(int) (precision, scale int64, ok bool) { return 5, 3, true }

// A point is an argument that database/sql knows no conversion for.
type point struct{ x int }
