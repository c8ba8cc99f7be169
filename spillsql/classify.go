package spillsql

import (
	"database/sql"
	"errors"
	"reflect"
	"slices"
	"strings"

	"github.com/seed90641741/spillway/fault"
)

// A verdict is what an error of a driver means. answered says that it is an answer of the
// database, so that the connection works.
type verdict struct {
	fault.Failure
	answered bool
	// fatal says that the database has ended the connection with this answer.
	fatal bool
	// rejected says that the database has rejected the connection.
	rejected bool
}

// The kinds of answers. Where the database says that it has rolled back a statement, a
// retry is left to the user's say so, as the statement may be a list of statements.
var (
	full      = verdict{answered: true, Failure: fault.Failure{Overload: true, Party: fault.Server}}
	fullDisk  = verdict{answered: true, Failure: fault.Failure{Overload: true, Safety: fault.RetryUnsafe, Party: fault.Server}}
	closed    = verdict{answered: true, fatal: true, Failure: fault.Failure{Overload: true, Unprocessed: true, Party: fault.Server}}
	away      = verdict{answered: true, fatal: true, Failure: fault.Failure{Safety: fault.RetrySafe, Party: fault.Server}}
	ended     = verdict{answered: true, fatal: true, Failure: fault.Failure{Party: fault.Server}}
	conflict  = verdict{answered: true, Failure: fault.Failure{Safety: fault.RetryUnsafe}}
	timeout   = verdict{answered: true, Failure: fault.Failure{Timeout: true, Safety: fault.RetryUnsafe}}
	busy      = verdict{answered: true, Failure: fault.Failure{Overload: true, Unprocessed: true}}
	wrong     = verdict{answered: true, Failure: fault.Failure{Safety: fault.RetryUnsafe, Party: fault.Client}}
	forbidden = verdict{answered: true, rejected: true, Failure: fault.Failure{Safety: fault.RetryUnsafe, Party: fault.Client}}
)

// sqlStates has the codes of PostgreSQL, and of databases that use them, in the words of
// its documentation, appendix A. Two characters are a class.
var sqlStates = map[string]verdict{
	"08004": closed,    // the server rejected the connection
	"08":    ended,     // connection exception
	"28":    forbidden, // invalid authorization
	"3D000": forbidden, // no such database
	"40001": conflict,  // serialization failure
	"40P01": conflict,  // deadlock detected
	"55P03": conflict,  // lock not available
	"53":    full,      // insufficient resources
	"53100": fullDisk,
	"53300": closed,  // too many connections
	"57014": timeout, // canceled, such as by statement_timeout
	"57P01": ended,   // the administrator shut it down
	"57P02": ended,   // crash shutdown
	"57P03": away,    // cannot connect now: it starts or stops
	"57P05": ended,   // idle session timeout
}

// mySQL has the error numbers of MySQL and MariaDB servers.
var mySQL = map[int]verdict{
	1021: fullDisk,
	1037: full,   // out of memory
	1038: full,   // out of memory for sorting
	1040: closed, // too many connections
	1203: closed, // too many connections of this user
	1044: forbidden, 1045: forbidden, 1049: forbidden,
	1053: ended,    // server shutdown in progress
	1205: conflict, // lock wait timeout
	1213: conflict, // deadlock
	3024: timeout,  // max_execution_time
}

// sqlite has the primary result codes of SQLite.
var sqlite = map[int]verdict{
	5:  busy, // another connection has locked the database
	6:  busy, // a table is locked
	7:  full, // out of memory
	13: fullDisk,
}

// classify returns what err means. conflicts says that conflicts may be retried.
func classify(err error, conflicts bool) verdict {
	v := answer(err)
	if !v.answered && local(err) {
		v.Failure = fault.Failure{Unsent: true, Safety: fault.RetryUnsafe, Party: fault.Client}
		return v
	}
	if v.answered {
		if v == conflict && conflicts {
			v.Safety = fault.RetrySafe
		}
		return v
	}
	v.Failure = fault.Of(err)
	return v
}

// answer returns the meaning of err if it is an answer of a database.
func answer(err error) verdict {
	if e, ok := errors.AsType[interface {
		error
		SQLState() string
	}](err); ok {
		return ofState(e.SQLState())
	}
	return ofNumber(err)
}

// ofNumber looks for an error with a number in err and all that it wraps.
func ofNumber(err error) verdict {
	if codes, number, ok := numberOf(err); ok {
		if v, ok := codes[number]; ok {
			return v
		}
		return wrong
	}
	switch u := err.(type) { //nolint:errorlint // as errors.As does
	case interface{ Unwrap() error }:
		if e := u.Unwrap(); e != nil {
			return ofNumber(e)
		}
	case interface{ Unwrap() []error }:
		for _, e := range u.Unwrap() {
			if v := ofNumber(e); v.answered {
				return v
			}
		}
	}
	return verdict{}
}

// locals are how errors of drivers begin that have sent nothing: the statement or an argument is wrong. They have no type.
var locals = [...]string{
	"packet for query is too large.",                                // go-sql-driver/mysql
	"failed to encode args[", "mismatched param and argument count", // pgx
}

// local reports whether a driver has sent nothing.
func local(err error) bool {
	if err == nil {
		return false
	}
	text := err.Error()
	return slices.ContainsFunc(locals[:], func(begins string) bool { return strings.HasPrefix(text, begins) })
}

func ofState(state string) verdict {
	if v, ok := sqlStates[state]; ok {
		return v
	}
	if len(state) == 5 {
		if v, ok := sqlStates[state[:2]]; ok {
			return v
		}
		return wrong
	}
	return verdict{}
}

// numberOf returns the error number of an error of a driver that has no method for it.
func numberOf(err error) (codes map[int]verdict, number int, ok bool) {
	v := reflect.Indirect(reflect.ValueOf(err))
	if !v.IsValid() { // a nil pointer
		return nil, 0, false
	}
	switch v.Type().PkgPath() {
	case "github.com/go-sql-driver/mysql":
		number, ok = integer(v, "Number")
		return mySQL, number, ok
	case "github.com/mattn/go-sqlite3":
		number, ok = integer(v, "Code")
		return sqlite, number & 0xff, ok
	case "modernc.org/sqlite":
		if e, is := err.(interface{ Code() int }); is {
			return sqlite, e.Code() & 0xff, true
		}
	}
	return nil, 0, false
}

// integer returns v if it is an integer, or its field of that name if v is a struct. Drivers have errors
// of other kinds, too.
func integer(v reflect.Value, field string) (number int, ok bool) {
	if v.Kind() == reflect.Struct {
		f, ok := v.Type().FieldByName(field)
		if !ok || len(f.Index) > 1 {
			return 0, false
		}
		v = v.Field(f.Index[0])
	}
	switch {
	case v.CanInt():
		return int(v.Int()), true
	case v.CanUint():
		return int(v.Uint()), true
	}
	return 0, false
}

// Classify returns what it means that a statement ended with err. The package
// documentation has the rules. Statements of a Connector are classified already.
func Classify(err error) fault.Failure { return classify(err, false).Failure }

// success reports whether err is an answer that the statement asked for.
func success(err error) bool { return err == nil || errors.Is(err, sql.ErrNoRows) }
