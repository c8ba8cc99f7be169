package ratetest

import (
	"context"
	"flag"
	"fmt"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-redis/redis_rate/v10"
	"github.com/redis/go-redis/v9"

	"github.com/seed90641741/spillway/internal/freeport"
	"github.com/seed90641741/spillway/internal/redistest"
	"github.com/seed90641741/spillway/quota"
	"github.com/seed90641741/spillway/quota/fleet"
	"github.com/seed90641741/spillway/spillredis/board"
)

var measure = flag.Bool("measure", false, "measure processor time")

const (
	tasks     = 20
	interval  = 200 * time.Millisecond
	customers = 1000
	perSecond = 20_000 // requests, with which a command for each is compared
)

// A server is a Redis server on a loopback port.
type server struct {
	t     *testing.T
	addr  string
	admin redis.UniversalClient
}

func newServer(t *testing.T) *server {
	t.Helper()
	s := &server{t: t, addr: freeport.Address(t)}
	_, port, _ := net.SplitHostPort(s.addr)
	redistest.Start(t, "--port", port, "--bind", "127.0.0.1", "--appendonly", "no")
	s.admin = s.client()
	return s
}

func (s *server) client() redis.UniversalClient {
	c := board.Connect(redis.UniversalOptions{Addrs: []string{s.addr}})
	s.t.Cleanup(func() { _ = c.Close() })
	return c
}

// info returns a number from a section of INFO.
func (s *server) info(section, name string) (x float64) {
	s.t.Helper()
	_, rest, found := strings.Cut(s.admin.Info(s.t.Context(), section).Val(), name)
	if _, err := fmt.Sscanf(rest, "%g", &x); err != nil || !found {
		s.t.Fatalf("INFO %s has no %s %v", section, name, err)
	}
	return x
}

// cpu returns how much processor time the server has used, in seconds.
func (s *server) cpu() float64 {
	s.t.Helper()
	return s.info("cpu", "used_cpu_user:") + s.info("cpu", "used_cpu_sys:")
}

// scripts returns how many round trips the server has had.
func (s *server) scripts() float64 {
	s.t.Helper()
	return s.info("commandstats", "cmdstat_evalsha:calls=")
}

// shared returns the share of a core that a fleet costs the server, whatever the number of requests. On a
// machine so busy that the tasks are late, it is what they would cost if they were not.
func (s *server) shared() float64 {
	s.t.Helper()
	ctx, cancel := context.WithCancel(s.t.Context())
	var running sync.WaitGroup
	defer running.Wait()
	defer cancel()
	var fleets []*fleet.Fleet
	for range tasks {
		f, err := fleet.New(fleet.Config{Tasks: tasks, Interval: interval, Limits: quota.LocalConfig{DefaultLimit: quota.Limit{Rate: 10}}})
		if err != nil {
			s.t.Fatal(err)
		}
		b, err := board.New(s.client(), board.Config{Domain: "cost"})
		if err != nil {
			s.t.Fatal(err)
		}
		fleets = append(fleets, f)
		running.Go(func() { fleet.Run(ctx, f, b) })
	}
	const step, warm, end = 100 * time.Millisecond, 20, 100
	var before, scripts float64
	var began time.Time
	for i := range end {
		if i == warm {
			before, scripts, began = s.cpu(), s.scripts(), time.Now()
		}
		for _, f := range fleets {
			for c := range customers { // 20 calls per second of each customer, twice its limit
				f.Lease(time.Now(), quota.Demand{Customer: fmt.Sprint("customer-", c), Elapsed: step, Offered: [4]float64{2: 0.1}, Used: 0.1})
			}
		}
		<-time.After(step)
	}
	used, trips := s.cpu()-before, s.scripts()-scripts
	perSecond := max(trips/time.Since(began).Seconds(), (tasks+1)/interval.Seconds())
	for _, f := range fleets {
		if st := f.Stats(time.Now()); st.Customers != customers || st.Tasks != tasks {
			s.t.Errorf("%+v, want reports of all customers, and all tasks", st)
		}
	}
	s.t.Logf("%.0f round trips per second, of %.0f µs each", perSecond, 1e6*used/trips)
	return used / trips * perSecond
}

// each returns the share of a core that a command for each request costs the server. Each task has a
// connection, and sends one command at a time.
func (s *server) each(decide func(c redis.UniversalClient, customer string) error) float64 {
	s.t.Helper()
	const calls = 5000 // of each task
	clients := make([]redis.UniversalClient, tasks)
	for i := range clients {
		clients[i] = s.client()
	}
	before := s.cpu()
	var all sync.WaitGroup
	for i, c := range clients {
		all.Go(func() {
			for n := range calls {
				if err := decide(c, fmt.Sprint("customer-", (n*tasks+i)%customers)); err != nil {
					s.t.Error(err)
					return
				}
			}
		})
	}
	all.Wait()
	return (s.cpu() - before) / (tasks * calls) * perSecond
}

// What the server spends on 1000 customers of 20 tasks, whatever the number of requests, against what
// it spends on 20,000 requests per second with a counter, and with redis_rate.
func TestCostOfTheServer(t *testing.T) {
	if !*measure {
		t.Skip("measures processor time. Run with -measure")
	}
	s := newServer(t)
	shared := s.shared()
	counted := s.each(func(c redis.UniversalClient, customer string) error {
		p := c.Pipeline()
		p.IncrBy(t.Context(), customer, 1)
		p.Expire(t.Context(), customer, time.Second)
		_, err := p.Exec(t.Context())
		return err
	})
	limited := s.each(func(c redis.UniversalClient, customer string) error {
		_, err := redis_rate.NewLimiter(c).Allow(t.Context(), customer, redis_rate.PerSecond(10))
		return err
	})
	t.Logf("a fleet: %.1f %% of a core; at 20,000 requests per second INCRBY and EXPIRE: %.1f %% (%.1f times), redis_rate: %.1f %% (%.1f times)",
		100*shared, 100*counted, counted/shared, 100*limited, limited/shared)
	if shared > 0.05 || shared > counted/4 || shared > limited/4 {
		t.Error("want at most 5 % of a core, and at most a quarter of a command for each request")
	}
}
