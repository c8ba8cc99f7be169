package sqltest

import (
	"context"
	"database/sql/driver"
	"net"
	"os"
	"syscall"
	"testing"

	"github.com/go-sql-driver/mysql"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/stdlib"

	"github.com/seed90641741/spillway/egress"
	"github.com/seed90641741/spillway/fault"
	"github.com/seed90641741/spillway/spillsql"
	"github.com/seed90641741/spillway/spilltest"
)

// TestLessons: what a dial teaches that these drivers report.
func TestLessons(t *testing.T) {
	dials := map[string]struct {
		errno    error
		want     spilltest.Evidence
		attempts int
	}{
		"socket":  {syscall.EMFILE, spilltest.NeverSent, 3},
		"bind":    {syscall.EADDRNOTAVAIL, spilltest.NeverSent, 3},
		"connect": {syscall.ECONNREFUSED, spilltest.Unanswered, 3},
	}
	spilltest.TestLessons(t, func(t *testing.T, config egress.Config) (all []spilltest.Lesson) {
		for _, op := range []string{"socket", "bind", "connect"} {
			row := dials[op]
			dial := func(context.Context, string, string) (net.Conn, error) {
				return nil, &net.OpError{Op: "dial", Net: "tcp", Err: os.NewSyscallError(op, row.errno)}
			}
			for i, base := range []driver.Connector{toMySQL(t, dial), toPostgres(t, dial)} {
				db, err := spillsql.OpenDB(base, spillsql.Config{Observer: config.Observer, Retry: config.Retry})
				if err != nil {
					t.Fatal(err)
				}
				t.Cleanup(func() { _ = db.Close() })
				all = append(all, spilltest.Lesson{Name: []string{"mysql ", "pgx "}[i] + op, Want: row.want, Attempts: row.attempts, Call: db.PingContext})
			}
		}
		return all
	})
}

func toMySQL(t *testing.T, dial func(context.Context, string, string) (net.Conn, error)) driver.Connector {
	t.Helper()
	c := mysql.NewConfig()
	c.Net, c.Addr, c.DialFunc = "tcp", "127.0.0.1:1", dial
	base, err := mysql.NewConnector(c)
	if err != nil {
		t.Fatal(err)
	}
	return base
}

func toPostgres(t *testing.T, dial func(context.Context, string, string) (net.Conn, error)) driver.Connector {
	t.Helper()
	c, err := pgx.ParseConfig("host=127.0.0.1 port=1 user=u dbname=d sslmode=disable")
	if err != nil {
		t.Fatal(err)
	}
	c.DialFunc = dial
	return stdlib.GetConnector(*c)
}

// TestNothingSent: what these drivers cannot send says nothing about the database.
func TestNothingSent(t *testing.T) {
	errs := map[string]error{"mysql, large packet": mysql.ErrPktTooLarge}
	t.Run("pgx", func(t *testing.T) {
		db := start(t).behind(t, spillsql.Config{})
		_, errs["pgx, argument"] = db.ExecContext(t.Context(), "SELECT $1::int", map[int]int{})
		_, errs["pgx, arguments"] = db.ExecContext(t.Context(), "SELECT $1::int", 1, 2)
	})
	for name, err := range errs {
		if f := spillsql.Classify(err); err == nil || !f.Unsent || f.Safety != fault.RetryUnsafe {
			t.Errorf("%s: %v: %+v", name, err, f)
		}
	}
}
