package spillsql

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"fmt"
	"time"

	"github.com/seed90641741/spillway"
	"github.com/seed90641741/spillway/fault"
	"github.com/seed90641741/spillway/inflight"
	"github.com/seed90641741/spillway/internal/calls"
	"github.com/seed90641741/spillway/retry"
	"github.com/seed90641741/spillway/throttle"
)

// DefaultMaxConns is how many connections a [Connector] keeps open if it is not told: a
// fifth of the 100 that a PostgreSQL server accepts by default, so that five processes fit.
const DefaultMaxConns = 20

// DefaultQueueInterval is for how long callers may queue for connections before the queue
// counts as overload: the interval of CoDel (RFC 8289), within which a burst passes.
const DefaultQueueInterval = 100 * time.Millisecond

// Config configures a [Connector]. The zero Config is ready for use.
type Config struct {
	// MaxConns is how many connections may be open. It bounds what is in progress at the
	// database. Zero means [DefaultMaxConns], negative means no limit. It replaces
	// [sql.DB.SetMaxOpenConns], which has a queue without a bound and without classes.
	MaxConns int
	// QueueInterval is for how long callers may queue for connections before the queue is
	// cut to one caller per connection. Zero means [DefaultQueueInterval], negative
	// means that nothing is ever cut.
	QueueInterval time.Duration

	// Throttle configures adaptive throttling.
	Throttle throttle.Config
	// ThrottleMode says whether the throttle enforces, observes or is off.
	ThrottleMode spillway.Mode
	// Inflight, if not nil, is an in-flight limit for statements, shared with other
	// Connectors. MaxConns is the limit of this one.
	InFlight *inflight.Limiter
	// InFlightMode says whether Inflight enforces, observes or is off.
	InFlightMode spillway.Mode

	// Retry decides on retries, and holds the budget. Nil means [retry.Budgeted] with a
	// backoff of 50 ms to 1 s: three attempts, retries at most 10 % of the calls.
	Retry retry.Strategy
	// RetryConflicts says that a statement outside a transaction that fails with a
	// serialization failure, a deadlock or a lock timeout may be sent again. The database
	// has rolled it back.
	RetryConflicts bool
	// Classify, if not nil, is asked first what an error of the driver means. It returns
	// false for errors that it does not know. It must be safe for concurrent use.
	Classify func(error) (fault.Failure, bool)

	// Observer, if not nil, receives each decision.
	Observer spillway.Observer
}

// backoff is the wait before a retry where the caller gives no strategy. Retries meet the
// same server, so they must not come at once: 50 ms is the base of AWS SDKs for failures
// that pass, and 1 s bounds what a caller waits.
var backoff = retry.Backoff{Base: 50 * time.Millisecond, Max: time.Second}

// build returns the policies of c.
func (c *Config) build() (*gate, error) {
	for _, m := range []struct {
		field string
		mode  spillway.Mode
	}{{"ThrottleMode", c.ThrottleMode}, {"InFlightMode", c.InFlightMode}} {
		if m.mode > spillway.ModeOff {
			return nil, fmt.Errorf("spillsql: %w", &spillway.FieldError{Path: m.field, Value: uint8(m.mode), Allowed: "Enforce, Observe or Off"})
		}
	}
	routes, err := throttle.NewRoutes(c.Throttle)
	if err != nil {
		return nil, fmt.Errorf("spillsql: Throttle: %w", err)
	}
	strategy := c.Retry
	if strategy == nil {
		if strategy, err = retry.NewBudgeted(retry.BudgetedConfig{Backoff: backoff}); err != nil {
			return nil, fmt.Errorf("spillsql: Retry: %w", err)
		}
	}
	g := &gate{classify: c.Classify, conflicts: c.RetryConflicts, routes: routes}
	g.policies = calls.Policies{
		Throttle: routes, ThrottleMode: c.ThrottleMode, InFlightMode: spillway.ModeOff,
		Retry: strategy, Observer: c.Observer, Usual: new(calls.Usual), Shares: new(calls.Shares),
	}
	if c.InFlight != nil {
		g.policies.InFlight, g.policies.InFlightMode = c.InFlight, c.InFlightMode
	}
	return g, nil
}

// OpenDB returns a [sql.DB] whose statements pass the policies of c on the way to the
// database of base. Do not call SetMaxOpenConns on it: MaxConns is its limit. It fails if c
// is not valid.
func OpenDB(base driver.Connector, c Config) (*sql.DB, error) {
	connector, err := NewConnector(base, c)
	if err != nil {
		return nil, err
	}
	db := sql.OpenDB(connector)
	db.SetMaxIdleConns(connector.pool.limit)
	connector.lifetime = lifetimeOf(db)
	return db, nil
}

// Open is [OpenDB] for a driver that was registered under the name driverName, and a data
// source name of that driver.
func Open(driverName, dataSourceName string, c Config) (*sql.DB, error) {
	db, err := sql.Open(driverName, dataSourceName)
	if err != nil {
		return nil, err
	}
	d := db.Driver()
	if err := db.Close(); err != nil { // it has no connections yet
		return nil, err
	}
	if with, ok := d.(driver.DriverContext); ok {
		base, err := with.OpenConnector(dataSourceName)
		if err != nil {
			return nil, err
		}
		return OpenDB(base, c)
	}
	return OpenDB(dsnConnector{d, dataSourceName}, c)
}

// dsnConnector is a Connector for drivers without one.
type dsnConnector struct {
	driver driver.Driver
	dsn    string
}

func (c dsnConnector) Connect(context.Context) (driver.Conn, error) { return c.driver.Open(c.dsn) }
func (c dsnConnector) Driver() driver.Driver                        { return c.driver }

// Idempotent returns a context whose statements may be sent again although the database
// may have executed them: their effect must be the same. It has no effect in transactions.
func Idempotent(ctx context.Context) context.Context {
	return context.WithValue(ctx, idempotentKey{}, true)
}

type idempotentKey struct{}
