package tune_test

import (
	"encoding/binary"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/seed90641741/spillway/tune"
)

// A witness holds a Tuner to its promises, by its inputs and outputs.
type witness struct {
	t      *testing.T
	config tune.Config // with all fields that are looked at
	tuner  *tune.Tuner

	now   time.Time // the latest
	limit float64
	moved time.Time // zero: never
	since []past    // readings after the last move
	known []time.Time
	moves int
}

// past is a reading as it was taken.
type past struct {
	at       time.Time
	pressure float64
	all      bool // signals were known
	used     float64
}

func valid(v float64) bool { return v >= 0 && !math.IsInf(v, 1) }

func (w *witness) read(now time.Time, used float64, values []float64) {
	if now.After(w.now) {
		w.now = now
	}
	p := past{at: w.now, all: len(values) >= len(w.config.Signals), used: used}
	for i, s := range w.config.Signals {
		switch {
		case i < len(values) && valid(values[i]):
			p.pressure = max(p.pressure, values[i]/s.Target)
			w.known[i] = w.now
		default:
			p.all = false
		}
	}
	w.since = append(w.since, p)
	m, ok := w.tuner.Read(now, used, values...)
	if ok && m.To != m.From && m.Applied {
		w.check(m)
		w.limit, w.moved, w.since = m.To, w.now, nil
		w.moves++
	}
	if got := w.tuner.Limit(); got != w.limit {
		w.t.Fatalf("the limit is %v and not %v, without a move; said %v", got, w.limit, m)
	}
}

// check looks at a move that was made.
func (w *witness) check(m tune.Move) {
	c := w.config
	step := math.Abs(m.To - m.From)
	most := min(c.MaxStep*m.From, c.MaxDelta)
	if c.Whole {
		most = max(1, most)
	}
	switch {
	case m.From != w.limit:
		w.t.Fatalf("%v: from %v, the limit was %v", m, m.From, w.limit)
	case !(m.To >= c.Min && m.To <= c.Max):
		w.t.Fatalf("%v: out of %v to %v", m, c.Min, c.Max)
	case step > most*(1+1e-9):
		w.t.Fatalf("%v: a step of %v, at most %v", m, step, most)
	case !w.moved.IsZero() && w.now.Sub(w.moved) < c.Reaction:
		w.t.Fatalf("%v: %v after the last one", m, w.now.Sub(w.moved))
	case c.Whole && m.To != math.Trunc(m.To):
		w.t.Fatalf("%v: %v is not whole", m, m.To)
	case m.Reason() == "":
		w.t.Fatal("a move without a reason")
	}
	w.checkCause(m)
}

// checkCause looks for what a move was made for.
func (w *witness) checkCause(m tune.Move) {
	c := w.config
	if m.Rule == tune.Fallback {
		for i := range w.known {
			if w.now.Sub(w.known[i]) >= c.Stale {
				return
			}
		}
		w.t.Fatalf("%v: nothing is missing", m)
	}
	for _, p := range slices.Backward(w.since) {
		switch {
		case m.To < m.From && !(p.pressure > 1+c.Deadband):
			w.t.Fatalf("%v: lowered at a pressure of %v, %v ago", m, p.pressure, w.now.Sub(p.at))
		case m.To > m.From && (!p.all || !(p.pressure < 1-c.Deadband)):
			w.t.Fatalf("%v: raised at a pressure of %v, all known %v, %v ago", m, p.pressure, p.all, w.now.Sub(p.at))
		case m.To > m.From && !valid(p.used):
			w.t.Fatalf("%v: raised without use, %v ago", m, w.now.Sub(p.at))
		}
		if w.now.Sub(p.at) >= c.Persist {
			return
		}
	}
	w.t.Fatalf("%v: moved before %v were over", m, c.Persist)
}

var witnessed = []tune.Config{
	{Limit: 100, Min: 10, Max: 1000, MaxStep: 0.3, MaxDelta: 1e12, Deadband: 0.1, Reaction: 500 * ms, Persist: 250 * ms, Stale: 5 * time.Second, Enforce: true,
		Signals: []tune.Signal{{Name: "a", Target: 50}}},
	{Limit: 7, Min: 1, Max: 20, MaxStep: 0.2, MaxDelta: 3, Deadband: 0.05, Reaction: time.Second, Persist: 700 * ms, Stale: 2 * time.Second, Enforce: true, Whole: true,
		Signals: []tune.Signal{{Name: "a", Target: 50}, {Name: "b", Target: 0.5}}, Rule: tune.Proportional},
	{Limit: 1e-3, Min: 1e-6, Max: 1e12, MaxStep: 0.9, MaxDelta: 1e9, Deadband: 0.5, Reaction: 10 * ms, Persist: 500 * ms, Stale: ms, Enforce: true, Gain: 1,
		Signals: []tune.Signal{{Name: "a", Target: 1e-12}, {Name: "b", Target: 1e12}}, Rule: tune.Proportional},
	{Limit: 100, Min: 10, Max: 1000, MaxStep: 0.3, MaxDelta: 1e12, Deadband: 0.1, Reaction: 500 * ms, Persist: 250 * ms, Stale: 5 * time.Second,
		Signals: []tune.Signal{{Name: "a", Target: 50}}},
}

func newWitness(t *testing.T, c tune.Config) *witness {
	w := &witness{t: t, config: c, tuner: must(tune.New(c)), limit: c.Limit, now: t0, known: make([]time.Time, len(c.Signals))}
	for i := range w.known {
		w.known[i] = t0
	}
	w.read(t0, 0, make([]float64, len(c.Signals)))
	return w
}

var odd = []float64{nan, inf, -inf, -1, 0, math.SmallestNonzeroFloat64, math.MaxFloat64, 1e-300}

// anything returns a number: mostly near x, sometimes any.
func anything(r *rand.Rand, x float64) float64 {
	switch r.IntN(12) {
	case 0:
		return odd[r.IntN(len(odd))]
	case 1:
		return math.Float64frombits(r.Uint64())
	default:
		return x * math.Exp2(r.NormFloat64())
	}
}

// TestPromises reads anything whatever, in spells of some pressure, at times that go on
// and sometimes back.
func TestPromises(t *testing.T) {
	for i, c := range witnessed {
		moves := 0
		for seed := range 2 * seeds() {
			r := rand.New(rand.NewPCG(seed, 1))
			w := newWitness(t, c)
			now, bias := t0, 1.0
			for range 1000 {
				if r.IntN(20) == 0 {
					bias = math.Exp2(3 * r.NormFloat64())
				}
				now = now.Add(time.Duration(r.ExpFloat64() * float64(150*ms)))
				if r.IntN(50) == 0 {
					now = now.Add(-time.Duration(r.ExpFloat64() * float64(10*time.Second)))
				}
				values := make([]float64, 0, 2)
				for _, s := range c.Signals {
					if r.IntN(30) > 0 {
						values = append(values, anything(r, s.Target*bias))
					}
				}
				w.read(now, anything(r, w.limit), values)
			}
			moves += w.moves
		}
		if (moves == 0) == c.Enforce {
			t.Errorf("config %d: %d moves", i, moves)
		}
	}
}

func FuzzPromises(f *testing.F) {
	f.Add(uint8(0), []byte("\x10aaaaaaaa\x7fbbbbbbbb"))
	f.Add(uint8(1), make([]byte, 200))
	f.Add(uint8(2), []byte("\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff"))
	f.Fuzz(func(t *testing.T, which uint8, text []byte) {
		c := witnessed[int(which)%len(witnessed)]
		w := newWitness(t, c)
		now := t0
		text = text[:min(len(text), 4096)]
		number := func() (v float64) {
			if len(text) >= 8 {
				v = math.Float64frombits(binary.LittleEndian.Uint64(text))
				text = text[8:]
			}
			return v
		}
		for len(text) > 0 {
			now = now.Add(time.Duration(int8(text[0])) * 20 * ms)
			text = text[1:]
			values := make([]float64, len(c.Signals))
			for i := range values {
				values[i] = number()
			}
			w.read(now, number(), values)
		}
	})
}
