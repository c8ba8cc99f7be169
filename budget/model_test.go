package budget_test

import (
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/seed90641741/spillway/budget"
)

// naive is a bucket of one goroutine in floating point.
type naive struct {
	level, capacity, perSecond float64
	seen                       bool
	last                       time.Time
}

func (n *naive) withdraw(now time.Time, tokens float64) bool {
	if n.seen && now.After(n.last) {
		if reserve := 10 * n.perSecond; n.level < reserve {
			n.level = min(reserve, n.level+now.Sub(n.last).Seconds()*n.perSecond)
		}
	}
	if !n.seen || now.After(n.last) {
		n.seen, n.last = true, now
	}
	if n.level < tokens {
		return false
	}
	n.level -= tokens
	return true
}

func (n *naive) deposit(tokens float64) { n.level = min(n.capacity, n.level+tokens) }

// runModel does what ops say to a bucket and to the naive one.
func runModel(t *testing.T, c budget.Config, ops []byte) {
	b, err := budget.New(c)
	if err != nil {
		t.Skip(err)
	}
	model := naive{level: c.Capacity, capacity: c.Capacity, perSecond: c.MinPerSecond}
	if c.Empty {
		model.level = 10 * c.MinPerSecond
	}
	now := t0
	for i, op := range ops {
		n := float64(op>>2) / 4
		switch op & 3 {
		case 0:
			now = now.Add(time.Duration(op>>2) * 37 * time.Millisecond)
		case 1:
			b.Deposit("", n)
			model.deposit(n)
		default:
			_, _, got := b.Withdraw(now, "", n)
			want := model.withdraw(now, n)
			before := model.level
			if want {
				before += n
			}
			switch {
			case got == want:
			case math.Abs(before-n) < 1e-5:
				return // so close to the price that rounding decides
			default:
				t.Fatalf("op %d: withdraw %v: %v, want %v", i, n, got, want)
			}
		}
		if got := b.Stats(now).Tokens; math.Abs(got-model.level) > 1e-5 || got < 0 || got > c.Capacity+1e-9 {
			t.Fatalf("op %d: %v tokens, want %v", i, got, model.level)
		}
	}
}

func TestModel(t *testing.T) {
	for seed := range uint64(50) {
		rng := rand.New(rand.NewPCG(seed, 1))
		ops := make([]byte, 500)
		for i := range ops {
			ops[i] = byte(rng.Uint32())
		}
		c := budget.Config{Capacity: 1 + float64(rng.IntN(100)), Empty: rng.IntN(2) == 0}
		c.MinPerSecond = float64(rng.IntN(int(c.Capacity)+1)) / 10
		runModel(t, c, ops)
	}
}

func FuzzBucket(f *testing.F) {
	f.Add(20.0, true, 1.5, []byte{3, 7, 255, 4, 8, 12, 129, 66})
	f.Add(500.0, false, 0.0, []byte{1, 254, 254, 254, 5})
	f.Fuzz(func(t *testing.T, capacity float64, empty bool, perSecond float64, ops []byte) {
		if !(capacity > 0 && capacity < 1e6) || !(perSecond == 0 || perSecond > 1e-3) {
			t.Skip("rounding of the naive bucket")
		}
		runModel(t, budget.Config{Capacity: capacity, Empty: empty, MinPerSecond: perSecond}, ops)
	})
}
