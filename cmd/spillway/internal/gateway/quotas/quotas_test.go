package quotas

import (
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/seed90641741/spillway"
	"github.com/seed90641741/spillway/cmd/spillway/internal/gateway/config"
	"github.com/seed90641741/spillway/cmd/spillway/internal/policyconf"
	"github.com/seed90641741/spillway/quota"
)

// shop is a configuration with a limit that an engine shares.
func shop(addr string, rate float64) *config.Config {
	c := &config.Config{
		Quotas: map[string]config.Engine{
			"shared": {Domain: "shop", Tasks: 2, Interval: 50 * time.Millisecond, Redis: &policyconf.Redis{Addresses: []string{addr}}},
		},
		Listeners: []config.Listener{{Address: "127.0.0.1:0"}},
		Clusters: []config.Cluster{{
			Name: "web", Endpoints: []string{"127.0.0.1:1"},
			Quota: &config.Quota{Engine: "shared", Customers: map[string]config.Limit{"mail": {Rate: rate}}},
		}},
	}
	return c.Defaulted()
}

func put(t *testing.T, s *Set, c *config.Config) {
	t.Helper()
	if err := c.Check(); err != nil {
		t.Fatal(err)
	}
	n, err := s.Prepare(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	n.Commit()
}

// until waits until a condition holds.
func until(t *testing.T, what string, holds func() bool) {
	t.Helper()
	deadline := time.Now().Add(60 * time.Second)
	for !holds() {
		if time.Now().After(deadline) {
			t.Fatalf("not within 60 s: %s", what)
		}
		<-time.After(10 * time.Millisecond)
	}
}

func gate(t *testing.T, s *Set, c *config.Config) *quota.Quota {
	t.Helper()
	var q quota.Config
	s.Share(&q, c, "web", c.Clusters[0].Quota)
	if q.Allocator == nil {
		t.Fatal("the quota is not shared")
	}
	g, err := quota.New(q)
	if err != nil {
		t.Fatal(err)
	}
	return g
}

func only(t *testing.T, s *Set) Stats {
	t.Helper()
	all := s.Stats(time.Now())
	if len(all) != 1 {
		t.Fatalf("%d quotas, want 1", len(all))
	}
	return all[0]
}

// Two proxies share a limit; when one ends, the other has all of it at once.
func TestProxiesShareALimit(t *testing.T) {
	addr := serve(t)
	logger := slog.New(slog.DiscardHandler)
	a, b := New(logger), New(logger)
	c := shop(addr, 1000)
	put(t, a, c)
	put(t, b, c)
	defer a.Leave()
	gates := []*quota.Quota{gate(t, a, c), gate(t, b, c)}
	demand := func() {
		for _, g := range gates {
			for range 50 {
				_, _ = g.Admit(time.Now(), spillway.Call{Customer: "mail"})
			}
		}
	}
	rate := func(g *quota.Quota) float64 {
		for _, x := range g.Stats(time.Now()) {
			if x.Customer == "mail" {
				return x.Rate
			}
		}
		return 0
	}
	until(t, "both know of two tasks, and each has a part of the limit", func() bool {
		demand()
		return only(t, a).Tasks == 2 && only(t, b).Tasks == 2 && rate(gates[0]) < 900 && rate(gates[1]) < 900
	})
	if x := only(t, a); x.Conflict || x.Name != "web" || len(x.Customers) != 1 || x.Customers[0].Customer != "mail" {
		t.Errorf("%+v", x)
	}
	b.Leave()
	gates = gates[:1]
	until(t, "the other has all of the limit", func() bool {
		demand()
		return only(t, a).Tasks == 1 && rate(gates[0]) > 450
	})
}

// Proxies with different limits are shown; the same limits end it. A change keeps the task.
func TestDifferentLimitsAreShown(t *testing.T) {
	addr := serve(t)
	logger := slog.New(slog.DiscardHandler)
	a, b := New(logger), New(logger)
	put(t, a, shop(addr, 1000))
	put(t, b, shop(addr, 500))
	defer a.Leave()
	defer b.Leave()
	until(t, "a conflict is shown", func() bool { return only(t, a).Conflict || only(t, b).Conflict })
	syncs := only(t, b).Syncs
	put(t, b, shop(addr, 1000))
	if got := only(t, b).Syncs; got < syncs {
		t.Errorf("a change of limits has made a new task: %d round trips after %d", got, syncs)
	}
	until(t, "the conflict is over", func() bool { return !only(t, a).Conflict && !only(t, b).Conflict })
	if a.tasks["shop/web"].engine == nil || len(a.engines) != 1 {
		t.Error("the engine is not in use")
	}
	off := shop(addr, 1000)
	off.Clusters[0].Quota.Engine = ""
	put(t, a, off)
	if n := len(a.Stats(time.Now())); n != 0 {
		t.Errorf("%d quotas are shared, want none", n)
	}
	until(t, "the other is alone", func() bool { return only(t, b).Tasks == 1 })
}

// A change that is given up leaves everything as it was.
func TestAbandon(t *testing.T) {
	addr := serve(t)
	a := New(slog.New(slog.DiscardHandler))
	put(t, a, shop(addr, 1000))
	defer a.Leave()
	before := a.tasks["shop/web"].fleet
	other := shop(addr, 10)
	other.Clusters[0].Name = "other"
	n, err := a.Prepare(t.Context(), other)
	if err != nil {
		t.Fatal(err)
	}
	n.Abandon()
	if a.tasks["shop/web"].fleet != before || only(t, a).Name != "web" {
		t.Error("the quota has changed")
	}
	until(t, "the abandoned task has left", func() bool { return only(t, a).Tasks == 1 })
}

// Without servers the proxy starts, and grants the limit divided by tasks.
func TestServersAreAway(t *testing.T) {
	c := shop("127.0.0.1:1", 1000)
	a := New(slog.New(slog.DiscardHandler))
	put(t, a, c)
	g := gate(t, a, c)
	now := time.Now()
	for range 1000 {
		_, _ = g.Admit(now, spillway.Call{Customer: "mail"})
	}
	if s := g.Stats(now); s[1].Rate != 500 {
		t.Errorf("%+v, want a rate of 500", s)
	}
	until(t, "errors are counted", func() bool { return only(t, a).Errors > 0 })
	a.Leave()
}

func TestTry(t *testing.T) {
	dir := t.TempDir()
	password := filepath.Join(dir, "password")
	if err := os.WriteFile(password, []byte("secret\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	acl := filepath.Join(dir, "users.acl")
	rights := "~spillway:* +evalsha +eval +time +hset +hget +hmget +hgetall +pexpire"
	users := "user default off\nuser full on >secret " + rights + " +hdel\nuser part on >secret " + rights + "\nuser scriptless on >secret " + strings.NewReplacer(" +evalsha", "", " +eval", "").Replace(rights) + "\n"
	if err := os.WriteFile(acl, []byte(users), 0o600); err != nil {
		t.Fatal(err)
	}
	open, locked, listed := serve(t), serve(t, "--requirepass", "other"), serve(t, "--aclfile", acl)
	full := serve(t, "--maxmemory", "1", "--maxmemory-policy", "noeviction")
	for name, test := range map[string]struct {
		redis policyconf.Redis
		want  string
	}{
		"good":           {policyconf.Redis{Addresses: []string{open}}, ""},
		"user of an ACL": {policyconf.Redis{Addresses: []string{listed}, Username: "full", PasswordFile: password}, ""},
		"no server":      {policyconf.Redis{Addresses: []string{"127.0.0.1:1"}}, "no server answers"},
		"no TLS there":   {policyconf.Redis{Addresses: []string{open}, TLS: new(config.ClientTLS)}, "TLS"},
		"no password":    {policyconf.Redis{Addresses: []string{locked}}, "give password_file"},
		"wrong password": {policyconf.Redis{Addresses: []string{locked}, PasswordFile: password}, "password_file is wrong"},
		"missing right":  {policyconf.Redis{Addresses: []string{listed}, Username: "part", PasswordFile: password}, "+hdel"},
		"no scripts":     {policyconf.Redis{Addresses: []string{listed}, Username: "scriptless", PasswordFile: password}, "the user of the ACL lacks a right; it needs ~spillway:* +evalsha +eval"},
		"no memory":      {policyconf.Redis{Addresses: []string{full}}, "the memory of the server is full (maxmemory)"},
		"no such file":   {policyconf.Redis{Addresses: []string{open}, PasswordFile: filepath.Join(dir, "none")}, "no such file"},
	} {
		t.Run(name, func(t *testing.T) {
			c := shop(open, 1)
			e := c.Quotas["shared"]
			e.Redis = &test.redis
			c.Quotas["shared"] = e
			errs := Try(t.Context(), c)
			switch {
			case test.want == "" && len(errs) > 0:
				t.Errorf("%v, want no error", errs)
			case test.want != "" && (len(errs) != 1 || !strings.Contains(errs[0].Error(), test.want) || !strings.Contains(errs[0].Error(), "shared")):
				t.Errorf("%v, want an error of shared with %q", errs, test.want)
			}
		})
	}
}
