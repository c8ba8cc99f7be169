package spilltest

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"runtime/debug"
	"sync"
	"time"

	"github.com/seed90641741/spillway"
	"github.com/seed90641741/spillway/egress"
	"github.com/seed90641741/spillway/fault"
	"github.com/seed90641741/spillway/ingress"
	"github.com/seed90641741/spillway/load"
	"github.com/seed90641741/spillway/retry"
)

var errBurnt = errors.New("spilltest: a callback has panicked")

// A Fuse panics in a callback of the user, at one of its calls: [TestPanics] says when. It is safe for concurrent use.
type Fuse struct {
	// Point is the name of the field of [Points] that is tested, for what is configured differently there.
	Point string

	callback string // that panics

	mu     sync.Mutex
	at     int            // the call that panics
	lit    bool           // calls count
	paused bool           // calls do not count for now
	calls  map[string]int // of each callback
	runs   int            // of Work
	stack  []byte         // of the panic, once there was one
	caught bool
}

// String says which callback panics, and when.
func (f *Fuse) String() string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return fmt.Sprintf("%s panics at call %d", f.callback, f.at)
}

// Burn is called by each callback of the user with its name, and panics if it is the turn of that call.
func (f *Fuse) Burn(callback string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if !f.lit || f.paused {
		return
	}
	if f.calls[callback]++; callback == f.callback && f.calls[callback] == f.at {
		f.stack = debug.Stack()
		panic(errBurnt)
	}
}

// Observe is the callback Observer. It implements [spillway.Observer].
func (f *Fuse) Observe(spillway.Event) { f.Burn("Observer") }

// ObserveEnd is the callback ObserveEnd. It implements [ingress.EndObserver].
func (f *Fuse) ObserveEnd(spillway.Event) { f.Burn("ObserveEnd") }

// Try makes a call as the caller of a host does that recovers. The error is that of call, or says that it has panicked. Panics of others
// continue.
func (f *Fuse) Try(call func() error) (err error) {
	defer func() {
		if p := recover(); p != nil {
			if err = errBurnt; !f.Caught(p) {
				panic(p)
			}
		}
	}()
	if err = call(); err != nil {
		f.Caught(err)
	}
	return err
}

// Caught takes what a caller, or a middleware that recovers, has recovered, or the error that a host has made of a panic. It reports
// whether it comes from a callback.
func (f *Fuse) Caught(recovered any) bool {
	err, ok := recovered.(error)
	if !ok || !errors.Is(err, errBurnt) {
		return false
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.caught = true
	return true
}

// Egress returns c with all callbacks of package egress: the Observer, a strategy that retries at once, and a Budget that pays for all.
// A strategy that burns pays for no hedges: with c.Hedge, only its Budget burns.
func (f *Fuse) Egress(c egress.Config) egress.Config {
	c.Observer, c.ThrottleMode = f, spillway.ModeObserve
	if f.Point == "Rejected" {
		c.MaxInFlight = 1
	}
	c.Retry, _ = retry.NewBudgeted(retry.BudgetedConfig{Budget: burningBudget{f}})
	if c.Hedge == (retry.HedgeConfig{}) {
		c.Retry = burningStrategy{c.Retry, f}
	}
	return c
}

// Ingress returns c with all callbacks of package ingress that decide on requests.
func (f *Fuse) Ingress(c ingress.Config) ingress.Config {
	c.Observer, c.MaxInFlight = f, 1
	if f.Point == "Waiting" {
		c.Shed.MaxWait = 2 * longest
	}
	c.Rand = func() float64 { f.Burn("Rand"); return 0.5 }
	c.LimitKey = func(key string) string { f.Burn("LimitKey"); return key }
	c.Exempt = func(spillway.Call) bool { f.Burn("Exempt"); return false }
	c.Load.Signals = append(c.Load.Signals, load.Signal{Name: "spilltest", Read: func() float64 { f.Burn("Signal"); return 0 }})
	return c
}

// pause has calls not count until it is resumed.
func (f *Fuse) pause() (resume func()) {
	set := func(paused bool) {
		f.mu.Lock()
		defer f.mu.Unlock()
		f.paused = paused
	}
	set(true)
	return func() { set(false) }
}

// light has the n-th call from now panic; if n is zero, none. It returns how often each callback was called until now.
func (f *Fuse) light(n int) (calls map[string]int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	calls = maps.Clone(f.calls)
	f.calls, f.lit = make(map[string]int), calls == nil
	if n > 0 {
		f.at = n
	}
	return calls
}

// burntIn reports whether a callback has panicked below one of these functions.
func (f *Fuse) burntIn(functions map[string]string) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	for name := range functions {
		if bytes.Contains(f.stack, []byte(name)) {
			return true
		}
	}
	return false
}

func (f *Fuse) isBurnt() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.stack != nil
}

func (f *Fuse) isCaught() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.caught
}

// burningBudget is a budget that pays for everything.
type burningBudget struct{ *Fuse }

// Withdraw implements [retry.Budget].
func (b burningBudget) Withdraw(time.Time, string, float64) (left, capacity float64, ok bool) {
	b.Burn("Budget")
	return 1, 1, true
}

// Deposit implements [retry.Budget].
func (b burningBudget) Deposit(string, float64) { b.Burn("Budget") }

type burningStrategy struct {
	retry.Strategy

	f *Fuse
}

func (s burningStrategy) Begin(call spillway.Call) retry.Token {
	s.f.Burn("Retry")
	return s.Strategy.Begin(call)
}

func (s burningStrategy) Refresh(now time.Time, t retry.Token, f fault.Failure) (retry.Token, error) {
	s.f.Burn("Retry")
	return s.Strategy.Refresh(now, t, f)
}

func (s burningStrategy) Succeed(t retry.Token) error {
	s.f.Burn("Retry")
	return s.Strategy.Succeed(t)
}

func (s burningStrategy) Release(t retry.Token, f fault.Failure) error {
	s.f.Burn("Retry")
	return s.Strategy.Release(t, f)
}
