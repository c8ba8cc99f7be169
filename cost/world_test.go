package cost

import (
	"errors"
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/seed90641741/spillway/internal/race"
)

var t0 = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

var errLost = errors.New("the processor time cannot be read")

// tick is the resolution of a world.
const tick = 10 * time.Millisecond

// A caller makes calls of a key.
type caller struct {
	key  string
	rate float64                        // calls per second
	even bool                           // in place of Poisson
	cpu  float64                        // mean milliseconds of a call
	vary float64                        // standard deviation of cpu, in means (gamma)
	took time.Duration                  // of a call
	turn func(at time.Duration) float64 // multiplies rate; nil is 1
	now  func(at time.Duration) float64 // multiplies cpu; nil is 1

	carry float64
}

// A world is a process with a virtual processor time.
type world struct {
	*Estimator

	random *rand.Rand
	at     time.Duration
	cpu    float64 // seconds
	idle   float64 // background per second
	lost   bool    // the processor time cannot be read
	calls  []running
	spent  map[string]float64 // seconds, by key
	sent   map[string]float64 // calls
	charge map[string]float64 // units; 1 for a call whose cost is not known
}

type running struct {
	Ticket

	from, to time.Duration
	cpu      float64
	key      string
}

func newWorld(t testing.TB, seed uint64, c Config) *world {
	t.Helper()
	race.SkipOneGoroutine(t)
	w := &world{random: rand.New(rand.NewPCG(seed, 1))}
	c.CPU = func() (time.Duration, error) {
		if w.lost {
			return 0, errLost
		}
		return time.Duration(w.cpu * 1e9), nil
	}
	e, err := New(c)
	if err != nil {
		t.Fatal(err)
	}
	w.Estimator = e
	w.reset()
	return w
}

func (w *world) reset() {
	w.spent, w.sent, w.charge = map[string]float64{}, map[string]float64{}, map[string]float64{}
}

// run lets the callers call for a time.
func (w *world) run(d time.Duration, callers ...*caller) {
	for end := w.at + d; w.at < end; w.at += tick {
		w.cpu += w.idle * tick.Seconds()
		for _, c := range callers {
			for range w.arrivals(c) {
				w.begin(c)
			}
		}
		w.work()
	}
}

// arrivals returns how many calls a caller makes in this tick.
func (w *world) arrivals(c *caller) (n int) {
	mean := c.rate * tick.Seconds()
	if c.turn != nil {
		mean *= c.turn(w.at)
	}
	if c.even {
		c.carry += mean
		n = int(c.carry + 1e-9)
		c.carry -= float64(n)
		return n
	}
	for p := w.random.Float64(); p > math.Exp(-mean); n++ {
		p *= w.random.Float64()
	}
	return n
}

// begin begins a call.
func (w *world) begin(c *caller) {
	cpu := c.cpu / 1e3
	if c.now != nil {
		cpu *= c.now(w.at)
	}
	if c.vary > 0 {
		cpu *= math.Exp(c.vary*w.random.NormFloat64() - c.vary*c.vary/2)
	}
	ticket, cost, known := w.Begin(t0.Add(w.at), known(c.key))
	if !known {
		cost = 1
	}
	w.charge[c.key] += cost
	w.sent[c.key]++
	w.calls = append(w.calls, running{ticket, w.at, w.at + max(c.took, tick), cpu, c.key})
}

// work lets all calls run for a tick.
func (w *world) work() {
	next, kept := w.at+tick, w.calls[:0]
	for _, r := range w.calls {
		part := r.cpu * float64(tick) / float64(r.to-r.from)
		w.cpu += part
		w.spent[r.key] += part
		if r.to <= next {
			w.Done(t0.Add(next-1), r.Ticket)
		} else {
			kept = append(kept, r)
		}
	}
	w.calls = kept
}

// of returns what is known of a key.
func (w *world) of(key string) KeyStats {
	for _, k := range w.Stats(time.Now()).Keys {
		if k.Key == key {
			return k
		}
	}
	return KeyStats{}
}

// milliseconds returns the cost and its error.
func (k KeyStats) milliseconds() (cost, deviation float64) {
	return k.Cost.Seconds() * 1e3, k.StandardError.Seconds() * 1e3
}

// charged returns what a key was charged, as a multiple of what it used.
func (w *world) charged(key string) float64 { return w.charge[key] / (w.spent[key] * 1e3) }

// known returns a call of a customer that is known by name, or of no customer.
func known(customer string) Call { return Call{Customer: customer, Known: customer != ""} }
