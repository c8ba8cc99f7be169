package board

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/seed90641741/spillway/quota"
	"github.com/seed90641741/spillway/quota/fleet"
)

// cpu returns how much processor time a server has used.
func cpu(t *testing.T, c redis.UniversalClient) time.Duration {
	t.Helper()
	var user, system float64
	for _, part := range []struct {
		name  string
		value *float64
	}{{"used_cpu_user", &user}, {"used_cpu_sys", &system}} {
		*part.value = field(t, c, "cpu", part.name)
	}
	return time.Duration((user + system) * float64(time.Second))
}

// What the server spends on 1000 customers of 20 tasks, whatever the number of calls,
// against what it spends on the two commands per call of a counter with an end.
func TestCostOfTheServer(t *testing.T) {
	if !*measure {
		t.Skip("measures processor time. Run with -measure")
	}
	s := newServer(t)
	admin := s.client(redis.UniversalOptions{})
	ctx, cancel := context.WithCancel(t.Context())
	var fleets []*fleet.Fleet
	for range tasks {
		f, err := fleet.New(fleet.Config{Tasks: tasks, Interval: interval, Limits: quota.LocalConfig{DefaultLimit: quota.Limit{Rate: 10}}})
		if err != nil {
			t.Fatal(err)
		}
		fleets = append(fleets, f)
		b := mustBoard(t, s.client(redis.UniversalOptions{}), "cost")
		go fleet.Run(ctx, f, b)
	}
	const seconds = 8
	var before time.Duration
	for i := range 10 * (seconds + 2) {
		for _, f := range fleets {
			for c := range 1000 { // about one call per second and task
				f.Lease(time.Now(), quota.Demand{Customer: fmt.Sprint("customer-", c), Elapsed: 100 * time.Millisecond, Offered: [4]float64{2: 0.1}, Used: 0.1})
			}
		}
		if i == 20 {
			before = cpu(t, admin)
		}
		<-time.After(100 * time.Millisecond)
	}
	shared := (cpu(t, admin) - before).Seconds() / seconds
	cancel()
	c := s.client(redis.UniversalOptions{PoolSize: 1})
	const calls = 20_000
	before = cpu(t, admin)
	for i := range calls {
		p := c.Pipeline()
		key := fmt.Sprint("customer-", i%1000)
		p.IncrBy(t.Context(), key, 1)
		p.Expire(t.Context(), key, time.Second)
		if _, err := p.Exec(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	counted := (cpu(t, admin) - before).Seconds()
	t.Logf("shared: %.1f %% of a core; counted per call, at 20,000/s: %.1f %% (%.1f times)", 100*shared, 100*counted, counted/shared)
	if shared > 0.05 || shared > counted/4 {
		t.Error("want at most 5 % of a core, and a quarter of counting per call")
	}
}

// field returns a number from a section of INFO.
func field(t *testing.T, c redis.UniversalClient, section, name string) (x float64) {
	t.Helper()
	_, rest, found := strings.Cut(c.Info(t.Context(), section).Val(), name+":")
	if _, err := fmt.Sscanf(rest, "%g", &x); err != nil || !found {
		t.Fatalf("INFO %s has no %s: %v", section, name, err)
	}
	return x
}
