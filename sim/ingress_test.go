package sim

import (
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seed90641741/spillway"
	"github.com/seed90641741/spillway/attempts"
	"github.com/seed90641741/spillway/ingress"
	"github.com/seed90641741/spillway/quota"
	"github.com/seed90641741/spillway/ratelimit"
	"github.com/seed90641741/spillway/retry"
)

// arrivals are requests as a task of the simulator gets them: with attempt numbers,
// classes and a customer, at what time.
type arrival struct {
	at   time.Duration
	call spillway.Call
	what string // has become of it
}

const workTime = 7 * time.Millisecond

// As for callers, but the shedder is left out: what package ingress tells it is the
// state of this process.
func TestTasksDecideAsIngressDoes(t *testing.T) {
	local := &quota.LocalConfig{Customers: map[string]quota.Limit{"a": {Rate: 60}, "b": {Rate: 500}}}
	for name, c := range map[string]struct {
		ingress.Config

		customers *quota.LocalConfig
	}{
		"limit":          {ingress.Config{RateLimit: ratelimit.Config{Rate: 100, BurstSeconds: 0.1}}, nil},
		"queue":          {ingress.Config{RateLimit: ratelimit.Config{Rate: 100, BurstSeconds: 0.1, QueueDepth: 5}}, nil},
		"quota":          {ingress.Config{}, local},
		"both":           {ingress.Config{RateLimit: ratelimit.Config{Rate: 90, BurstSeconds: 0.1, QueueDepth: 3}, RetryAfter: 30 * time.Millisecond}, local},
		"observed limit": {ingress.Config{RateLimit: ratelimit.Config{Rate: 50, QueueDepth: 2}, RateLimitMode: spillway.Observe, QuotaMode: spillway.Observe}, local},
		"don't retry":    {ingress.Config{RateLimit: ratelimit.Config{Rate: 20}, Attempts: attempts.Config{Share: 0.05, MinRequests: 20}}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			c.ShedMode = spillway.Off
			c.Trust.Boundary = ingress.Internal
			all := simulatedRequests(t, c.Config, c.customers)
			want := realRequests(t, c.Config, c.customers, all)
			kinds := map[string]int{}
			for i := range all {
				if all[i].what == "" {
					continue // under way at the end
				}
				kinds[all[i].what[:6]]++
				if all[i].what != want[i] {
					t.Fatalf("request %d at %v: sim %s, ingress %s", i, all[i].at, all[i].what, want[i])
				}
			}
			if len(kinds) < 2 && c.RateLimitMode != spillway.Observe {
				t.Errorf("all requests were treated alike: %v", kinds)
			}
		})
	}
}

func simulatedRequests(t *testing.T, c ingress.Config, customers *quota.LocalConfig) (all []arrival) {
	t.Helper()
	edge := Edge{To: "db", Latency: Uniform(time.Millisecond, 3*time.Millisecond), Retry: Retry{
		Unlimited: true, Budgeted: retry.BudgetedConfig{Attempts: 4, Backoff: retry.Backoff{Base: 50 * time.Millisecond}},
	}}
	edge.Egress.ThrottleMode = spillway.Off
	clients := func(name string, rate float64) Clients {
		return Clients{Name: "web-" + name, Rate: rate, Customer: name, Classes: [...]float64{1, 1, 1, 1}, Deadline: time.Second, Call: edge}
	}
	s, err := New(Config{
		Seed: 1, Duration: 10 * time.Second, Clients: []Clients{clients("a", 80), clients("b", 60)},
		Services: []Service{{Name: "db", Processors: 100, Wait: Constant(workTime), Ingress: &c, Customers: customers, Hints: true}},
	})
	if err != nil {
		t.Fatal(err)
	}
	index := map[*request]int{}
	s.witness.entered = func(r *request) {
		index[r] = len(all)
		all = append(all, arrival{at: time.Duration(s.now), call: r.call})
	}
	s.witness.replied = func(r *request) {
		took := time.Duration(s.now) - all[index[r]].at
		all[index[r]].what = fmt.Sprintf("%d hint %d after %v", r.reply, r.hint.Milliseconds(), took)
		if r.reply == hopeless {
			all[index[r]].what = fmt.Sprintf("%d after %v", hopeless, took)
		}
	}
	if _, err := s.Run(t.Context()); err != nil {
		t.Fatal(err)
	}
	return all
}

func realRequests(t *testing.T, c ingress.Config, customers *quota.LocalConfig, all []arrival) []string {
	t.Helper()
	what := make([]string, len(all))
	synctest.Test(t, func(t *testing.T) {
		if customers != nil {
			local, err := quota.NewLocal(*customers)
			if err != nil {
				t.Fatal(err)
			}
			c.Quota.Allocator = local
		}
		c.Rand = shared(1, gatesStream)
		server, err := ingress.New(c)
		if err != nil {
			t.Fatal(err)
		}
		defer server.Close()
		start := time.Now()
		var requests sync.WaitGroup
		for i := range all {
			time.Sleep(time.Until(start.Add(all[i].at)))
			requests.Go(func() {
				call := all[i].call
				call.Deadline = time.Time{} // of another clock
				what[i] = enter(t, server, call)
			})
			synctest.Wait()
		}
		requests.Wait()
	})
	return what
}

func enter(t *testing.T, server *ingress.Server, call spillway.Call) string {
	begun := time.Now()
	p, refusal := server.Enter(t.Context(), call, ratelimit.Caller{})
	if !refusal.Refused() {
		time.Sleep(workTime)
		p.Done(spillway.Served)
		return fmt.Sprintf("%d hint 0 after %v", served, time.Since(begun))
	}
	if refusal.DontRetry {
		return fmt.Sprintf("%d after %v", hopeless, time.Since(begun))
	}
	a := overloaded
	if refusal.Outcome == spillway.OverQuota {
		a = overQuota
	}
	return fmt.Sprintf("%d hint %d after %v", a, refusal.RetryAfter.Milliseconds(), time.Since(begun))
}
