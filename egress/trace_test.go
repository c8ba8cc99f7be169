package egress_test

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seed90641741/spillway"
	"github.com/seed90641741/spillway/egress"
	"github.com/seed90641741/spillway/fault"
	"github.com/seed90641741/spillway/inflight"
	"github.com/seed90641741/spillway/retry"
	"github.com/seed90641741/spillway/throttle"
)

var update = flag.Bool("update", false, "write the decisions of TestDecisions to testdata")

// A script is calls at random times to a backend that answers as it says. Each call has
// its own random numbers, so its answers do not depend on the other calls.
type script struct {
	config egress.Config
	calls  int
	every  time.Duration // between two calls, on average
	// answer returns how long attempt n of a call takes that is made after this share of
	// the calls, and its error.
	answer func(share float64, r *rand.Rand, n int) (time.Duration, error)
	// halfway, if not nil, is what the configuration is from half of the calls on.
	halfway *egress.Config
}

// failed is the answer of a backend, with everything that it can say.
type failed fault.Failure

func (failed) Error() string            { return "backend: failed" }
func (f failed) Failure() fault.Failure { return fault.Failure(f) }

// A journal has one line for each decision of a Client.
type journal struct {
	mu    sync.Mutex
	start time.Time
	text  strings.Builder
}

func (j *journal) addf(call, format string, args ...any) {
	j.mu.Lock()
	defer j.mu.Unlock()
	fmt.Fprintf(&j.text, "%11.6f call %3s ", time.Since(j.start).Seconds(), call)
	fmt.Fprintf(&j.text, format+"\n", args...)
}

func (j *journal) Observe(e spillway.Event) {
	what := "settled as " + e.Outcome.String()
	if e.Rejected {
		what = "rejected, " + e.Mode.String()
	}
	j.addf(e.Call.Customer, "attempt %d: %s %s", e.Call.Attempt, e.Policy, what)
}

// run returns the journal of s.
func (s *script) run(t *testing.T) (text string) {
	synctest.Test(t, func(t *testing.T) {
		r := rand.New(rand.NewPCG(18, 4))
		s.config.Throttle.Rand = numbers(5)
		j := &journal{start: time.Now()}
		s.config.Observer = j
		client := must(t, s.config)
		var all sync.WaitGroup
		for i := range s.calls {
			if i == s.calls/2 && s.halfway != nil {
				s.halfway.Observer, s.halfway.Retry, s.halfway.Throttle.Rand = j, s.config.Retry, s.config.Throttle.Rand
				if err := client.Update(*s.halfway); err != nil {
					t.Fatal(err)
				}
			}
			all.Go(func() { s.call(t.Context(), client, j, i) })
			time.Sleep(time.Duration(r.ExpFloat64() * float64(s.every)))
			synctest.Wait()
		}
		all.Wait()
		text = j.text.String()
	})
	return text
}

// call makes the call i.
func (s *script) call(ctx context.Context, client *egress.Client, j *journal, i int) {
	r, name := rand.New(rand.NewPCG(18, uint64(1000+i))), strconv.Itoa(i)
	ctx = spillway.WithCriticality(ctx, spillway.Sheddable+spillway.Criticality(r.IntN(spillway.Criticalities)))
	ctx, cancel := context.WithTimeout(ctx, time.Second+time.Duration(r.Float64()*float64(time.Second)))
	defer cancel()
	call := spillway.Call{Key: "route" + strconv.Itoa(i%3), Customer: name, Kind: spillway.KindRead}
	err := client.Do(ctx, call, func(ctx context.Context, a *egress.Attempt) error {
		j.addf(name, "attempt %d: run, not at %v", a.Number, a.Deprioritized())
		a.Use("task" + strconv.Itoa(r.IntN(3)))
		if r.IntN(4) == 0 {
			a.Advise(r.Float64())
		}
		took, err := s.answer(float64(i)/float64(s.calls), r, a.Number)
		select {
		case <-time.After(took + time.Duration(r.IntN(1e6))): // no two at the same time
		case <-ctx.Done():
			return ctx.Err()
		}
		if r.IntN(10) == 0 {
			place := new(inflight.Hold)
			a.Hold(context.WithoutCancel(ctx), place)
			time.AfterFunc(took, place.End)
		}
		return err
	})
	j.addf(name, "done: %s", ending(err))
}

// ending is err without the texts that explain it to people.
func ending(err error) string {
	rejected, isRejected := errors.AsType[*spillway.RejectedError](err)
	stopped, isStopped := errors.AsType[*retry.Error](err)
	switch {
	case err == nil:
		return "served"
	case isStopped && isRejected:
		return fmt.Sprintf("after %d attempts, rejected by %s", stopped.Attempts, rejected.Policy)
	case isStopped:
		return fmt.Sprintf("after %d attempts, %v", stopped.Attempts, stopped.Reason)
	case isRejected:
		return "rejected by " + rejected.Policy
	default:
		return err.Error()
	}
}

// overloads is a backend that accepts a third of the calls in the middle of the script.
func overloads(share float64, r *rand.Rand, _ int) (time.Duration, error) {
	took := time.Duration(r.ExpFloat64() * float64(20*time.Millisecond))
	if share > .3 && share < .7 && r.IntN(3) > 0 {
		return time.Millisecond, failed{Overload: true, Unprocessed: true, Party: fault.Server}
	}
	return took, nil
}

// hints is a backend that fails in all ways that there are.
func hints(_ float64, r *rand.Rand, _ int) (time.Duration, error) {
	took := time.Duration(r.ExpFloat64() * float64(20*time.Millisecond))
	f := failed{Overload: true, Unprocessed: true, Party: fault.Server, RetryAfter: 50 * time.Millisecond, HasRetryAfter: true}
	switch r.IntN(12) {
	case 0:
		f.Scope = fault.ScopeTask
	case 1:
		f.Scope, f.DontRetry = fault.ScopeService, true
	case 2:
		f.Scope, f.Party = fault.ScopeCustomer, fault.Client
	case 3:
		f.RetryAfter = time.Hour
	case 4:
		f = failed{Party: fault.Server}
	case 5:
		f = failed{Unsent: true}
	case 6:
		f = failed{Timeout: true}
	case 7:
		return time.Hour, nil // until the deadline
	case 8:
		return took, errBackend
	case 9:
		return took, context.Canceled
	default:
		return took, nil
	}
	return took, f
}

// numbers returns the random numbers of a stream. Only one call at a time needs one.
func numbers(stream uint64) func() float64 {
	var mu sync.Mutex
	r := rand.New(rand.NewPCG(18, stream))
	return func() float64 {
		mu.Lock()
		defer mu.Unlock()
		return r.Float64()
	}
}

// eager retries for nothing; thrifty out of a budget, after a wait.
func eager() retry.Strategy {
	return mustStrategy(retry.BudgetedConfig{Budget: retry.Unlimited{}, Rand: numbers(6)})
}

func thrifty() retry.Strategy {
	return mustStrategy(retry.BudgetedConfig{Backoff: retry.Backoff{Base: 20 * time.Millisecond, Max: time.Second}, Rand: numbers(7)})
}

func mustStrategy(c retry.BudgetedConfig) retry.Strategy { return strategy(retry.NewBudgeted(c)) }

// TestDecisions compares what a Client decides, on scripts with all its policies, with
// what it decided when testdata was written.
func TestDecisions(t *testing.T) {
	quick := throttle.Config{Window: 2 * time.Second, ProbeInterval: 200 * time.Millisecond, MinRequests: 3}
	observing := egress.Config{ThrottleMode: spillway.ModeObserve, InFlightMode: spillway.ModeObserve, MaxInFlight: 2, Throttle: quick}
	for name, s := range map[string]*script{
		"throttle": {config: egress.Config{Retry: eager(), Throttle: quick}, calls: 80, every: 5 * time.Millisecond, answer: overloads},
		"inflight": {
			config: egress.Config{Retry: eager(), MaxInFlight: 2, MaxInFlightByKey: map[string]int{"route1": 1}},
			calls:  60, every: 5 * time.Millisecond, answer: overloads,
		},
		"failures": {config: egress.Config{Retry: eager(), ThrottleMode: spillway.ModeOff}, calls: 60, every: 20 * time.Millisecond, answer: hints},
		"budget":   {config: egress.Config{Retry: thrifty(), Throttle: quick}, calls: 100, every: 5 * time.Millisecond, answer: hints},
		"observe":  {config: observing, calls: 60, every: 5 * time.Millisecond, answer: overloads},
		"update": {
			config: observing, calls: 60, every: 5 * time.Millisecond, answer: overloads,
			halfway: &egress.Config{MaxInFlight: 1, InFlightMode: spillway.ModeEnforce, Throttle: quick, MaxInFlightByKey: map[string]int{"route2": 1}},
		},
	} {
		if s.config.Retry == nil {
			s.config.Retry = thrifty()
		}
		t.Run(name, func(t *testing.T) { same(t, filepath.Join("testdata", "decisions", name+".txt"), s.run(t)) })
	}
}

// same compares a journal with the one in a file.
func same(t *testing.T, path, got string) {
	t.Helper()
	if *update {
		if err := os.WriteFile(path, []byte(got), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(string(want), "\n")
	for i, line := range strings.Split(got, "\n") {
		if i >= len(lines) || line != lines[i] {
			t.Fatalf("line %d is %q, want %q", i+1, line, lines[min(i, len(lines)-1)])
		}
	}
	if got != string(want) {
		t.Error("the journal ends too early")
	}
}
