package sqltest

import (
	"context"
	"database/sql"
	"flag"
	"sync"
	"testing"
	"time"

	"github.com/seed90641741/spillway/spillsql"
)

// A load is what callers offer to a database, and what they get.
type load struct {
	db       *sql.DB
	query    string
	every    time.Duration // a call
	lasts    time.Duration
	patience time.Duration // of a caller

	mu      sync.Mutex
	offered int
	served  int
	took    time.Duration // by those that were served
	each    []time.Duration
}

// run offers the load. A late timer makes up for what it missed.
func (l *load) run(ctx context.Context) {
	var all sync.WaitGroup
	begun := time.Now()
	tick := time.NewTicker(l.every)
	defer tick.Stop()
	for time.Since(begun) < l.lasts {
		for l.offered < int(time.Since(begun)/l.every) {
			l.offered++
			all.Go(func() { l.call(ctx) })
		}
		<-tick.C
	}
	all.Wait()
}

func (l *load) call(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, l.patience)
	defer cancel()
	begun := time.Now()
	if _, err := l.db.ExecContext(ctx, l.query); err != nil {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.served++
	took := time.Since(begun)
	l.took += took
	l.each = append(l.each, took)
}

// measure enables a comparison that needs an idle machine: goodput with the policies and without.
var measure = flag.Bool("measure", false, "compare with a client without the policies, on an idle machine")

// TestOverload offers ten times what a pool of 20 connections can do, at the same time with
// spillsql and without. The query sleeps, so that neither takes the processor from the other.
func TestOverload(t *testing.T) {
	if !*measure {
		t.Skip("compares what is served, which needs an idle machine: run with -measure")
	}
	s := start(t)
	with, without := load{db: s.behind(t, spillsql.Config{MaxConns: 20})}, load{db: s.plain(t, 20)}
	var both sync.WaitGroup
	for _, l := range []*load{&with, &without} {
		l.query, l.every, l.lasts, l.patience = "SELECT pg_sleep(0.1)", 500*time.Microsecond, 3*time.Second, 250*time.Millisecond
		both.Go(func() { l.run(t.Context()) })
	}
	both.Wait()
	for _, l := range []*load{&with, &without} {
		t.Logf("offered %d, served %d, after %v on average", l.offered, l.served, l.took/time.Duration(max(l.served, 1)))
	}
	if with.served*10 < without.served*11 || with.took/time.Duration(max(with.served, 1)) > without.took/time.Duration(max(without.served, 1)) {
		t.Error("spillsql serves less than a tenth more, or later")
	}
}
