package main

import (
	"context"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/redis/go-redis/v9"

	"github.com/seed90641741/spillway"
	"github.com/seed90641741/spillway/ingress"
	"github.com/seed90641741/spillway/internal/redistest"
	"github.com/seed90641741/spillway/quota"
	"github.com/seed90641741/spillway/quota/fleet"
	"github.com/seed90641741/spillway/ratelimit"
	"github.com/seed90641741/spillway/spillprom"
	"github.com/seed90641741/spillway/spillredis/board"
)

// A shared is a task with metrics that shares the limits by a server of Redis.
type shared struct {
	t       *testing.T
	gates   *ingress.Server
	metrics *prometheus.Registry
	leave   func()
}

func startShared(t *testing.T, name, address string) *shared {
	t.Helper()
	f, err := fleet.New(fleet.Config{Task: name, Tasks: 2, Interval: 50 * time.Millisecond, Hold: 500 * time.Millisecond, Grace: 2 * time.Second, Limits: limits})
	if err != nil {
		t.Fatal(err)
	}
	client := board.Connect(redis.UniversalOptions{Addrs: []string{address}})
	b, err := board.New(client, board.Config{Domain: "shop"})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		fleet.Run(ctx, f, b)
		_ = client.Close()
	}()
	x := &shared{t: t, metrics: prometheus.NewRegistry(), leave: func() { cancel(); <-ended }}
	t.Cleanup(x.leave)
	if x.gates, err = ingress.New(ingress.Config{Quota: quota.Config{Allocator: f}, ShedMode: spillway.ModeOff}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = x.gates.Close() })
	metrics, err := spillprom.New(spillprom.Config{})
	if err != nil {
		t.Fatal(err)
	}
	metrics.AddServer("main", x.gates)
	metrics.AddQuota("shop", f)
	x.metrics.MustRegister(metrics)
	return x
}

// use sends the calls of a customer of a twentieth of a second.
func (x *shared) use(customer string, rate int) {
	ctx := context.Background()
	for range rate / 20 {
		p, _ := x.gates.Enter(ctx, spillway.Call{Customer: customer}, ratelimit.Caller{})
		p.Done(spillway.OutcomeServed)
	}
}

// level returns a metric, and -1 if there is none.
func (x *shared) level(name, customer string) float64 {
	x.t.Helper()
	all, err := x.metrics.Gather()
	if err != nil {
		x.t.Fatal(err)
	}
	for _, family := range all {
		for _, m := range family.GetMetric() {
			of := ""
			for _, l := range m.GetLabel() {
				if l.GetName() == "customer" {
					of = l.GetValue()
				}
			}
			if family.GetName() == name && of == customer {
				return m.GetGauge().GetValue()
			}
		}
	}
	return -1
}

// TestMetricsOfSharedQuotas: while two tasks share a limit by a server of Redis, the share of each is in its metrics, and what it uses; together
// they are the limit. When the server is gone, grace runs out.
func TestMetricsOfSharedQuotas(t *testing.T) {
	server := redistest.Start(t)
	one, two := startShared(t, "one", server.Socket()), startShared(t, "two", server.Socket())
	has := func(what string, holds func() bool) {
		t.Helper()
		for end := time.Now().Add(30 * time.Second); !holds(); <-time.After(50 * time.Millisecond) {
			if time.Now().After(end) {
				t.Fatalf("not in time: %s; shares %v and %v, uses %v and %v, grace %v", what, one.level("spillway_quota_share", "mail"), two.level("spillway_quota_share", "mail"),
					one.level("spillway_quota_use", "mail"), two.level("spillway_quota_use", "mail"), one.level("spillway_quota_grace_seconds", ""))
			}
			one.use("mail", 400)
			two.use("mail", 100)
		}
	}
	has("the busier task has more of the limit, and both use their share", func() bool {
		a, b := one.level("spillway_quota_share", "mail"), two.level("spillway_quota_share", "mail")
		used := one.level("spillway_quota_use", "mail") + two.level("spillway_quota_use", "mail")
		return a > b && b > 0 && a+b > 80 && a+b < 130 && used > 50
	})
	grace := one.level("spillway_quota_grace_seconds", "")
	if grace <= 0 {
		t.Errorf("grace %v with a server", grace)
	}
	server.Kill()
	has("grace runs out without a server", func() bool { return one.level("spillway_quota_grace_seconds", "") == 0 })
	t.Logf("grace was %.1f s", grace)
}
