package spillsql

import (
	"database/sql/driver"
	"io"
	"reflect"

	"github.com/seed90641741/spillway/inflight"
)

// rows are the rows of a query as database/sql sees them. They have the methods that
// database/sql looks for; where the driver lacks it, the method returns what database/sql
// assumes without it.
//
// The place in flight is given back when the first row, or the end, has arrived, or the context has ended: until then
// the database works. After that it also waits for the caller to read.
// A caller that keeps rows open holds a connection, and [Config.MaxConns] bounds those.
type rows struct {
	driver.Rows
	place inflight.Hold
}

var (
	_ driver.RowsNextResultSet              = (*rows)(nil)
	_ driver.RowsColumnTypeScanType         = (*rows)(nil)
	_ driver.RowsColumnTypeDatabaseTypeName = (*rows)(nil)
	_ driver.RowsColumnTypeLength           = (*rows)(nil)
	_ driver.RowsColumnTypeNullable         = (*rows)(nil)
	_ driver.RowsColumnTypePrecisionScale   = (*rows)(nil)
)

func (r *rows) release() { r.place.End() }

// Next implements [driver.Rows].
func (r *rows) Next(dest []driver.Value) error {
	defer r.release()
	return r.Rows.Next(dest)
}

// Close implements [driver.Rows].
func (r *rows) Close() error {
	defer r.release()
	return r.Rows.Close()
}

// HasNextResultSet implements [driver.RowsNextResultSet].
func (r *rows) HasNextResultSet() bool {
	more, ok := r.Rows.(driver.RowsNextResultSet)
	return ok && more.HasNextResultSet()
}

// NextResultSet implements [driver.RowsNextResultSet].
func (r *rows) NextResultSet() error {
	if more, ok := r.Rows.(driver.RowsNextResultSet); ok {
		return more.NextResultSet()
	}
	return io.EOF
}

// ColumnTypeScanType implements [driver.RowsColumnTypeScanType].
func (r *rows) ColumnTypeScanType(i int) reflect.Type {
	if t, ok := r.Rows.(driver.RowsColumnTypeScanType); ok {
		return t.ColumnTypeScanType(i)
	}
	return reflect.TypeFor[any]()
}

// ColumnTypeDatabaseTypeName implements [driver.RowsColumnTypeDatabaseTypeName].
func (r *rows) ColumnTypeDatabaseTypeName(i int) string {
	if t, ok := r.Rows.(driver.RowsColumnTypeDatabaseTypeName); ok {
		return t.ColumnTypeDatabaseTypeName(i)
	}
	return ""
}

// ColumnTypeLength implements [driver.RowsColumnTypeLength].
func (r *rows) ColumnTypeLength(i int) (length int64, ok bool) {
	if t, is := r.Rows.(driver.RowsColumnTypeLength); is {
		return t.ColumnTypeLength(i)
	}
	return 0, false
}

// ColumnTypeNullable implements [driver.RowsColumnTypeNullable].
func (r *rows) ColumnTypeNullable(i int) (nullable, ok bool) {
	if t, is := r.Rows.(driver.RowsColumnTypeNullable); is {
		return t.ColumnTypeNullable(i)
	}
	return false, false
}

// ColumnTypePrecisionScale implements [driver.RowsColumnTypePrecisionScale].
func (r *rows) ColumnTypePrecisionScale(i int) (precision, scale int64, ok bool) {
	if t, is := r.Rows.(driver.RowsColumnTypePrecisionScale); is {
		return t.ColumnTypePrecisionScale(i)
	}
	return 0, 0, false
}
