package sqltest

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/stdlib"

	"github.com/seed90641741/spillway/spillsql"
)

// A counter counts the connections that are opened.
type counter struct {
	driver.Connector
	opened atomic.Int64
}

func (c *counter) Connect(ctx context.Context) (driver.Conn, error) {
	c.opened.Add(1)
	return c.Connector.Connect(ctx)
}

// TestBesideDatabaseSQL offers 0.9, 1.5 and 10 times what eight connections can do, at the same time with spillsql
// and with database/sql alone: connections opened, calls served per second, and how long 99 % of them took at most.
func TestBesideDatabaseSQL(t *testing.T) {
	if !*measure {
		t.Skip("compares what is served, which needs an idle machine: run with -measure")
	}
	const (
		conns    = 8
		takes    = 20 * time.Millisecond
		lasts    = 5 * time.Second
		patience = 500 * time.Millisecond
	)
	s := start(t)
	config, err := pgx.ParseConfig(s.dsn())
	if err != nil {
		t.Fatal(err)
	}
	for _, times := range []float64{0.9, 1.5, 10} {
		with, without := &counter{Connector: stdlib.GetConnector(*config)}, &counter{Connector: stdlib.GetConnector(*config)}
		own, err := spillsql.OpenDB(with, spillsql.Config{MaxConns: conns})
		if err != nil {
			t.Fatal(err)
		}
		plain := sql.OpenDB(without)
		plain.SetMaxOpenConns(conns)
		plain.SetMaxIdleConns(conns)
		loads := []*load{{db: own}, {db: plain}}
		var both sync.WaitGroup
		for _, l := range loads {
			l.query, l.lasts, l.patience = fmt.Sprintf("SELECT pg_sleep(%v)", takes.Seconds()), lasts, patience
			l.every = time.Duration(float64(takes) / conns / times)
			both.Go(func() { l.run(t.Context()) })
		}
		both.Wait()
		for i, l := range loads {
			name, opened := "spillsql", with.opened.Load()
			if i == 1 {
				name, opened = "database/sql", without.opened.Load()
			}
			t.Logf("%4.1f times: %-12s opened %3d, offered %6d, served %4.0f/s, p99 %v", times, name, opened, l.offered,
				float64(l.served)/lasts.Seconds(), l.percentile(99).Round(time.Millisecond))
			_ = l.db.Close() // of a test
		}
		if n, alone := with.opened.Load(), without.opened.Load(); n > alone+3 {
			t.Errorf("%d connections were opened, by database/sql alone %d", n, alone)
		}
		if loads[0].served*100 < loads[1].served*95 {
			t.Errorf("%d calls were served, by database/sql alone %d", loads[0].served, loads[1].served)
		}
	}
}

// percentile returns how long n % of the calls took at most that were served.
func (l *load) percentile(n int) time.Duration {
	if len(l.each) == 0 {
		return 0
	}
	slices.Sort(l.each)
	return l.each[(len(l.each)-1)*n/100]
}
