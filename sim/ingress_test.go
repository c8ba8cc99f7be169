package sim

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"reflect"
	"runtime"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seed90641741/spillway"
	"github.com/seed90641741/spillway/attempts"
	"github.com/seed90641741/spillway/concurrency"
	"github.com/seed90641741/spillway/ingress"
	"github.com/seed90641741/spillway/internal/requests"
	"github.com/seed90641741/spillway/quota"
	"github.com/seed90641741/spillway/ratelimit"
	"github.com/seed90641741/spillway/retry"
	"github.com/seed90641741/spillway/shed"
)

// arrivals are requests as a task of the simulator gets them: with attempt numbers,
// classes and a customer, at what time.
type arrival struct {
	at   time.Duration
	call spillway.Call
	what string // has become of it
}

const workTime = 7 * time.Millisecond

// TestTasksDecideAsIngressDoes: a task and an [ingress.Server] decide the same on the same
// requests, at each gate. The servers forward requests, so that the state of this process does not
// count.
func TestTasksDecideAsIngressDoes(t *testing.T) {
	local := &quota.LocalConfig{Customers: map[string]quota.Limit{"a": {Rate: 60}, "b": {Rate: 500}}}
	one := concurrency.Config{MaxInFlight: 1, Fixed: true}
	noShed := func(c ingress.Config) ingress.Config {
		c.ShedMode = spillway.ModeOff
		return c
	}
	for name, c := range map[string]struct {
		ingress.Config

		customers *quota.LocalConfig
		kinds     []string
	}{
		"limit":       {noShed(ingress.Config{RateLimit: ratelimit.Config{Rate: 100, BurstSeconds: 0.1}}), nil, []string{"ratelimit/rate_limit"}},
		"queue":       {noShed(ingress.Config{RateLimit: ratelimit.Config{Rate: 100, BurstSeconds: 0.1, QueueDepth: 5}}), nil, []string{"ratelimit/rate_limit"}},
		"quota":       {noShed(ingress.Config{}), local, []string{"quota/quota"}},
		"both":        {noShed(ingress.Config{RateLimit: ratelimit.Config{Rate: 130, BurstSeconds: 0.1, QueueDepth: 3}, RetryAfter: 30 * time.Millisecond}), local, []string{"ratelimit/rate_limit", "quota/quota"}},
		"don't retry": {noShed(ingress.Config{RateLimit: ratelimit.Config{Rate: 20}, Attempts: attempts.Config{Share: 0.05, MinRequests: 20}}), nil, []string{"ratelimit/rate_limit"}},
		"in flight":   {noShed(ingress.Config{MaxInFlight: 1}), nil, []string{"inflight/queue_full", "inflight/higher_class"}},
		"shed":        {ingress.Config{Concurrency: one}, nil, []string{"shed/queue_full", "shed/higher_class"}},
		"all": {ingress.Config{
			RateLimit: ratelimit.Config{Rate: 230, BurstSeconds: 0.1, QueueDepth: 3}, MaxInFlight: 3, Concurrency: one, Shed: shed.Config{MaxWait: 30 * time.Millisecond},
		}, &quota.LocalConfig{Customers: map[string]quota.Limit{"a": {Rate: 110}}}, []string{"ratelimit/rate_limit", "quota/quota", "inflight/deadline", "shed/max_wait", "shed/higher_class"}},
	} {
		t.Run(name, func(t *testing.T) {
			c.Trust.Boundary, c.ProxyOnly, c.Load.Targets.Memory = ingress.Internal, true, -1
			all := simulatedRequests(t, c.Config, c.customers)
			want := realRequests(t, c.Config, c.customers, all)
			kinds := map[string]int{}
			for i := range all {
				if all[i].what == "" {
					continue // under way at the end
				}
				kind, _, _ := strings.Cut(all[i].what, " after")
				kinds[kind]++
				if all[i].what != want[i] {
					t.Fatalf("request %d at %v: sim %s, ingress %s", i, all[i].at, all[i].what, want[i])
				}
			}
			for _, kind := range append(c.kinds, "served") {
				if kinds[kind] < 3 {
					t.Errorf("%q occurs %d times, which tests nothing: %v", kind, kinds[kind], kinds)
				}
			}
		})
	}
}

func simulatedRequests(t *testing.T, c ingress.Config, customers *quota.LocalConfig) (all []arrival) {
	t.Helper()
	edge := Edge{To: "db", Latency: Uniform(time.Millisecond, 3*time.Millisecond), Retry: Retry{
		Unlimited: true, Budgeted: retry.BudgetedConfig{MaxAttempts: 4, Backoff: retry.Backoff{Base: 50 * time.Millisecond}},
	}}
	edge.Egress.ThrottleMode = spillway.ModeOff
	clients := func(name string, rate float64) Clients {
		customer, deadline := name, time.Second
		if c.ShedMode != spillway.ModeOff || c.MaxInFlight > 0 {
			rate *= 2
			deadline = c.Shed.MaxWait
			customer = "a" // which of two callers is treated as one depends on the process
		}
		return Clients{Name: "web-" + name, Rate: rate, Customer: customer, Classes: [...]float64{1, 1, 1, 1}, Deadline: cmp.Or(deadline, time.Second), Call: edge}
	}
	s, err := New(Config{
		Seed: 1, Duration: 10 * time.Second, Clients: []Clients{clients("a", 80), clients("b", 60)},
		Services: []Service{{
			Name: "db", Processors: runtime.GOMAXPROCS(0), Rejection: 1, Wait: Constant(workTime), Ingress: &c, Customers: customers, Hints: true,
		}},
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, task := range s.tasks {
		random := serverPolicies(&c)
		random.Rand = func() float64 { return drawAt(time.Duration(s.now)) }
		if customers != nil {
			random.Quota.Allocator, _ = quota.NewLocal(*customers)
		}
		if err := task.core.Update(random); err != nil {
			t.Fatal(err)
		}
	}
	index := map[*request]int{}
	s.witness.entered = func(r *request) {
		index[r] = len(all)
		all = append(all, arrival{at: time.Duration(s.now), call: r.call})
	}
	took := func(r *request) time.Duration { return time.Duration(s.now) - all[index[r]].at }
	s.witness.rejected = func(r *request, why ingress.Rejection) { all[index[r]].what = verdictOf(why, took(r)) }
	s.witness.replied = func(r *request) {
		if r.reply == served {
			all[index[r]].what = fmt.Sprintf("served after %v", took(r))
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
		start := time.Now()
		c.Rand = func() float64 { return drawAt(time.Since(start)) }
		server, err := ingress.New(c)
		if err != nil {
			t.Fatal(err)
		}
		defer server.Close()
		var requests sync.WaitGroup
		for i := range all {
			time.Sleep(time.Until(start.Add(all[i].at)))
			requests.Go(func() {
				call := all[i].call
				call.Deadline = start.Add(call.Deadline.Sub(epoch))
				what[i] = enter(t, server, call)
			})
			synctest.Wait()
		}
		requests.Wait()
	})
	return what
}

// drawAt returns a number that depends on the time only: in a Server, requests that are decided at
// one moment draw in no order.
func drawAt(at time.Duration) float64 { return math.Mod(float64(at)*math.Phi, 1) }

func enter(t *testing.T, server *ingress.Server, call spillway.Call) string {
	begun := time.Now()
	p, rejection := server.Enter(t.Context(), call, ratelimit.Caller{})
	if rejection.Rejected() {
		return verdictOf(rejection, time.Since(begun))
	}
	time.Sleep(workTime)
	p.Done(spillway.OutcomeServed)
	return fmt.Sprintf("served after %v", time.Since(begun))
}

// verdictOf returns which gate has rejected a request, why, and what the client learns.
func verdictOf(why ingress.Rejection, after time.Duration) string {
	by, _ := errors.AsType[*spillway.RejectedError](why.Err)
	return fmt.Sprintf("%s/%v after %v: %v, don't retry %v, hint %v", by.Policy, by.Reason, after, why.Outcome, why.DontRetry, why.RetryAfter)
}

// A task uses each field of its Ingress that is allowed to be set.
func TestTasksUseTheirIngress(t *testing.T) {
	core := serverPolicies(&ingress.Config{
		RateLimit: ratelimit.Config{Rate: 1}, Quota: quota.Config{Cost: 1}, CostKey: func(spillway.Call) string { return "" },
		MaxInFlight: 1, Shed: shed.Config{MaxWait: 1}, Concurrency: concurrency.Config{MaxInFlight: 1},
		LimitKey: func(string) string { return "" }, ProxyOnly: true, Attempts: attempts.Config{Share: 0.5}, RetryAfter: 1,
		RateLimitMode: 1, QuotaMode: 1, InFlightMode: 1, ShedMode: 1,
	})
	if want := (requests.Modes{RateLimit: 1, Quota: 1, InFlight: 1, Shed: 1}); core.Modes != want {
		t.Errorf("modes %+v", core.Modes)
	}
	others := map[string]bool{"Costs": true, "Exempt": true, "Rand": true, "Observer": true, "AcceptRatio": true}
	v := reflect.ValueOf(core)
	for i := range v.NumField() {
		if name := v.Type().Field(i).Name; v.Field(i).IsZero() != others[name] {
			t.Errorf("%s is set: %v", name, others[name])
		}
	}
}
