package spillredis

import (
	"context"
	"flag"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/seed90641741/spillway/egress"
	"github.com/seed90641741/spillway/internal/redistest"
)

// A load is what callers offer to a server, and what they get.
type load struct {
	client   *redis.Client
	every    time.Duration // a call
	lasts    time.Duration
	patience time.Duration // of a caller

	mu      sync.Mutex
	offered int
	served  int
	took    time.Duration // by the served ones
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
	if l.client.Do(ctx, "DEBUG", "SLEEP", "0.005").Err() != nil {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.served++
	l.took += time.Since(begun)
}

// measure is for what needs an idle machine: how much is served beside a client without the policies.
var measure = flag.Bool("measure", false, "compare with a client without the policies, on an idle machine")

// TestOverload offers ten times what a server can do to two of them, at the same time: over a
// pool of 20 connections with the policies, and over one without. A command has the server sleep
// for 5 ms, so that none takes the processor from another.
func TestOverload(t *testing.T) {
	if !*measure {
		t.Skip("compares what is served, which needs an idle machine: run with -measure")
	}
	options := func() *redis.Options {
		return &redis.Options{Network: "unix", Addr: redistest.Start(t, "--enable-debug-command", "yes").Socket(), PoolSize: 20, MaxRetries: -1, ContextTimeoutEnabled: true}
	}
	own, err := NewClient(options(), egress.Config{MaxInFlight: 20})
	if err != nil {
		t.Fatal(err)
	}
	defer own.Close()
	plain := redis.NewClient(options())
	defer plain.Close()
	with, without := load{client: own}, load{client: plain}
	var both sync.WaitGroup
	for _, l := range []*load{&with, &without} {
		l.every, l.lasts, l.patience = 500*time.Microsecond, 3*time.Second, 250*time.Millisecond
		both.Go(func() { l.run(t.Context()) })
	}
	both.Wait()
	for _, l := range []*load{&with, &without} {
		t.Logf("offered %d, served %d, after %v on average", l.offered, l.served, l.took/time.Duration(max(l.served, 1)))
	}
	if with.served*10 < without.served*11 {
		t.Error("the policies serve less than a tenth more")
	}
}
