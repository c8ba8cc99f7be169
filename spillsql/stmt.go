package spillsql

//lint:file-ignore SA1019 drivers have these methods still

import (
	"context"
	"database/sql/driver"
)

// maxKeptStmts is how many prepared statements go with a connection that changes hands.
// The next user of the connection needs the same ones, as all callers of a sql.DB do.
const maxKeptStmts = 64

// A stmt is a prepared statement as database/sql sees it. As conn, it has every method that
// database/sql looks for, but for ColumnConverter: see prepared.
type stmt struct {
	driver.Stmt
	conn  *conn
	query string
}

var (
	_ driver.StmtExecContext   = (*stmt)(nil)
	_ driver.StmtQueryContext  = (*stmt)(nil)
	_ driver.NamedValueChecker = (*stmt)(nil)
)

// A convertingStmt is a stmt whose driver converts arguments by column.
type convertingStmt struct {
	*stmt
	by oldConverter
}

// ColumnConverter implements [driver.ColumnConverter].
func (s convertingStmt) ColumnConverter(i int) driver.ValueConverter { return s.by.ColumnConverter(i) }

// Prepare implements [driver.Conn].
func (c *conn) Prepare(query string) (driver.Stmt, error) {
	return c.PrepareContext(context.Background(), query)
}

// PrepareContext implements [driver.ConnPrepareContext].
func (c *conn) PrepareContext(ctx context.Context, query string) (driver.Stmt, error) {
	if s := c.stmts[query]; s != nil {
		delete(c.stmts, query)
		return c.prepared(s, query), nil
	}
	var s driver.Stmt
	err := c.do(ctx, "prepare", query, true, func(ctx context.Context) (err error) {
		s, err = prepare(ctx, c.Conn, query)
		return err
	})
	if err != nil {
		return nil, err
	}
	return c.prepared(s, query), nil
}

func (c *conn) prepared(s driver.Stmt, query string) driver.Stmt {
	own := &stmt{Stmt: s, conn: c, query: query}
	if c.prepares == nil {
		c.prepares = make(map[*stmt]struct{})
	}
	c.prepares[own] = struct{}{}
	if converter, ok := s.(oldConverter); ok {
		return convertingStmt{own, converter}
	}
	return own
}

// prepare prepares a statement, as database/sql does with drivers that know no context.
func prepare(ctx context.Context, c driver.Conn, query string) (driver.Stmt, error) {
	if with, ok := c.(driver.ConnPrepareContext); ok {
		return with.PrepareContext(ctx, query)
	}
	s, err := c.Prepare(query)
	if err == nil && ctx.Err() != nil {
		_ = s.Close() // the caller has left
		return nil, ctx.Err()
	}
	return s, err
}

// Close implements [driver.Stmt]. A statement whose connection has changed hands went with it.
func (s *stmt) Close() error {
	c := s.conn
	has, idle := c.pool.hold(c, s)
	if idle {
		defer c.pool.rest(c)
	}
	if !has {
		return nil
	}
	return s.Stmt.Close()
}

// keep keeps a statement for the next user of the connection, unless there are enough.
func (p *physical) keep(s *stmt) bool {
	if len(p.stmts) >= maxKeptStmts || p.stmts[s.query] != nil {
		return false
	}
	if p.stmts == nil {
		p.stmts = make(map[string]driver.Stmt)
	}
	p.stmts[s.query] = s.Stmt
	return true
}

// adopt keeps or closes what a former user has left on the connection.
func (p *physical) adopt() {
	for _, s := range p.left {
		if !p.keep(s) {
			_ = s.Stmt.Close() // nobody is left to tell
		}
	}
	p.left = nil
}

// CheckNamedValue implements [driver.NamedValueChecker]. database/sql prefers that of the
// statement to that of the connection.
func (s *stmt) CheckNamedValue(v *driver.NamedValue) error {
	if checker, ok := s.Stmt.(driver.NamedValueChecker); ok {
		return checker.CheckNamedValue(v)
	}
	return s.conn.CheckNamedValue(v)
}

// ExecContext implements [driver.StmtExecContext].
func (s *stmt) ExecContext(ctx context.Context, args []driver.NamedValue) (result driver.Result, err error) {
	err = s.conn.do(ctx, "exec", s.query, false, func(ctx context.Context) (err error) {
		result, err = s.exec(ctx, args)
		return err
	})
	return result, err
}

func (s *stmt) exec(ctx context.Context, args []driver.NamedValue) (driver.Result, error) {
	if with, ok := s.Stmt.(driver.StmtExecContext); ok {
		return with.ExecContext(ctx, args)
	}
	values, err := unnamed(ctx, args)
	if err != nil {
		return nil, err
	}
	return oldStmt(s.Stmt).Exec(values)
}

// QueryContext implements [driver.StmtQueryContext].
func (s *stmt) QueryContext(ctx context.Context, args []driver.NamedValue) (driver.Rows, error) {
	return s.conn.query(ctx, s.query, func(ctx context.Context) (driver.Rows, error) {
		if with, ok := s.Stmt.(driver.StmtQueryContext); ok {
			return with.QueryContext(ctx, args)
		}
		values, err := unnamed(ctx, args)
		if err != nil {
			return nil, err
		}
		return oldStmt(s.Stmt).Query(values)
	})
}
