package spillsql

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"sync"
	"testing"
	"time"

	"github.com/seed90641741/spillway"
)

// A worker is a database whose statements take some time, and whose answers a func gives. It
// counts what is open, what runs, and what was sent.
type worker struct {
	takes  time.Duration
	answer func(query string) error

	mu                            sync.Mutex
	opened, closed, running, most int
	sent                          map[string]int
	order                         []string
	prepared                      int
}

func (w *worker) Connect(context.Context) (driver.Conn, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.answer != nil {
		if err := w.answer("connect"); err != nil {
			w.sent["connect"]++
			return nil, err
		}
	}
	w.opened++
	return &workConn{w: w}, nil
}

func (w *worker) Driver() driver.Driver { return nil }

// run executes a statement.
func (w *worker) run(ctx context.Context, query string) error {
	w.mu.Lock()
	w.sent[query]++
	w.order = append(w.order, query)
	w.running++
	w.most = max(w.most, w.running)
	w.mu.Unlock()
	defer func() {
		w.mu.Lock()
		defer w.mu.Unlock()
		w.running--
	}()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(w.takes):
	}
	if query == "panic" {
		panic("driver")
	}
	if w.answer != nil {
		return w.answer(query)
	}
	return nil
}

type workConn struct{ w *worker }

func (c *workConn) Close() error {
	c.w.mu.Lock()
	defer c.w.mu.Unlock()
	c.w.closed++
	return nil
}

func (c *workConn) Begin() (driver.Tx, error) {
	return workTx{}, c.w.run(context.Background(), "begin")
}

func (c *workConn) Prepare(query string) (driver.Stmt, error) {
	c.w.mu.Lock()
	defer c.w.mu.Unlock()
	c.w.prepared++
	return &workStmt{c.w, query}, nil
}

func (c *workConn) ExecContext(ctx context.Context, query string, _ []driver.NamedValue) (driver.Result, error) {
	return driver.RowsAffected(1), c.w.run(ctx, query)
}

func (c *workConn) QueryContext(ctx context.Context, query string, _ []driver.NamedValue) (driver.Rows, error) {
	return &fakeRows{fake: new(fake), left: 2}, c.w.run(ctx, query)
}

type workTx struct{}

func (workTx) Commit() error   { return nil }
func (workTx) Rollback() error { return nil }

type workStmt struct {
	w     *worker
	query string
}

func (*workStmt) Close() error  { return nil }
func (*workStmt) NumInput() int { return -1 }

func (s *workStmt) Exec([]driver.Value) (driver.Result, error) {
	return driver.RowsAffected(1), s.w.run(context.Background(), s.query)
}

func (s *workStmt) Query([]driver.Value) (driver.Rows, error) {
	return nil, s.w.run(context.Background(), s.query)
}

// open returns a database over w. It is closed at the end of the test, and nothing of it
// must then be left.
func open(t *testing.T, w *worker, c Config) (*sql.DB, *Connector) {
	t.Helper()
	w.sent = make(map[string]int)
	connector, err := NewConnector(w, c)
	if err != nil {
		t.Fatal(err)
	}
	db := sql.OpenDB(connector)
	db.SetMaxIdleConns(connector.pool.limit)
	t.Cleanup(func() {
		if err := db.Close(); err != nil {
			t.Error(err)
		}
		s := connector.Stats(time.Now())
		if s.Open != 0 || s.Waiting != 0 || w.opened != w.closed {
			t.Errorf("after the end: %d open, %d waiting; the driver opened %d and closed %d", s.Open, s.Waiting, w.opened, w.closed)
		}
	})
	return db, connector
}

// events keeps the decisions of the policies.
type events struct {
	mu  sync.Mutex
	all []spillway.Event
}

func (e *events) Observe(event spillway.Event) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.all = append(e.all, event)
}

// outcomes returns how often the throttle settled each outcome.
func (e *events) outcomes() map[spillway.Outcome]int {
	e.mu.Lock()
	defer e.mu.Unlock()
	seen := make(map[spillway.Outcome]int)
	for _, event := range e.all {
		if event.Policy == "throttle" {
			seen[event.Outcome]++
		}
	}
	return seen
}
