package spilltest_test

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/seed90641741/spillway"
	"github.com/seed90641741/spillway/egress"
	"github.com/seed90641741/spillway/fault"
	"github.com/seed90641741/spillway/inflight"
	"github.com/seed90641741/spillway/internal/race"
	"github.com/seed90641741/spillway/retry"
	"github.com/seed90641741/spillway/spilltest"
)

// A wrapped gate breaks one clause of the contract.
type wrapped struct {
	spillway.Gate

	admit func(g spillway.Gate, now time.Time, c spillway.Call) (spillway.Ticket, error)
}

func (w *wrapped) Admit(now time.Time, c spillway.Call) (spillway.Ticket, error) {
	return w.admit(w.Gate, now, c)
}

// forgetful settles each ticket twice.
type forgetful struct{ by spillway.Settler }

func (f *forgetful) Settle(now time.Time, t spillway.Ticket, o spillway.Outcome) {
	f.by.Settle(now, t, o)
	f.by.Settle(now, t, o)
}

var errOther = errors.New("other")

// brokenGates have one fault each, by the clause that finds it.
var brokenGates = map[string]func(g spillway.Gate, now time.Time, c spillway.Call) (spillway.Ticket, error){
	"rejections are typed": func(g spillway.Gate, now time.Time, c spillway.Call) (spillway.Ticket, error) {
		ticket, err := g.Admit(now, c)
		if err != nil {
			return ticket, errOther
		}
		return ticket, nil
	},
	"a ticket counts once": func(g spillway.Gate, now time.Time, c spillway.Call) (spillway.Ticket, error) {
		ticket, err := g.Admit(now, c)
		if err == nil {
			ticket.By = &forgetful{ticket.By}
		}
		return ticket, err
	},
	"a suspended ticket counts once": func(g spillway.Gate, now time.Time, c spillway.Call) (spillway.Ticket, error) {
		ticket, err := g.Admit(now, c)
		if err == nil {
			ticket.By = &leaking{by: ticket.By}
		}
		return ticket, err
	},
	"any outcome ends a call": func(g spillway.Gate, now time.Time, c spillway.Call) (spillway.Ticket, error) {
		ticket, err := g.Admit(now, c)
		if err == nil {
			ticket.By = &keeping{ticket.By}
		}
		return ticket, err
	},
	"any call and any time": func(g spillway.Gate, now time.Time, c spillway.Call) (spillway.Ticket, error) {
		if !c.Criticality.Valid() {
			return spillway.Ticket{}, errOther
		}
		return g.Admit(now, c)
	},
	"no allocations": func(g spillway.Gate, now time.Time, c spillway.Call) (spillway.Ticket, error) {
		sink = make([]byte, 64)
		return g.Admit(now, c)
	},
}

var sink []byte

// leaking counts a suspended request as ended twice more.
type leaking struct{ by spillway.Settler }

func (l *leaking) Settle(now time.Time, t spillway.Ticket, o spillway.Outcome) {
	l.by.Settle(now, t, o)
}

func (l *leaking) Suspend(now time.Time, t spillway.Ticket) spillway.Ticket {
	l.by.Settle(now, t, spillway.OutcomeServed)
	return t
}

func (l *leaking) Resume(_ time.Time, t spillway.Ticket) spillway.Ticket { return t }

// keeping forgets calls whose client has left.
type keeping struct{ by spillway.Settler }

func (k *keeping) Settle(now time.Time, t spillway.Ticket, o spillway.Outcome) {
	if o != spillway.OutcomeAbandoned {
		k.by.Settle(now, t, o)
	}
}

// brokenStacks have one fault each, by the clause that finds it.
var brokenStacks = map[string]func(s *spilltest.Stack){
	"each call is settled once": func(s *spilltest.Stack) {
		do := s.Do
		s.Do = func(ctx context.Context, work func(context.Context) error) error {
			return do(ctx, func(ctx context.Context) error { _ = work(ctx); return nil })
		}
	},
	"panic": func(s *spilltest.Stack) {
		leaked, inFlight := atomic.Int64{}, s.InFlight
		do := s.Do
		s.InFlight = func() int { return inFlight() + int(leaked.Load()) }
		s.Do = func(ctx context.Context, work func(context.Context) error) error {
			leaked.Add(1)
			err := do(ctx, work)
			leaked.Add(-1)
			return err
		}
	},
	"panic of the observer": func(s *spilltest.Stack) {
		do := s.Do
		s.Do = func(ctx context.Context, work func(context.Context) error) (err error) {
			defer func() { _ = recover() }()
			return do(ctx, work)
		}
	},
	"cancel": func(s *spilltest.Stack) {
		do := s.Do
		s.Do = func(ctx context.Context, work func(context.Context) error) error {
			err := do(ctx, work)
			if errors.Is(err, context.Canceled) {
				return nil
			}
			return err
		}
	},
	"cancel while it waits": func(s *spilltest.Stack) {
		do := s.Do
		s.Do = func(ctx context.Context, work func(context.Context) error) error {
			err := do(ctx, work)
			if err != nil && ctx.Done() != nil {
				select { // the caller leaves soon
				case <-ctx.Done():
					return work(ctx)
				case <-time.After(time.Second):
				}
			}
			return err
		}
	},
	"limit": func(s *spilltest.Stack) { s.Rejected = func(err error) bool { return errors.Is(err, errOther) } },
	"update in flight": func(s *spilltest.Stack) {
		s.Update = func(spilltest.Setup) error { return nil }
	},
	"concurrent calls": func(s *spilltest.Stack) {
		s.Do = func(ctx context.Context, work func(context.Context) error) error { return work(ctx) }
	},
	"no allocations": func(s *spilltest.Stack) {
		do := s.Do
		s.Do = func(ctx context.Context, work func(context.Context) error) error {
			sink = make([]byte, 64)
			return do(ctx, work)
		}
	},
}

// A careless strategy passes on what its funcs let through.
type careless struct {
	retry.Strategy

	succeed func(s retry.Strategy, t retry.Token) error
	release func(s retry.Strategy, t retry.Token, f fault.Failure) error
}

func (c *careless) Succeed(t retry.Token) error {
	if c.succeed != nil {
		return c.succeed(c.Strategy, t)
	}
	return c.Strategy.Succeed(t)
}

func (c *careless) Release(t retry.Token, f fault.Failure) error {
	if c.release != nil {
		return c.release(c.Strategy, t, f)
	}
	return c.Strategy.Release(t, f)
}

// brokenRetries make calls with one fault each, by the clause that finds it.
var brokenRetries = map[string]func(s retry.Strategy) spilltest.Do{
	"each call is settled once": func(s retry.Strategy) spilltest.Do {
		return retries(&careless{Strategy: s, succeed: func(s retry.Strategy, t retry.Token) error {
			return errors.Join(s.Succeed(t), s.Succeed(t))
		}})
	},
	"panic": func(s retry.Strategy) spilltest.Do {
		return retries(&careless{Strategy: s, release: func(retry.Strategy, retry.Token, fault.Failure) error { return nil }})
	},
	"cancel": func(s retry.Strategy) spilltest.Do {
		do := retries(s)
		return func(ctx context.Context, work func(context.Context) error) error {
			if err := do(ctx, work); !errors.Is(err, context.Canceled) {
				return err
			}
			return nil
		}
	},
	"cancel before a retry": func(s retry.Strategy) spilltest.Do {
		return retries(&careless{Strategy: s, release: func(s retry.Strategy, t retry.Token, _ fault.Failure) error {
			return s.Release(t, fault.Failure{})
		}})
	},
	"concurrent calls": func(s retry.Strategy) spilltest.Do {
		var n atomic.Int64
		return retries(&careless{Strategy: s, succeed: func(s retry.Strategy, t retry.Token) error {
			if n.Add(1)%10 == 0 {
				return nil
			}
			return s.Succeed(t)
		}})
	},
}

func retries(s retry.Strategy) spilltest.Do {
	return func(ctx context.Context, work func(context.Context) error) error {
		return retry.Do(ctx, s, spillway.Call{}, func(ctx context.Context, _ *retry.Attempt) error { return work(ctx) })
	}
}

// brokenEnv asks this test binary for the failing tests.
const brokenEnv = "SPILLTEST_BROKEN"

// TestBrokenGate, TestBrokenStack and TestBrokenRetries fail, in a process of their own: see
// TestFaultsAreFound.
func TestBrokenGate(t *testing.T) {
	if os.Getenv(brokenEnv) == "" {
		t.Skip("fails on purpose, only in the process that TestFaultsAreFound starts")
	}
	for clause, admit := range brokenGates {
		t.Run(clause, func(t *testing.T) {
			spilltest.TestGate(t, func(*testing.T) spillway.Gate {
				return &wrapped{must(inflight.New(inflight.Config{MaxInFlight: 5})), admit}
			})
		})
	}
}

func TestBrokenStack(t *testing.T) {
	if os.Getenv(brokenEnv) == "" {
		t.Skip("fails on purpose, only in the process that TestFaultsAreFound starts")
	}
	spilltest.SetPatience(50 * time.Millisecond)
	for clause, breaks := range brokenStacks {
		t.Run(clause, func(t *testing.T) {
			spilltest.TestStack(t, func(t *testing.T, s spilltest.Setup) spilltest.Stack {
				stack := clientStack(t, s)
				breaks(&stack)
				return stack
			})
		})
	}
	t.Run("observe equals enforce", func(t *testing.T) {
		spilltest.TestStack(t, func(t *testing.T, s spilltest.Setup) spilltest.Stack {
			s.Limit += int(s.Mode) // one more in the mode observe
			return clientStack(t, s)
		})
	})
}

func TestBrokenRetries(t *testing.T) {
	if os.Getenv(brokenEnv) == "" {
		t.Skip("fails on purpose, only in the process that TestFaultsAreFound starts")
	}
	for clause, open := range brokenRetries {
		t.Run(clause, func(t *testing.T) {
			spilltest.TestRetries(t, func(_ *testing.T, s retry.Strategy) spilltest.Do { return open(s) })
		})
	}
}

// TestFaultsAreFound: each fault fails the clause that it breaks.
func TestFaultsAreFound(t *testing.T) {
	run := exec.Command(os.Args[0], "-test.run=^TestBroken(Gate|Stack|Retries)$", "-test.v")
	run.Env = append(os.Environ(), brokenEnv+"=1")
	out, err := run.CombinedOutput()
	if _, ok := errors.AsType[*exec.ExitError](err); !ok {
		t.Fatalf("%v\n%s", err, out)
	}
	fails := func(test, clause string) {
		name := "--- FAIL: " + test + "/" + strings.ReplaceAll(clause+"/"+clause, " ", "_") + " "
		if !strings.Contains(string(out), name) {
			t.Errorf("no %q in\n%s", name, out)
		}
	}
	for clause := range brokenGates {
		fails("TestBrokenGate", clause)
	}
	for clause := range brokenStacks {
		if clause != "no allocations" || !race.Enabled {
			fails("TestBrokenStack", clause)
		}
	}
	fails("TestBrokenStack", "observe equals enforce")
	for clause := range brokenRetries {
		fails("TestBrokenRetries", clause)
	}
}

func clientStack(_ *testing.T, s spilltest.Setup) spilltest.Stack {
	config := func(s spilltest.Setup) egress.Config {
		return egress.Config{MaxInFlight: s.Limit, InFlightMode: s.Mode, Observer: s.Observer}
	}
	c := must(egress.New(config(s)))
	return spilltest.Stack{
		Do: func(ctx context.Context, work func(context.Context) error) error {
			return c.Do(ctx, spillway.Call{}, func(ctx context.Context, _ *egress.Attempt) error { return work(ctx) })
		},
		InFlight: func() int { return c.Stats(time.Now()).InFlight.InFlight },
		Update:   func(s spilltest.Setup) error { return c.Update(config(s)) },
	}
}
