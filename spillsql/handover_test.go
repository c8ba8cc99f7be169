package spillsql

import (
	"context"
	"database/sql/driver"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// idleWithStatement returns a connection that database/sql has given back, with a statement that it has not closed yet.
func idleWithStatement(t *testing.T, f driver.Connector) (c *Connector, first driver.Conn, statement driver.Stmt) {
	t.Helper()
	c, err := NewConnector(f, Config{MaxConns: 1})
	if err != nil {
		t.Fatal(err)
	}
	if first, err = c.Connect(t.Context()); err != nil {
		t.Fatal(err)
	}
	if statement, err = first.Prepare("one"); err != nil || !first.(driver.Validator).IsValid() {
		t.Fatal(err)
	}
	return c, first, statement
}

// A connection that changes hands while database/sql keeps it takes its prepared statements along.
// When database/sql then closes what it still has, nothing may reach the connection: another caller
// works on it.
func TestStatementsOfTheFormerUser(t *testing.T) {
	f := new(fake)
	c, first, statement := idleWithStatement(t, f)
	second, err := c.Connect(t.Context()) // whose caller has looked for an idle one before
	if err != nil {
		t.Fatal(err)
	}
	if err := first.(driver.SessionResetter).ResetSession(t.Context()); !errors.Is(err, driver.ErrBadConn) {
		t.Fatal(err)
	}
	if err := errors.Join(statement.Close(), first.Close()); err != nil {
		t.Error(err)
	}
	count := func(method string) (n int) {
		for _, line := range f.trace {
			if strings.HasPrefix(line, method) {
				n++
			}
		}
		return n
	}
	if count("stmt.Close") > 0 {
		t.Errorf("a statement was closed on a connection that another caller uses: %q", f.trace)
	}
	again, err := second.Prepare("one")
	if err != nil || count("conn.Prepare") != 1 {
		t.Errorf("error %v; the driver got %q", err, f.trace)
	}
	if err := errors.Join(again.Close(), second.Close()); err != nil || count("stmt.Close") != 1 || count("conn.Close") != 1 {
		t.Errorf("error %v; in the end the driver got %q", err, f.trace)
	}
}

// A slowFake is a database whose statements take a second to close.
type slowFake struct{ fake }

func (f *slowFake) Connect(context.Context) (driver.Conn, error) {
	return slowConn{&fakeConn{&f.fake}}, nil
}

type slowConn struct{ *fakeConn }

func (c slowConn) Prepare(string) (driver.Stmt, error) { return slowStmt{&fakeStmt{c.fake}}, nil }

type slowStmt struct{ *fakeStmt }

func (s slowStmt) Close() error {
	time.Sleep(time.Second)
	return nil
}

// While database/sql closes a statement of an idle connection, nobody gets the connection. The caller who
// came meanwhile gets it then.
func TestStatementOfAnIdleConnection(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, first, statement := idleWithStatement(t, new(slowFake))
		begun, of := time.Now(), Unwrap(first)
		go func() { _ = statement.Close() }() // of a fake, which does not fail
		synctest.Wait()
		second, err := c.Connect(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if took := time.Since(begun); took < time.Second || Unwrap(second) != of {
			t.Errorf("after %v the caller got another connection or one that is in use", took)
		}
		if err := errors.Join(first.Close(), second.Close()); err != nil || c.Stats(time.Now()).Open != 0 {
			t.Errorf("error %v; %+v", err, c.Stats(time.Now()))
		}
	})
}
