package ratelimit

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/seed90641741/spillway"
	"github.com/seed90641741/spillway/internal/race"
)

// model is the bucket as one would draw it: tokens that drip in, here counted in
// nanoseconds of dripping, and a list of the callers that wait.
type model struct {
	interval, burst time.Duration
	depth           int
	at              time.Time
	tokens          time.Duration
	waiting         []*waiter
}

type waiter struct {
	Reservation
	turn time.Time
}

func (m *model) see(now time.Time) {
	if !now.After(m.at) {
		return
	}
	m.tokens = min(m.burst, m.tokens+now.Sub(m.at))
	m.at = now
}

// reserve returns the wait, or rejected.
func (m *model) reserve(now time.Time) time.Duration {
	m.see(now)
	missing := m.interval - m.tokens
	if missing > 0 && len(m.waiting) >= m.depth {
		return rejected
	}
	m.tokens -= m.interval
	return max(0, missing)
}

// drive feeds the same operations to a Limiter and to the model.
func drive(t *testing.T, ops []byte) {
	t.Helper()
	l := must(t, Config{Rate: 100, BurstSeconds: 0.05, QueueDepth: 6})
	m := &model{interval: 10 * ms, burst: 50 * ms, depth: 6, tokens: 50 * ms, at: t0}
	now := t0
	l.Stats(now) // the limiter's time begins at t0
	for i := 0; i+1 < len(ops); i += 2 {
		now = now.Add(time.Duration(int8(ops[i])) * ms / 8)
		switch op := ops[i+1]; {
		case op%4 == 1:
			m.ask(t, l, now)
		case op%4 > 0 || len(m.waiting) == 0:
			m.arrive(t, l, now)
		default:
			m.leave(t, now, int(op)%len(m.waiting))
		}
		s := l.Stats(now)
		if s.Waiting != len(m.waiting) || s.Tokens != float64(m.tokens)/float64(m.interval) {
			t.Fatalf("op %d: %+v; the model has %v tokens, %d wait", i/2, s, float64(m.tokens)/float64(m.interval), len(m.waiting))
		}
	}
}

// ask compares an Admit, which takes a token that no caller waits for.
func (m *model) ask(t *testing.T, l *Limiter, now time.Time) {
	m.see(now)
	want := m.tokens >= m.interval
	if want {
		m.tokens -= m.interval
	}
	if _, err := l.Admit(now, spillway.Call{}); (err == nil) != want {
		t.Fatalf("Admit: %v; the model says %v", err, want)
	}
}

func (m *model) arrive(t *testing.T, l *Limiter, now time.Time) {
	want := m.reserve(now)
	r, err := l.Reserve(now)
	if (err != nil) != (want == rejected) || err == nil && r.Wait != want {
		t.Fatalf("wait %v, %v; the model says %v", r.Wait, err, want)
	}
	if r.Wait > 0 {
		m.waiting = append(m.waiting, &waiter{r, m.at.Add(r.Wait)})
	}
}

func (m *model) leave(t *testing.T, now time.Time, i int) {
	m.see(now)
	w := m.waiting[i]
	m.waiting = slices.Delete(m.waiting, i, i+1)
	turn := !m.at.Before(w.turn)
	if !turn {
		m.tokens = min(m.burst, m.tokens+m.interval)
	}
	if got := w.End(now); got != turn {
		t.Fatalf("End is %v at %v, its turn was at %v", got, m.at.Sub(t0), w.turn.Sub(t0))
	}
}

func TestAgainstModel(t *testing.T) {
	for seed := range uint64(50) {
		r := rand.New(rand.NewPCG(seed, 1))
		ops := make([]byte, 1000)
		for i := range ops {
			ops[i] = byte(r.Uint32())
		}
		drive(t, ops)
	}
}

func FuzzAgainstModel(f *testing.F) {
	f.Add([]byte{0, 1, 0, 1, 127, 0, 128, 3, 0, 0})
	f.Fuzz(func(t *testing.T, ops []byte) { drive(t, ops) })
}

// In any stretch of time no more is admitted than the bucket holds and what
// drips in meanwhile, whatever the rate, the burst and the arrivals.
func TestRateIsNeverExceeded(t *testing.T) {
	race.SkipOneGoroutine(t)
	for seed := range uint64(50) {
		r := rand.New(rand.NewPCG(seed, 2))
		rate := 1 + 999*r.Float64()
		burst := 1/rate + r.Float64()
		l := must(t, Config{Rate: rate, BurstSeconds: burst, QueueDepth: r.IntN(20)})
		var admitted []time.Duration
		now := time.Duration(0)
		for range 2000 {
			now += time.Duration(r.ExpFloat64() / rate * 0.7 * float64(time.Second))
			if res, err := l.Reserve(t0.Add(now)); err == nil {
				admitted = append(admitted, now+res.Wait)
				res.End(t0.Add(now + res.Wait))
				now += res.Wait
			}
		}
		for i := range admitted {
			for j := i; j < min(i+300, len(admitted)); j++ {
				w := (admitted[j] - admitted[i]).Seconds()
				if n, most := float64(j-i+1), rate*(burst+w)+1e-3; n > most {
					t.Fatalf("seed %d: %v admitted in %v s at %v/s with %v s of burst, at most %v", seed, n, w, rate, burst, most)
				}
			}
		}
	}
}

// The time between two is never rounded to less than the rate allows, nor to more
// than a nanosecond above that.
func TestIntervalRounding(t *testing.T) {
	for rate, want := range map[float64]time.Duration{
		1e6: 1000, 999_999: 1001, 7: 142_857_143, 10: 100 * ms, 0.3: 3_333_333_334, 1. / 3: 3 * time.Second, 64: 15_625_000,
	} {
		if _, got := must(t, Config{Rate: rate}).bucket.load(); got.interval != want {
			t.Errorf("rate %v: one each %v, want %v", rate, got.interval, want)
		}
	}
}

// An offered load above the rate is let through at the rate: no token is lost.
func TestRateIsReached(t *testing.T) {
	const calls = 20_000
	for _, rate := range []float64{0.3, 7, 333, 999_999, 1e6} {
		l := must(t, Config{Rate: rate, BurstSeconds: 10 / rate})
		every := float64(time.Second) / rate / 2
		n := 0
		for i := range calls {
			if _, err := l.Admit(t0.Add(time.Duration(float64(i)*every)), spillway.Call{}); err == nil {
				n++
			}
		}
		if want := calls/2 + 10.; math.Abs(float64(n)-want) > 0.001*want+1 {
			t.Errorf("rate %v: %d of %d admitted at twice the rate, want %.0f", rate, n, calls, want)
		}
	}
}
