package spillsql

import "database/sql/driver"

// The methods that drivers had before contexts. Package driver calls their interfaces
// deprecated; drivers have them, and database/sql calls them.
type (
	oldExecer interface {
		Exec(query string, args []driver.Value) (driver.Result, error)
	}
	oldQueryer interface {
		Query(query string, args []driver.Value) (driver.Rows, error)
	}
	oldConn interface{ Begin() (driver.Tx, error) }
	oldStmt interface {
		Exec(args []driver.Value) (driver.Result, error)
		Query(args []driver.Value) (driver.Rows, error)
	}
	oldConverter interface {
		ColumnConverter(i int) driver.ValueConverter
	}
)
