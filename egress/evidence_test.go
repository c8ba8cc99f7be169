package egress_test

import (
	"context"
	"errors"
	"net"
	"os"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seed90641741/spillway"
	"github.com/seed90641741/spillway/budget"
	"github.com/seed90641741/spillway/egress"
	"github.com/seed90641741/spillway/fault"
	"github.com/seed90641741/spillway/inflight"
	"github.com/seed90641741/spillway/retry"
)

// TestContextsThatHaveEnded: calls whose contexts have ended before they are sent are not sent, move nothing, and
// return the error of the context.
func TestContextsThatHaveEnded(t *testing.T) {
	expired, stop := context.WithDeadline(t.Context(), time.Now().Add(-time.Second))
	defer stop()
	canceled, cancel := context.WithCancel(t.Context())
	cancel()
	for _, row := range []struct {
		name string
		ctx  context.Context
		call spillway.Call
		want error
	}{
		{"expired", expired, spillway.Call{}, context.DeadlineExceeded},
		{"canceled", canceled, spillway.Call{}, context.Canceled},
		{"a deadline of the call", t.Context(), spillway.Call{Deadline: time.Now().Add(-time.Second)}, context.DeadlineExceeded},
	} {
		t.Run(row.name, func(t *testing.T) {
			client, sent := must(t, egress.Config{}), 0
			send := func(context.Context, *egress.Attempt) error { sent++; return nil }
			for range 50 {
				_ = client.Do(t.Context(), spillway.Call{}, send)
			}
			before := client.Stats(time.Now())
			for range 300 {
				err := client.Do(row.ctx, row.call, send)
				if f := fault.Of(err); !errors.Is(err, row.want) || errors.Is(err, spillway.ErrRejected) || !f.Unsent || f.Retryable(true) {
					t.Fatalf("%v (%+v), want %v", err, f, row.want)
				}
			}
			if after := client.Stats(time.Now()); sent != 50 || after.Throttle != before.Throttle {
				t.Errorf("%d sent, and the throttle learnt %+v", sent, after.Throttle)
			}
			for i := range 100 {
				if err := client.Do(t.Context(), spillway.Call{}, send); err != nil {
					t.Fatalf("call %d: %v", i, err)
				}
			}
		})
	}
}

// TestWhatAFailureTeaches: which failures move the throttle, earn budget, and are repeated.
func TestWhatAFailureTeaches(t *testing.T) {
	dial := func(op string, errno error) error {
		return &net.OpError{Op: "dial", Net: "tcp", Err: os.NewSyscallError(op, errno)}
	}
	for name, row := range map[string]struct {
		err                       error
		attempts                  int
		informs, accepted, earned bool
	}{
		"no descriptor":      {dial("socket", syscall.EMFILE), 3, false, false, false},
		"no port":            {dial("connect", syscall.EADDRNOTAVAIL), 3, false, false, false},
		"no name":            {&net.DNSError{Err: "server misbehaving"}, 3, false, false, false},
		"no proxy":           {&net.OpError{Op: "proxyconnect", Err: errors.New("x")}, 3, false, false, false},
		"no URL":             {&net.AddrError{}, 1, false, false, false},
		"rejected":           {&spillway.RejectedError{}, 1, false, false, false},
		"connection refused": {dial("connect", syscall.ECONNREFUSED), 3, true, false, false},
		"timed out":          {os.ErrDeadlineExceeded, 3, true, false, false},
		"reset":              {&net.OpError{Op: "read", Err: syscall.ECONNRESET}, 3, true, true, false},
		"answered":           {errBackend, 3, true, true, true},
		"over quota":         {throttled{}, 1, false, false, false},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b, err := budget.New(budget.Config{Capacity: 1000})
				if err != nil {
					t.Fatal(err)
				}
				strategy, err := retry.NewBudgeted(retry.BudgetedConfig{Budget: b})
				if err != nil {
					t.Fatal(err)
				}
				client, attempts := must(t, egress.Config{Retry: strategy}), 0
				b.Withdraw(time.Now(), "", 500)
				tokens := b.Stats(time.Now()).Tokens
				_ = client.Do(t.Context(), spillway.Call{Idempotent: true}, func(context.Context, *egress.Attempt) error {
					attempts++
					time.Sleep(time.Second)
					return row.err
				})
				class := client.Stats(time.Now()).Throttle[spillway.Critical.Index()]
				if attempts != row.attempts || class.Requests > 0 != row.informs || class.Accepts > 0 != row.accepted {
					t.Errorf("%d attempts, throttle %+v, want %+v", attempts, class, row)
				}
				paid := float64(row.attempts - 1)
				if !row.informs {
					paid = 0 // nothing was sent
				}
				if row.earned {
					paid -= 0.1
				}
				if got := tokens - b.Stats(time.Now()).Tokens; got > paid+1e-9 || got < paid-1e-9 {
					t.Errorf("%v tokens paid, want %v", got, paid)
				}
			})
		})
	}
}

type throttled struct{}

func (throttled) Error() string             { return "quota" }
func (throttled) Throttle() bool            { return true }
func (throttled) Fault() fault.Party        { return fault.Client }
func (throttled) RetrySafety() fault.Safety { return fault.RetrySafe }

// TestLocalErrorsPass: 100 calls for which this process has no descriptor, then all is well, at once.
func TestLocalErrorsPass(t *testing.T) {
	for _, errno := range []error{syscall.EMFILE, syscall.ENFILE, syscall.EADDRNOTAVAIL, syscall.ENETUNREACH} {
		client := must(t, egress.Config{})
		for range 100 {
			_ = client.Do(t.Context(), spillway.Call{}, func(context.Context, *egress.Attempt) error {
				return &net.OpError{Op: "dial", Net: "tcp", Err: os.NewSyscallError("socket", errno)}
			})
		}
		for i := range 100 {
			if err := client.Do(t.Context(), spillway.Call{}, works); err != nil {
				t.Fatalf("%v: call %d: %v", errno, i, err)
			}
		}
	}
}

// TestPlaceEndsWithItsContext: answers that their callers forget do not keep their places.
func TestPlaceEndsWithItsContext(t *testing.T) {
	client := must(t, egress.Config{MaxInFlight: 50})
	for i := range 500 {
		ctx, cancel := context.WithCancel(t.Context())
		if err := client.Do(ctx, spillway.Call{}, func(ctx context.Context, a *egress.Attempt) error {
			a.Hold(ctx, new(inflight.Hold))
			return nil
		}); err != nil {
			t.Fatalf("call %d: %v", i, err)
		}
		cancel()
	}
	if n := client.Stats(time.Now()).InFlight.InFlight; n != 0 {
		t.Errorf("%d in flight", n)
	}
}

// mixed makes calls for six seconds to a backend that takes 20 ms: honest callers, which wait for a second, and hasty
// ones with deadlines of 8 ms. It returns how many honest calls were served, and how many were rejected.
func mixed(t *testing.T, hasty int, route func(hasty bool) string) (served, rejected int) {
	synctest.Test(t, func(t *testing.T) {
		client := must(t, egress.Config{})
		var all sync.WaitGroup
		var mu sync.Mutex
		call := func(route string, limit time.Duration) error {
			ctx, cancel := context.WithTimeout(t.Context(), limit)
			defer cancel()
			return client.Do(ctx, spillway.Call{Key: route}, func(ctx context.Context, _ *egress.Attempt) error {
				return sleep(ctx, 20*time.Millisecond)
			})
		}
		for end := time.Now().Add(6 * time.Second); time.Now().Before(end); time.Sleep(25 * time.Millisecond) {
			for range hasty {
				all.Go(func() { _ = call(route(true), 8*time.Millisecond) })
			}
			all.Go(func() {
				err := call(route(false), time.Second)
				mu.Lock()
				defer mu.Unlock()
				if err == nil {
					served++
				} else if errors.Is(err, spillway.ErrRejected) {
					rejected++
				}
			})
		}
		all.Wait()
	})
	return served, rejected
}

// TestShortDeadlines: a wait that is shorter than calls of the route usually take says nothing about the backend.
func TestShortDeadlines(t *testing.T) {
	want, _ := mixed(t, 0, func(bool) string { return "a" })
	for _, hasty := range []int{1, 4, 40} {
		if got, rejected := mixed(t, hasty, func(bool) string { return "a" }); got < want-1 || rejected > 1 {
			t.Errorf("with %d hasty callers: %d served and %d rejected, want %d served", hasty, got, rejected, want)
		}
	}
	if got, rejected := mixed(t, 4, func(hasty bool) string { return map[bool]string{true: "b", false: "a"}[hasty] }); got < want-1 {
		t.Errorf("with hasty callers of another route: %d served and %d rejected, want %d served", got, rejected, want)
	}
}

// TestSilentBackendHasNoExcuse: a backend that serves nothing any more is throttled, however short the
// deadlines are.
func TestSilentBackendHasNoExcuse(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client, silent, rejected := must(t, egress.Config{}), false, 0
		start := time.Now()
		for time.Since(start) < time.Minute {
			silent = time.Since(start) > 5*time.Second
			limit := 8 * time.Millisecond
			if !silent && time.Since(start)%(80*time.Millisecond) < 10*time.Millisecond {
				limit = time.Second
			}
			ctx, cancel := context.WithTimeout(t.Context(), limit)
			err := client.Do(ctx, spillway.Call{}, func(ctx context.Context, _ *egress.Attempt) error {
				if silent {
					<-ctx.Done()
					return ctx.Err()
				}
				return sleep(ctx, 20*time.Millisecond)
			})
			cancel()
			if errors.Is(err, spillway.ErrRejected) {
				if rejected++; time.Since(start) < 5*time.Second {
					t.Fatalf("rejected after %v", time.Since(start))
				}
			}
			time.Sleep(10 * time.Millisecond)
		}
		if rejected < 1000 {
			t.Errorf("%d calls to a silent backend were rejected", rejected)
		}
	})
}
