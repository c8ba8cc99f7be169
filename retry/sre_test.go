package retry_test

import (
	"context"
	"errors"
	"math"
	"math/rand/v2"
	"strconv"
	"testing"
	"time"

	"github.com/seed90641741/spillway"
	"github.com/seed90641741/spillway/fault"
	"github.com/seed90641741/spillway/internal/race"
	"github.com/seed90641741/spillway/retry"
)

// sre is the file of facts.
type sre struct {
	Attempts struct {
		PerRequest int   `json:"per_request"`
		Counter    []int `json:"counter_in_metadata"`
	}
	Amplification struct {
		NoBudget []struct {
			Load, Value float64
		} `json:"no_budget_3_attempts"`
		Tolerance   float64
		OfOriginals float64 `json:"with_10pct_of_originals"`
	}
	Histogram []struct {
		Q        float64
		Attempt0 float64
		Attempt1 float64
		Attempt2 float64
	} `json:"histogram_share_by_rejection_probability"`
	Layers struct {
		Three    map[string]int `json:"attempts_per_layer_3"`
		Four     int            `json:"attempts_per_layer_4_three_layers"`
		DontTell int            `json:"with_dont_retry"`
	}
}

// TestSREAttempts: a call gets three attempts, which count themselves.
func TestSREAttempts(t *testing.T) {
	var facts sre
	vectors(t, "sre_ch21.json", &facts)
	s := must(retry.NewBudgeted(retry.BudgetedConfig{Budget: retry.Unlimited{}}))
	n := 0
	err := retry.Do(t.Context(), s, spillway.Call{}, func(_ context.Context, a *retry.Attempt) error {
		if a.Number != facts.Attempts.Counter[n] {
			t.Errorf("attempt %d counts as %d", n, a.Number)
		}
		n++
		return errOverload
	})
	if stopped, ok := errors.AsType[*retry.Error](err); !ok || stopped.Attempts != facts.Attempts.PerRequest || n != stopped.Attempts {
		t.Errorf("%d attempts: %v", n, err)
	}
}

// A flock is clients that all fail at the same backend. In each round, new
// originals and the retries of the round before arrive in random order.
type flock struct {
	strategies []retry.Strategy
	rng        *rand.Rand
	pending    []waiting
	originals  int
	attempts   int
	histogram  [3]int
}

type waiting struct {
	retry.Strategy
	retry.Token
}

func newFlock(clients int, c retry.BudgetedConfig) *flock {
	f := &flock{rng: rand.New(rand.NewPCG(21, 1))}
	c.Rand = f.rng.Float64
	for range clients {
		f.strategies = append(f.strategies, must(retry.NewBudgeted(c)))
	}
	return f
}

// round sends originals and what is pending to a backend that accepts those
// that accept says, by their place in the random order.
func (f *flock) round(originals int, accept func(place int) bool) {
	for range originals {
		s := f.strategies[f.rng.IntN(len(f.strategies))]
		f.pending = append(f.pending, waiting{s, s.Begin(spillway.Call{})})
	}
	f.rng.Shuffle(len(f.pending), func(i, j int) { f.pending[i], f.pending[j] = f.pending[j], f.pending[i] })
	f.originals += originals
	f.attempts += len(f.pending)
	var next []waiting
	for i, w := range f.pending {
		f.histogram[w.Token.Attempt().Number]++
		if accept(i) {
			w.Succeed(w.Token)
		} else if token, err := w.Refresh(t0, w.Token, overload); err == nil {
			next = append(next, waiting{w.Strategy, token})
		}
	}
	f.pending = next
}

// amplification is how many attempts are sent for each original.
func (f *flock) amplification() float64 { return float64(f.attempts) / float64(f.originals) }

// TestSREAmplification holds the numbers of the chapter: three attempts allow
// almost three times the load, a budget of a tenth keeps it to 1.1 times.
func TestSREAmplification(t *testing.T) {
	race.SkipOneGoroutine(t)
	var facts sre
	vectors(t, "sre_ch21.json", &facts)
	const capacity = 30
	overloaded := func(load float64, c retry.BudgetedConfig) float64 {
		f := newFlock(20, c)
		rounds := 10 + int(600/load)
		for i := range rounds {
			if i == rounds/2 { // steady by now
				f.originals, f.attempts = 0, 0
			}
			f.round(int(load*capacity), func(place int) bool { return place < capacity })
		}
		return f.amplification()
	}
	for _, row := range facts.Amplification.NoBudget {
		got := overloaded(row.Load, retry.BudgetedConfig{Budget: retry.Unlimited{}})
		if math.Abs(got-row.Value) > facts.Amplification.Tolerance || got >= 3 {
			t.Errorf("load %v, no budget: %.3f, want %v", row.Load, got, row.Value)
		}
		got = overloaded(row.Load, retry.BudgetedConfig{})
		if math.Abs(got-facts.Amplification.OfOriginals) > facts.Amplification.Tolerance {
			t.Errorf("load %v, with budget: %.3f, want %v", row.Load, got, facts.Amplification.OfOriginals)
		}
	}
}

// TestSREBudgetHolds: at any share of failures, and at any moment from the first
// call on, retries are at most a tenth of the originals and the three of each client's
// credit; once each client has made 30 calls the credit makes no difference; and where
// a tenth is enough, nearly every retry is made.
func TestSREBudgetHolds(t *testing.T) {
	const clients, credit = 20, 3
	for share := .02; share <= 1.001; share += .14 {
		f := newFlock(clients, retry.BudgetedConfig{})
		for range 100 {
			f.round(100, func(int) bool { return f.rng.Float64() >= share })
			most := f.originals / 10
			if f.originals < 60*clients { // by then, each has made 30
				most += clients * credit
			}
			if retries := f.attempts - f.originals; retries > most {
				t.Fatalf("%.0f %% fail: %d retries of %d calls", 100*share, retries, f.originals)
			}
		}
		if got, want := f.amplification(), min(1.1, 1+share+share*share); got < want-.02 {
			t.Errorf("%.0f %% fail: %.3f attempts per call, want %.3f", 100*share, got, want)
		}
	}
}

// TestSREStorm: a long healthy time saves up for a hundred retries, not more.
func TestSREStorm(t *testing.T) {
	f := newFlock(1, retry.BudgetedConfig{})
	for range 100 {
		f.round(100, func(int) bool { return true })
	}
	f.originals, f.attempts = 0, 0
	for range 10 {
		f.round(100, func(int) bool { return false })
	}
	if extra := f.attempts - f.originals; extra < 180 || extra > 200 {
		t.Errorf("%d retries of 1000 calls, want the 100 saved and the 100 earned", extra)
	}
}

// TestSREHistogram: the share of each attempt number in what a backend sees.
func TestSREHistogram(t *testing.T) {
	var facts sre
	vectors(t, "sre_ch21.json", &facts)
	for _, row := range facts.Histogram {
		f := newFlock(20, retry.BudgetedConfig{Budget: retry.Unlimited{}})
		for range 200 {
			f.round(100, func(int) bool { return f.rng.Float64() >= row.Q })
		}
		for i, want := range []float64{row.Attempt0, row.Attempt1, row.Attempt2} {
			if got := float64(f.histogram[i]) / float64(f.attempts); math.Abs(got-want) > .01 {
				t.Errorf("q %v: share of attempt %d is %.4f, want %v", row.Q, i, got, want)
			}
		}
	}
}

// TestSRELayers: where each layer retries what the one below has given up, the
// attempts multiply. An [retry.Error] must not be retried, so here they do not.
func TestSRELayers(t *testing.T) {
	var facts sre
	vectors(t, "sre_ch21.json", &facts)
	calls := func(layers, attempts int, pass func(error) error) int {
		n := 0
		call := func(context.Context) error { n++; return errOverload }
		for range layers {
			s := must(retry.NewBudgeted(retry.BudgetedConfig{MaxAttempts: attempts, Budget: retry.Unlimited{}}))
			below := call
			call = func(ctx context.Context) error {
				return retry.Do(ctx, s, spillway.Call{}, func(ctx context.Context, _ *retry.Attempt) error { return pass(below(ctx)) })
			}
		}
		call(t.Context())
		return n
	}
	forget := func(error) error { return errOverload } // as an adapter must not
	keep := func(err error) error { return err }
	for layers := 1; layers <= 3; layers++ {
		if got, want := calls(layers, 3, forget), facts.Layers.Three[strconv.Itoa(layers)]; got != want {
			t.Errorf("%d layers: %d attempts, want %d", layers, got, want)
		}
		if got := calls(layers, 3, keep); got != facts.Layers.DontTell {
			t.Errorf("%d layers, don't retry: %d attempts, want %d", layers, got, facts.Layers.DontTell)
		}
	}
	if got := calls(3, 4, forget); got != facts.Layers.Four {
		t.Errorf("3 layers of 4 attempts: %d, want %d", got, facts.Layers.Four)
	}
	var dontRetry error = faultError{Overload: true, Safety: fault.RetrySafe, DontRetry: true}
	n := 0
	s := must(retry.NewBudgeted(retry.BudgetedConfig{Budget: retry.Unlimited{}}))
	err := retry.Do(t.Context(), s, spillway.Call{}, func(context.Context, *retry.Attempt) error { n++; return dontRetry })
	if n != 1 || err != dontRetry {
		t.Errorf("overloaded; don't retry: %d attempts", n)
	}
}

// TestLeave: a retry leaves in the budget what it must, and half of what that can hold at most.
func TestLeave(t *testing.T) {
	for _, row := range []struct {
		have, leave float64
		want        bool
	}{{1, 0, true}, {1, .5, false}, {4, 3, true}, {4, 3.5, false}, {60, 1000, true}, {50, 1000, false}} {
		b := &level{have: row.have}
		s, err := retry.NewBudgeted(retry.BudgetedConfig{Budget: b})
		if err != nil {
			t.Fatal(err)
		}
		token := s.Begin(spillway.Call{Kind: spillway.KindRead})
		token.Attempt().Leave = row.leave
		_, err = s.Refresh(t0, token, fault.Failure{Overload: true, Unanswered: true})
		if rejected, _ := errors.AsType[*retry.NotRetriedError](err); (err == nil) != row.want || !row.want && (rejected == nil || rejected.Reason != retry.ReasonBudget || rejected.Tokens != row.have) {
			t.Errorf("%+v: %v", row, err)
		}
	}
}

// A level is a budget of 100 tokens that says how many it has.
type level struct{ have float64 }

func (l *level) Level() (left, capacity float64) { return l.have, 100 }
func (l *level) Deposit(string, float64)         {}
func (l *level) Withdraw(_ time.Time, _ string, cost float64) (left, capacity float64, ok bool) {
	l.have -= cost
	return l.have, 100, true
}
