// Package spillsql puts the client policies of Spillway into database/sql, for any driver:
// a limit on connections with a waiting queue by criticality, adaptive throttling, and
// retries that are paid from a budget.
//
//	db, err := spillsql.Open("pgx", dsn, spillsql.Config{})
//
// The result is an ordinary [database/sql.DB]. The criticality of a statement is that of its
// context ([spillway.WithCriticality]). The package needs the standard library only.
//
// # The queue for connections
//
// A [database/sql.DB] with SetMaxOpenConns lets callers wait without a bound and in
// random order. Under overload all of them wait until they have almost no time left. So the
// limit is here: [Config.MaxConns]. Callers wait by criticality and, within a class, in the
// order of their arrival. A queue that has not been empty for 100 ms
// ([Config.QueueInterval]) is cut to one caller for each connection: callers of the lowest
// class leave it, the first ones first, with a [spillway.RejectedError]. While that
// happens, the last caller of a class is served first, as it has the most time left.
//
// Do not call SetMaxOpenConns: the queue of database/sql would come first. A connection that
// a caller waits for changes hands inside this package, with the statements that are prepared
// on it. It stays open. For database/sql it is then a new one, but SetConnMaxLifetime counts
// from when it was opened. (Without [OpenDB] or [Open] it counts from the last change of hands.)
//
// # Whose load
//
// An attempt is in progress from when it is sent until the database has answered; a query,
// until its first row has arrived. Afterwards the database also waits for the caller to
// read. A caller that keeps rows open for minutes holds a connection,
// which MaxConns bounds, and no place of [Config.Inflight].
//
// A transaction passes the policies as a whole, when it begins, and ends with COMMIT or
// ROLLBACK. Its statements are never rejected, as that would waste what was done before, and
// never repeated. If one of them fails for overload, the transaction counts as overloaded.
//
// # Retries
//
// A statement outside transactions is sent again only if one of these holds:
//
//	the database has certainly not executed it       too many connections, SQLite busy
//	its context is [Idempotent]                      also after a broken connection
//	it is a conflict, and RetryConflicts is set      40001, 40P01, 55P03; MySQL 1205, 1213
//
// Each retry is paid from the budget of [Config.Retry]. Where the connection is broken,
// database/sql sends the retry on another one. [driver.ErrBadConn] of a driver, by which it
// says that nothing was sent, goes to database/sql as it is.
//
// # What an error means
//
//	                          PostgreSQL              MySQL             SQLite
//	overloaded                53xxx                   1037, 1038        7
//	  and not executed        53300, 08004            1040, 1203        5, 6 (busy, locked)
//	not there, retried        57P03
//	  and no retry            53100 (disk full)       1021              13
//	timed out                 57014                   3024
//	conflict                  40001, 40P01, 55P03     1205, 1213
//	connection ended          08xxx, 57P01, 57P02     1053
//	other answers             the statement is wrong: not repeated
//
// Errors with a method SQLState() string are read as SQLSTATE codes of PostgreSQL (pgx, lib/pq); errors
// of github.com/go-sql-driver/mysql, modernc.org/sqlite and github.com/mattn/go-sqlite3 by
// their number. [Config.Classify] reads any others. An expired deadline is a timeout, and a
// caller that leaves says nothing. Nor does what a driver could not send, as it had no connection or as an argument
// was wrong. [database/sql.ErrNoRows] is a success.
//
// The throttle decides by statement: statements that differ in numbers and strings only are one.
// A statement that the database does not accept, or whose table is locked, is throttled
// without the others. The texts of up to 64 such statements are kept, without values.
//
// # When the database is away
//
// A server that refuses connections, or says that it starts or stops, is not overloaded for
// that reason, and the throttle does not count it. Instead, connections are opened one at a time,
// without a pause. So a server that starts has one client per process, and callers are served
// when it accepts the first connection. Each one that is opened then doubles how many may be
// opened at once. Callers that wait for that are in the queue for connections.
//
// # What drivers and database/sql see
//
// A driver is called as database/sql calls it: with the same optional methods, arguments and
// errors, and its panics reach the caller. A rejection closes no connection and is not repeated by database/sql. What
// [database/sql.Conn.Raw] passes on is a connection of this package; [Unwrap] returns that
// of the driver.
package spillsql
