package cost

import (
	"errors"
	"math"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/seed90641741/spillway"
)

// pair are a customer with few expensive calls and one with many cheap ones.
func pair() (dear, cheap *caller) {
	return &caller{key: "dear", rate: 20, cpu: 10, vary: 0.3, took: 50 * time.Millisecond},
		&caller{key: "cheap", rate: 200, cpu: 1, vary: 0.3, took: 10 * time.Millisecond}
}

// seeds returns how many seeds to test: fewer where tests are to be short.
func seeds(n uint64) uint64 {
	if testing.Short() {
		return max(n/5, 1)
	}
	return n
}

// learned returns, for a world of two customers, whether both costs are known after 30 s, how many
// are outside of two standard errors after two minutes, and the largest relative error then. A cost
// that is unknown then has an infinite error.
func learned(t testing.TB, seed uint64) (soon bool, outside int, largest float64) {
	t.Helper()
	w := newWorld(t, seed, Config{})
	dear, cheap := pair()
	w.idle = 0.02
	w.run(30*time.Second, dear, cheap)
	soon = w.of("dear").Used && w.of("cheap").Used
	w.run(90*time.Second, dear, cheap)
	for _, c := range []*caller{dear, cheap} {
		k := w.of(c.key)
		if !k.Used {
			largest = math.Inf(1)
		}
		cost, deviation := k.milliseconds()
		if largest = max(largest, math.Abs(cost/c.cpu-1)); math.Abs(cost-c.cpu) > 2*deviation {
			outside++
		}
	}
	return soon, outside, largest
}

// Costs are known and about right after two minutes. As a rule they are known much sooner, and the
// error bound covers the cost: BenchmarkFigures has how often.
func TestLearns(t *testing.T) {
	runs := int(seeds(40))
	outside, soon := 0, 0
	for seed := range uint64(runs) {
		known, wrong, largest := learned(t, seed)
		if outside += wrong; known {
			soon++
		}
		if largest > 0.25 {
			t.Errorf("seed %d: a cost is off by %.0f %%", seed, 100*largest)
		}
	}
	if outside > 2*runs/4 || soon < runs/2 {
		t.Errorf("%d of %d costs are outside of two standard errors; after 30 s, %d of %d runs know both", outside, 2*runs, soon, runs)
	}
}

// Keys that are always called together cannot be told apart, and are not used.
func TestCollinear(t *testing.T) {
	for seed := range seeds(10) {
		w := newWorld(t, seed, Config{})
		turn := func(at time.Duration) float64 { return float64(at / time.Second % 3) }
		w.run(2*time.Minute,
			&caller{key: "a", rate: 20, even: true, cpu: 10, turn: turn},
			&caller{key: "b", rate: 20, even: true, cpu: 1, turn: turn})
		for _, key := range []string{"a", "b"} {
			if k := w.of(key); k.Used {
				t.Errorf("seed %d: %+v is used", seed, k)
			}
		}
	}
}

// A customer that calls only when another does cannot move its cost to it: if costs are used, they
// are right.
func TestCompanion(t *testing.T) {
	for seed := range seeds(10) {
		w := newWorld(t, seed, Config{})
		turn := func(at time.Duration) float64 { return float64(at / (2 * time.Second) % 2) }
		dear, cheap := pair()
		dear.turn, cheap.turn = turn, turn
		w.run(3*time.Minute, dear, cheap)
		w.reset()
		w.run(time.Minute, dear, cheap)
		if c := w.charged("cheap"); c > 1.3 {
			t.Errorf("seed %d: the cheap one is charged %.2f times its use: %+v", seed, c, w.Stats(time.Now()))
		}
		if k := w.of("dear"); k.Used && w.charged("dear") < 0.75 {
			t.Errorf("seed %d: the dear one is charged %.2f times its use: %+v", seed, w.charged("dear"), k)
		}
	}
}

// After a deploy that changes costs they are learned again within 30 intervals.
func TestChange(t *testing.T) {
	for _, by := range []float64{5, 0.2} {
		for seed := range seeds(10) {
			w := newWorld(t, seed, Config{})
			dear, cheap := pair()
			dear.now = func(at time.Duration) float64 {
				if at < 5*time.Minute {
					return 1
				}
				return by
			}
			w.run(5*time.Minute+30*time.Second, dear, cheap)
			for key, want := range map[string]float64{"dear": 10 * by, "cheap": 1} {
				cost, deviation := w.of(key).milliseconds()
				if math.Abs(cost-want) > max(0.3*want, 3*deviation) {
					t.Errorf("seed %d: %s costs %.2f ± %.2f ms after a change by %v, want %v", seed, key, cost, deviation, by, want)
				}
			}
			w.reset()
			w.run(time.Minute, dear, cheap)
			if c := w.charged("dear"); c < 0.75 || c > 1.35 {
				t.Errorf("seed %d: after a change by %v, charged %.2f times what it uses", seed, by, c)
			}
		}
	}
}

// A job that takes a second of processor time now and then is not charged to a key.
func TestOutliers(t *testing.T) {
	for seed := range seeds(10) {
		w := newWorld(t, seed, Config{})
		dear, cheap := pair()
		for range 90 {
			w.run(2*time.Second, dear, cheap)
			if w.random.Float64() < 0.1 {
				w.cpu++
			}
		}
		for _, c := range []*caller{dear, cheap} {
			if cost, deviation := w.of(c.key).milliseconds(); math.Abs(cost-c.cpu) > max(0.35*c.cpu, 3*deviation) {
				t.Errorf("seed %d: %s costs %.2f ± %.2f ms, want %v", seed, c.key, cost, deviation, c.cpu)
			}
		}
	}
}

// Calls that run for several intervals are counted where they run.
func TestLongCalls(t *testing.T) {
	for seed := range seeds(10) {
		w := newWorld(t, seed, Config{})
		dear, cheap := pair()
		dear.took, dear.rate, dear.cpu = 2500*time.Millisecond, 2, 200
		w.run(3*time.Minute, dear, cheap)
		for _, c := range []*caller{dear, cheap} {
			if cost, deviation := w.of(c.key).milliseconds(); math.Abs(cost-c.cpu) > min(0.4*c.cpu, 3*deviation) {
				t.Errorf("seed %d: %s costs %.2f ± %.2f ms, want %v", seed, c.key, cost, deviation, c.cpu)
			}
		}
	}
}

// A customer whose cost is known cannot make it unknown by calls that are expensive at times. It is
// charged what it uses.
func TestAlternation(t *testing.T) {
	for _, period := range []time.Duration{500 * time.Millisecond, 3 * time.Second, 20 * time.Second, 60 * time.Second} {
		for seed := range seeds(5) {
			w := newWorld(t, seed, Config{})
			dear, cheap := pair()
			dear.now = func(at time.Duration) float64 {
				if at < time.Minute {
					return 1
				}
				return 0.01 + 0.99*float64(at/period%2)
			}
			w.run(3*time.Minute, dear, cheap)
			w.reset()
			w.run(6*time.Minute, dear, cheap)
			if c := w.charged("dear"); c < 0.5 || c > 2 {
				t.Errorf("seed %d, period %v: charged %.2f times what it uses", seed, period, c)
			}
			if c := w.charged("cheap"); c > 1.6 {
				t.Errorf("seed %d, period %v: the other one is charged %.2f times what it uses", seed, period, c)
			}
		}
	}
}

// A load without any variation is not mistaken for background.
func TestEvenLoad(t *testing.T) {
	w := newWorld(t, 1, Config{})
	w.run(3*time.Minute, &caller{key: "even", rate: 50, even: true, cpu: 10})
	if cost, deviation := w.of("even").milliseconds(); !w.of("even").Used || math.Abs(cost-10) > 1 {
		t.Errorf("costs %.2f ± %.2f ms, want 10", cost, deviation)
	}
}

// Bursts within intervals, with pauses between, are learned.
func TestBursts(t *testing.T) {
	for seed := range seeds(10) {
		w := newWorld(t, seed, Config{})
		dear, cheap := pair()
		dear.rate, dear.even = 1000, true
		dear.turn = func(at time.Duration) float64 {
			if at%(10*time.Second) < 2*tick {
				return 1
			}
			return 0
		}
		w.run(5*time.Minute, dear, cheap)
		if cost, deviation := w.of("dear").milliseconds(); math.Abs(cost-10) > 2 {
			t.Errorf("seed %d: %.2f ± %.2f ms, want 10", seed, cost, deviation)
		}
	}
}

// A key with a call now and then is not used, and spoils nothing.
func TestRareKey(t *testing.T) {
	w := newWorld(t, 3, Config{})
	dear, cheap := pair()
	w.run(5*time.Minute, dear, cheap, &caller{key: "rare", rate: 0.02, cpu: 1})
	if k := w.of("rare"); k.Used {
		t.Errorf("%+v is used", k)
	}
	if cost, _ := w.of("dear").milliseconds(); math.Abs(cost-10) > 2 {
		t.Errorf("dear costs %.2f ms, want 10", cost)
	}
}

// A flood of rejected calls does not raise the cost of other calls.
func TestFloodOfRejections(t *testing.T) {
	w := newWorld(t, 4, Config{})
	dear, cheap := pair()
	w.run(time.Minute, dear, cheap)
	for range 100 {
		for range 1000 {
			w.Reject(t0.Add(w.at))
			w.cpu += 20e-6
		}
		w.run(600*time.Millisecond, dear, cheap)
	}
	for _, c := range []*caller{dear, cheap} {
		if cost, deviation := w.of(c.key).milliseconds(); math.Abs(cost/c.cpu-1) > 0.25 {
			t.Errorf("%s costs %.2f ± %.2f ms, want %v", c.key, cost, deviation, c.cpu)
		}
	}
	if got := w.Stats(time.Now()).Rejected; got < 14*time.Microsecond || got > 26*time.Microsecond {
		t.Errorf("a rejection costs %v, want 20µs", got)
	}
}

// Keys beyond MaxKeys share one cost, take no memory and allocate nothing. A place is free after
// its key had no calls for long.
func TestInventedKeys(t *testing.T) {
	w := newWorld(t, 5, Config{MaxKeys: 2})
	dear, cheap := pair()
	w.run(time.Second, dear, cheap)
	name := make([]string, 1000)
	for i := range name {
		name[i] = "invented" + strconv.Itoa(i)
	}
	i := 0
	allocs := testing.AllocsPerRun(1000, func() {
		i++
		t, _, _ := w.Begin(t0.Add(w.at), known(name[i%len(name)]))
		w.Done(t0.Add(w.at), t)
	})
	if allocs > 0 {
		t.Errorf("an invented key allocates %v times", allocs)
	}
	w.run(2*time.Minute, dear, cheap, &caller{rate: 100, cpu: 0.5})
	if cost, _ := w.of("dear").milliseconds(); math.Abs(cost-10) > 2 {
		t.Errorf("dear costs %.2f ms, want 10", cost)
	}
	if got := len(w.Stats(time.Now()).Keys); got != 3 {
		t.Errorf("%d keys, want 3", got)
	}
	w.run(11*time.Minute, cheap)
	w.run(2*time.Minute, cheap, &caller{key: "new", rate: 20, cpu: 5})
	if cost, _ := w.of("new").milliseconds(); math.Abs(cost-5) > 1 {
		t.Errorf("new costs %.2f ms, want 5: %+v", cost, w.Stats(time.Now()))
	}
	if k := w.of("dear"); k.Key != "" {
		t.Errorf("dear still has a place: %+v", k)
	}
}

// A call whose key has lost its place counts for the shared one.
func TestLateDone(t *testing.T) {
	w := newWorld(t, 6, Config{MaxKeys: 1})
	old, _, _ := w.Begin(t0, known("old"))
	w.at = 11 * time.Minute
	if _, _, known := w.Begin(t0.Add(w.at), known("new")); known {
		t.Error("the cost of a new key is known")
	}
	w.Done(t0.Add(w.at), old)
	w.Done(t0.Add(w.at), Ticket{})
	w.Done(t0.Add(w.at), Ticket{place: math.MaxUint32})
	if got := w.of("new").Calls; got != 0 {
		t.Errorf("new has %d calls, want 0", got)
	}
	if got := w.of("").Calls; got != 1 {
		t.Errorf("the shared key has %d calls, want 1", got)
	}
}

// An interval in which the process stood still, or whose time is not known, is ignored.
func TestIgnoredIntervals(t *testing.T) {
	w := newWorld(t, 7, Config{})
	dear, cheap := pair()
	w.run(2*time.Minute, dear, cheap)
	before := w.Stats(time.Now())
	w.run(10*time.Millisecond, dear)
	w.at += time.Minute // and something has used the processor
	w.cpu += 30
	for range 6 {
		w.run(time.Second, dear, cheap)
	}
	after := w.Stats(time.Now())
	for i, k := range before.Keys {
		if a := after.Keys[i]; math.Abs(a.Cost.Seconds()-k.Cost.Seconds()) > 3*k.StandardError.Seconds() {
			t.Errorf("%v has become %v", k, a)
		}
	}

	broken := errors.New("broken")
	e, err := New(Config{CPU: func() (time.Duration, error) { return 0, broken }})
	if err != nil {
		t.Fatal(err)
	}
	for i := range 100 {
		ticket, _, known := e.Begin(t0.Add(time.Duration(i)*time.Second), known("a"))
		e.Done(t0.Add(time.Duration(i)*time.Second), ticket)
		if known {
			t.Fatal("known without processor time")
		}
	}
	if k := e.Stats(time.Now()).Keys[1]; k.Cost != 0 {
		t.Errorf("%+v", k)
	}
}

func TestConfig(t *testing.T) {
	if _, err := New(Config{}); err != nil {
		t.Error(err)
	}
	for field, c := range map[string]Config{
		"Interval": {Interval: time.Millisecond}, "MaxKeys": {MaxKeys: 1000}, "Unit": {Unit: -1}, "MaxError": {MaxError: math.NaN()},
	} {
		_, err := New(c)
		f, ok := errors.AsType[*spillway.FieldError](err)
		if !ok || f.Path != field {
			t.Errorf("%s: %v", field, err)
		}
	}
}

// TestBounds has the first and the last value of each field that is allowed, and the next ones.
func TestBounds(t *testing.T) {
	for _, row := range []struct {
		config Config
		wrong  bool
	}{
		{Config{Interval: 50 * time.Millisecond}, false}, {Config{Interval: 50*time.Millisecond - 1}, true},
		{Config{Interval: time.Minute}, false}, {Config{Interval: time.Minute + 1}, true},
		{Config{MaxKeys: 1}, false}, {Config{MaxKeys: -1}, true}, {Config{MaxKeys: 128}, false}, {Config{MaxKeys: 129}, true},
		{Config{Unit: time.Microsecond}, false}, {Config{Unit: time.Microsecond - 1}, true},
		{Config{Unit: time.Minute}, false}, {Config{Unit: time.Minute + 1}, true},
		{Config{MaxError: 0.01}, false}, {Config{MaxError: math.Nextafter(0.01, 0)}, true},
		{Config{MaxError: 1}, false}, {Config{MaxError: math.Nextafter(1, 2)}, true},
	} {
		if _, err := New(row.config); (err != nil) != row.wrong {
			t.Errorf("%+v: %v, want an error: %v", row.config, err, row.wrong)
		}
	}
}

func TestAllocations(t *testing.T) {
	w := newWorld(t, 8, Config{Interval: 50 * time.Millisecond})
	if n := testing.AllocsPerRun(1000, func() {
		w.at += 20 * time.Millisecond
		now := t0.Add(w.at)
		ticket, _, _ := w.Begin(now, known("a"))
		w.Reject(now)
		w.Done(now.Add(time.Millisecond), ticket)
	}); n > 0 {
		t.Errorf("%v allocations", n)
	}
}

// FuzzFilter feeds intervals of any shape: costs and errors stay finite and not negative, and no
// covariance is greater than the variances allow.
func FuzzFilter(f *testing.F) {
	f.Add([]byte("\x01\x02\x03\x04\x05\x06\x07\xff\x00\xff\x00\xff\x10\x20"))
	// Counts from 1e-5 to 1e7, then minutes of the same calls, of which one key has 1e7 times as many once.
	same := strings.Repeat("\xe7", 6*46-3)
	f.Add([]byte("\x80\xff\xff\xff[[[[\x10 \x01\x02\x03\x04\x05\x06\x07\xff\x80\xff!" + same + "\xe7\xe7\xe7\xdf" + same))
	f.Fuzz(func(t *testing.T, data []byte) {
		var x filter
		x.init(5)
		for len(data) >= 6 {
			counts := []float64{0.01 + float64(data[0]), 0, 0, 0, 0}
			for i := 1; i < 5; i++ {
				counts[i] = math.Ldexp(float64(data[i]), int(data[i]%32)-16)
			}
			x.learn(counts, math.Ldexp(float64(data[5]), int(data[5]%16)-12))
			data = data[6:]
			for i := range counts {
				if d := x.deviation(i); !(x.cost[i] >= 0 && d >= 0) || math.IsInf(x.cost[i]+d, 0) || d == 0 && counts[i] > 0 {
					t.Fatalf("place %d: %v ± %v", i, x.cost[i], d)
				}
				for j, v := range x.p[i] {
					if most := x.deviation(i) * x.deviation(j); !(math.Abs(v) <= most*(1+1e-9)) {
						t.Fatalf("places %d and %d: covariance %v, at most %v", i, j, v, most)
					}
				}
			}
		}
	})
}

func BenchmarkCall(b *testing.B) {
	w := newWorld(b, 9, Config{})
	b.ReportAllocs()
	for b.Loop() {
		w.at += 10 * time.Microsecond
		ticket, _, _ := w.Begin(t0.Add(w.at), known("a"))
		w.Done(t0.Add(w.at+time.Microsecond), ticket)
	}
}

func BenchmarkInterval(b *testing.B) {
	for _, keys := range []int{8, 32, 128} {
		b.Run(strconv.Itoa(keys), func(b *testing.B) {
			var f filter
			f.init(named + keys)
			x := make([]float64, named+keys)
			for b.Loop() {
				x[0] = 1
				for i := range x[1:] {
					x[i+1] = float64(i*7%11 + 1)
				}
				f.learn(x, 0.5)
			}
		})
	}
}

// TestConcurrentUse: whatever happens at once, each call has an answer.
func TestConcurrentUse(t *testing.T) {
	var cpu atomic.Int64
	e, err := New(Config{Interval: 50 * time.Millisecond, MaxKeys: 2, CPU: func() (time.Duration, error) { return time.Duration(cpu.Add(1e6)), nil }})
	if err != nil {
		t.Fatal(err)
	}
	var all sync.WaitGroup
	for worker := range 4 {
		all.Go(func() {
			for i := range 1000 {
				now := t0.Add(time.Duration(i) * 5 * time.Millisecond)
				ticket, _, _ := e.Begin(now, known(strconv.Itoa((worker+i)%4)))
				if i%10 == 0 {
					e.Reject(now)
					e.Stats(now)
				}
				e.Done(now.Add(time.Millisecond), ticket)
			}
		})
	}
	all.Wait()
	calls := uint64(0)
	for _, k := range e.Stats(time.Now()).Keys {
		calls += k.Calls
	}
	if calls != 4000 {
		t.Errorf("%d calls are known, want 4000", calls)
	}
}
