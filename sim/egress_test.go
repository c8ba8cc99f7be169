package sim

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seed90641741/spillway"
	"github.com/seed90641741/spillway/budget"
	"github.com/seed90641741/spillway/egress"
	"github.com/seed90641741/spillway/fault"
	"github.com/seed90641741/spillway/retry"
	"github.com/seed90641741/spillway/throttle"
)

// replyError is the error that an adapter makes of a reply.
type replyError fault.Failure

func (replyError) Error() string            { return "backend: rejected" }
func (e replyError) Failure() fault.Failure { return fault.Failure(e) }

// A decision is something that a caller does.
type decision struct {
	at   time.Duration
	call time.Duration // its intended start, by which it is known
	what string
}

func sorted(all []decision) []decision {
	slices.SortFunc(all, func(a, b decision) int {
		if a.at != b.at {
			return int(a.at - b.at)
		}
		return int(a.call - b.call)
	})
	return all
}

// oneWay is how long a message takes, and patience how long a call has.
const (
	oneWay   = 3 * time.Millisecond
	patience = 2 * time.Second
)

// weather returns the response to a request that arrives at the given time.
func weather(at time.Duration) reply {
	switch (at / (4 * time.Second)) % 5 {
	case 1:
		return overloaded
	case 2:
		return 0 // no answer
	case 3:
		return unreachable
	default:
		return served
	}
}

func weatherFaults(until time.Duration) (all []Fault) {
	for at := time.Duration(0); at < until; at += 20 * time.Second {
		for i, k := range []FaultKind{Reject, Drop, Outage} {
			all = append(all, Fault{Kind: k, Service: "db", At: at + time.Duration(i+1)*4*time.Second, For: 4 * time.Second})
		}
	}
	return all
}

// traceOf is the times of calls: at random, so that no two things happen at once.
func traceOf(n int, mean time.Duration) (all []time.Duration) {
	r, at := newStream(3, 99), 0.0
	for range n {
		at += float64(mean) * r.exponential()
		all = append(all, time.Duration(at))
	}
	return all
}

// The simulator is its own shell around the core of package egress, with policies
// that it makes only when they matter. Here both shells get the same calls, backend and
// randomness, and must decide alike, to the nanosecond.
func TestCallersDecideAsEgressDoes(t *testing.T) {
	for name, edge := range map[string]Edge{
		"defaults":        {},
		"tight":           {Egress: egress.Config{MaxInFlight: 2, Throttle: throttle.Config{K: 1.2, Window: 5 * time.Second}}},
		"backoff":         {Retry: Retry{Budgeted: retry.BudgetedConfig{MaxAttempts: 5, Ratio: 1, Backoff: retry.Backoff{Base: 20 * time.Millisecond}}}},
		"standard":        {Retry: Retry{Strategy: AWSStandard}},
		"overload":        {Retry: Retry{Strategy: MongoDB, Budget: &budget.Config{Capacity: 30}}},
		"unlimited":       {Retry: Retry{Strategy: MongoDB}},
		"observing":       {Egress: egress.Config{MaxInFlight: 1, ThrottleMode: spillway.ModeObserve, InFlightMode: spillway.ModeObserve}},
		"nothing":         {Egress: egress.Config{ThrottleMode: spillway.ModeOff, InFlightMode: spillway.ModeOff}, Retry: Retry{Unlimited: true}},
		"attempt timeout": {Timeout: 70 * time.Millisecond, Retry: Retry{Budgeted: retry.BudgetedConfig{Ratio: 1}}},
		"writes":          {Kind: spillway.KindWrite},
	} {
		t.Run(name, func(t *testing.T) {
			trace := traceOf(2500, 20*time.Millisecond)
			edge.To, edge.Latency = "db", Constant(oneWay)
			got, want := simulated(t, edge, trace), inEarnest(t, edge, trace)
			if len(got) < len(trace)*4/3 { // what is rejected has one
				t.Errorf("only %d decisions on %d calls", len(got), len(trace))
			}
			for i := range max(len(got), len(want)) {
				if i >= len(got) || i >= len(want) || got[i] != want[i] {
					t.Fatalf("decision %d of %d and %d:\nsim    %v\negress %v", i, len(got), len(want), tail(got, i), tail(want, i))
				}
			}
		})
	}
}

func tail(all []decision, i int) []decision { return all[min(i, len(all)):min(i+3, len(all))] }

func simulated(t *testing.T, edge Edge, trace []time.Duration) (all []decision) {
	t.Helper()
	until := trace[len(trace)-1] + time.Minute
	s, err := New(Config{
		Seed: 1, Duration: until, Faults: weatherFaults(until),
		Clients:  []Clients{{Name: "web", Trace: trace, Deadline: patience, Call: edge}},
		Services: []Service{{Name: "db"}},
	})
	if err != nil {
		t.Fatal(err)
	}
	s.witness.attempt = func(c *call) {
		all = append(all, decision{time.Duration(s.now), time.Duration(c.intended), fmt.Sprint("attempt ", c.call.Attempt)})
	}
	s.witness.ended = func(c *call, o outcome) {
		all = append(all, decision{time.Duration(s.now), time.Duration(c.intended), fmt.Sprint("outcome ", o)})
	}
	if _, err := s.Run(t.Context()); err != nil {
		t.Fatal(err)
	}
	return sorted(all)
}

// inEarnest makes the calls with an egress.Client, whose policies draw from the streams
// with the numbers that they have in the simulator.
func inEarnest(t *testing.T, edge Edge, trace []time.Duration) (all []decision) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		start := time.Now()
		var mu sync.Mutex
		note := func(call time.Duration, what string) {
			mu.Lock()
			defer mu.Unlock()
			all = append(all, decision{time.Since(start), call, what})
		}
		client, levels := clientOf(t, edge), newStream(1, levelStreams)
		var calls sync.WaitGroup
		for _, at := range trace {
			call := spillway.Call{Key: "db", Kind: cmp.Or(edge.Kind, spillway.KindRead), Level: spillway.Level(levels.below(spillway.Levels) + 1)}
			time.Sleep(time.Until(start.Add(at)))
			calls.Go(func() {
				ctx, cancel := context.WithDeadline(t.Context(), start.Add(at+patience))
				defer cancel()
				err := client.Do(ctx, call, func(ctx context.Context, a *egress.Attempt) error {
					note(at, fmt.Sprint("attempt ", a.Number))
					return attemptOf(ctx, edge.Timeout, start)
				})
				note(at, fmt.Sprint("outcome ", outcomeOfError(err)))
			})
		}
		calls.Wait()
	})
	return sorted(all)
}

func clientOf(t *testing.T, edge Edge) *egress.Client {
	t.Helper()
	if edge.Retry.Strategy == "" {
		edge.Retry.Strategy = Budgeted
	}
	b, err := budget.New(edge.Retry.bucket())
	if err != nil {
		t.Fatal(err)
	}
	c := edge.Egress
	if c.Retry, err = edge.Retry.strategy(b, shared(1, strategyStream)); err != nil {
		t.Fatal(err)
	}
	c.Throttle.Rand = shared(1, throttleStream)
	client, err := egress.New(c)
	if err != nil {
		t.Fatal(err)
	}
	return client
}

// shared is a stream that several goroutines may use.
func shared(seed, id uint64) func() float64 {
	var mu sync.Mutex
	s := newStream(seed, id)
	return func() float64 {
		mu.Lock()
		defer mu.Unlock()
		return s.float()
	}
}

// The numbers of streams where there is one service and one group.
const (
	strategyStream = 7
	throttleStream = 8
)

func attemptOf(ctx context.Context, timeout time.Duration, start time.Time) error {
	if timeout > 0 {
		var cancel func()
		ctx, cancel = context.WithTimeout(ctx, timeout)
		defer cancel()
	}
	a := reply(0)
	select {
	case <-time.After(oneWay):
		a = weather(time.Since(start))
	case <-ctx.Done():
	}
	if a == 0 {
		<-ctx.Done()
		return ctx.Err()
	}
	select {
	case <-time.After(oneWay):
	case <-ctx.Done():
		return ctx.Err()
	}
	if a == served {
		return nil
	}
	return replyError(a.failure(0))
}

func outcomeOfError(err error) outcome {
	if err == nil {
		return good
	}
	if e, ok := errors.AsType[*spillway.RejectedError](err); ok {
		return map[string]outcome{"throttle": rejectedThrottle, "inflight": rejectedInflight}[e.Policy]
	}
	f := fault.Of(err)
	if e, ok := errors.AsType[*retry.Error](err); ok {
		f.Timeout = e.Timeout()
	}
	switch {
	case f.Timeout:
		return timedOut
	case f.Overload:
		return rejectedByBackend
	default:
		return failed
	}
}
