package retry_test

import (
	"errors"
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/seed90641741/spillway"
	"github.com/seed90641741/spillway/budget"
	"github.com/seed90641741/spillway/fault"
	"github.com/seed90641741/spillway/retry"
)

// A naive strategy keeps every token that it ever handed out.
type naive struct {
	tokens []naiveToken
	level  float64
	naiveRules
}

type naiveToken struct {
	used       bool
	number     int
	overloaded bool
	paid       float64
}

// naiveRules are written down once more, from the documents.
type naiveRules struct {
	capacity                            float64
	attempts, overloadAttempts          int
	cost, overloadCost                  float64
	first, firstFailed, again, notAgain float64
	refund                              bool
}

func (n *naive) deposit(tokens float64) { n.level = min(n.capacity, n.level+tokens) }

func (n *naive) begin() { n.tokens = append(n.tokens, naiveToken{}) }

// fail returns whether there is a next token.
func (n *naive) fail(t *naiveToken, f fault.Failure) bool {
	n.settle(t, f)
	t.overloaded = t.overloaded || f.Overload
	limit, cost := n.attempts, n.cost
	if t.overloaded {
		limit = n.overloadAttempts
	}
	if f.Overload {
		cost = n.overloadCost
	}
	if f.Safety != fault.RetrySafe || t.number+1 >= limit || n.level < cost-1e-7 {
		return false
	}
	n.level -= cost
	n.tokens = append(n.tokens, naiveToken{number: t.number + 1, overloaded: t.overloaded, paid: cost})
	return true
}

func (n *naive) settle(t *naiveToken, f fault.Failure) {
	switch {
	case f.Unsent:
		n.deposit(t.paid)
	case t.number == 0:
		n.deposit(n.firstFailed)
	case !f.Overload:
		n.deposit(n.notAgain)
	}
}

func (n *naive) succeed(t *naiveToken) {
	switch {
	case t.number == 0:
		n.deposit(n.first)
	case n.refund:
		n.deposit(t.paid)
	default:
		n.deposit(n.again)
	}
}

var failures = []fault.Failure{
	{Overload: true, Safety: fault.RetrySafe},
	{Safety: fault.RetrySafe},
	{Safety: fault.RetryUnsafe},
	{Unsent: true, Safety: fault.RetrySafe},
}

// modelled are the strategies with their naive rules.
func modelled(capacity float64) []struct {
	retry.Strategy
	*budget.Bucket
	naive
} {
	b := [3]*budget.Bucket{bucket(capacity, capacity), bucket(capacity, capacity), bucket(capacity, 0)}
	return []struct {
		retry.Strategy
		*budget.Bucket
		naive
	}{
		{must(retry.NewMongoDB(retry.MongoDBConfig{Budget: b[0]})), b[0], naive{level: capacity, naiveRules: naiveRules{
			capacity: capacity, attempts: 2, overloadAttempts: 6, overloadCost: 1, first: .1, again: 1.1, notAgain: 1,
		}}},
		{must(retry.NewAWSStandard(retry.AWSStandardConfig{Budget: b[1]})), b[1], naive{level: capacity, naiveRules: naiveRules{
			capacity: capacity, attempts: 3, overloadAttempts: 3, cost: 14, overloadCost: 5, first: 1, refund: true,
		}}},
		{must(retry.NewBudgeted(retry.BudgetedConfig{Budget: b[2]})), b[2], naive{naiveRules: naiveRules{
			capacity: capacity, attempts: 3, overloadAttempts: 3, cost: 1, overloadCost: 1, first: .1, firstFailed: .1,
		}}},
	}
}

// runModel uses tokens as ops say, most of them rightly, some twice.
func runModel(t *testing.T, capacity float64, ops []byte) {
	for _, m := range modelled(capacity) {
		var tokens []retry.Token
		for i, op := range ops {
			if len(tokens) == 0 || op&7 == 0 {
				tokens = append(tokens, m.Begin(spillway.Call{}))
				m.begin()
				continue
			}
			// Late tokens are used more often: few calls stay open for ever.
			at := len(tokens) - 1 - int(op>>5)%len(tokens)
			var err error
			want := &m.tokens[at]
			used := want.used
			want.used = true
			switch f := failures[op>>3&3]; {
			case op&7 <= 2:
				err = m.Succeed(tokens[at])
				if !used {
					m.succeed(want)
				}
			case op&7 == 3:
				err = m.Release(tokens[at], f)
				if !used {
					m.settle(want, f)
				}
			default:
				var next retry.Token
				next, err = m.Refresh(t0, tokens[at], f)
				if !used && m.fail(want, f) != (err == nil) {
					t.Fatalf("%T, op %d: refresh: %v", m.Strategy, i, err)
				}
				if err == nil {
					tokens = append(tokens, next)
				} else if _, rejected := errors.AsType[*retry.NotRetriedError](err); rejected {
					err = nil
				}
			}
			if used != errors.Is(err, retry.ErrTokenUsed) || !used && err != nil {
				t.Fatalf("%T, op %d: %v, but used is %v", m.Strategy, i, err, used)
			}
			if got := m.Stats(time.Time{}).Tokens; math.Abs(got-m.level) > 1e-6 {
				t.Fatalf("%T, op %d: %v tokens in the budget, want %v", m.Strategy, i, got, m.level)
			}
		}
	}
}

func TestModel(t *testing.T) {
	for seed := range uint64(40) {
		rng := rand.New(rand.NewPCG(seed, 2))
		ops := make([]byte, 400)
		for i := range ops {
			ops[i] = byte(rng.Uint32())
		}
		runModel(t, float64(1+rng.IntN(60)), ops)
	}
}

func FuzzTokens(f *testing.F) {
	f.Add(uint8(20), []byte{0, 4, 12, 20, 28, 4, 1, 1})
	f.Add(uint8(1), []byte{0, 0, 4, 36, 3, 27, 5, 2})
	f.Fuzz(func(t *testing.T, capacity uint8, ops []byte) {
		if len(ops) < 2000 {
			runModel(t, float64(capacity)+1, ops)
		}
	})
}
