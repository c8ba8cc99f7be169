package concurrency

import (
	"container/heap"
	"fmt"
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/seed90641741/spillway"
	"github.com/seed90641741/spillway/internal/race"
)

// A fifo drives a Limiter in explicit time, from one event to the next: random arrivals at a pool of
// slots with a queue. Arrivals beyond the limit wait for it for half of their patience.
type fifo struct {
	l       *Limiter
	rng     *rand.Rand
	slots   int
	service func(*rand.Rand) time.Duration
	now     time.Duration
	busy    ends
	queue   []job
	waiting []time.Duration // when they were sent
	good    int             // answered within patience
}

const patience = 250 * time.Millisecond

type job struct {
	sent   time.Duration
	ticket spillway.Ticket
}

type end struct {
	at time.Duration
	job
}

// ends is a heap of what is in service.
type ends []end

func (e ends) Len() int           { return len(e) }
func (e ends) Less(i, j int) bool { return e[i].at < e[j].at }
func (e ends) Swap(i, j int)      { e[i], e[j] = e[j], e[i] }
func (e *ends) Push(x any)        { *e = append(*e, x.(end)) }
func (e *ends) Pop() any {
	last := (*e)[len(*e)-1]
	*e = (*e)[:len(*e)-1]
	return last
}

// run offers so many requests per second, on average.
func (f *fifo) run(d time.Duration, perSecond float64) {
	gap := func() time.Duration { return time.Duration(f.rng.ExpFloat64() / perSecond * 1e9) }
	until := f.now + d
	for arrival := f.now + gap(); ; {
		next := min(arrival, until)
		for len(f.busy) > 0 && f.busy[0].at <= next {
			f.finish(heap.Pop(&f.busy).(end))
		}
		if f.now = next; next == until {
			return
		}
		f.waiting = append(f.waiting, f.now)
		f.admit()
		arrival += gap()
	}
}

// admit lets requests in while the limit allows it, and drops requests that have waited for too long.
func (f *fifo) admit() {
	for len(f.waiting) > 0 {
		sent := f.waiting[0]
		if f.now-sent < patience/2 {
			if !f.l.Ask(t0.Add(f.now), "a").Free {
				return
			}
			f.queue = append(f.queue, job{sent, f.l.Enter(t0.Add(f.now), call("a"))})
			f.start()
		}
		f.waiting = f.waiting[1:]
	}
}

func (f *fifo) finish(e end) {
	f.now = e.at
	e.ticket.Settle(t0.Add(e.at), spillway.OutcomeServed)
	if e.at-e.sent <= patience {
		f.good++
	}
	f.start()
	f.admit()
}

func (f *fifo) start() {
	for len(f.busy) < f.slots && len(f.queue) > 0 {
		heap.Push(&f.busy, end{f.now + f.service(f.rng), f.queue[0]})
		f.queue = f.queue[1:]
	}
}

func constantly(*rand.Rand) time.Duration { return 20 * time.Millisecond }

func nearly(rng *rand.Rand) time.Duration {
	return time.Duration(19.8e6 + 0.4e6*rng.Float64())
}

func randomly(rng *rand.Rand) time.Duration { return time.Duration(20e6 * rng.ExpFloat64()) }

// load is a row of TestBatches.
type load struct {
	slots int
	times float64 // the capacity
	ramp  bool    // from 0.3 times the capacity on; otherwise from nothing
	seed  uint64
}

func (r load) String() string {
	return fmt.Sprintf("%d slots, %g times, ramp %v, seed %d", r.slots, r.times, r.ramp, r.seed)
}

// loads returns the rows. The largest pools have one seed, which keeps the test short.
func loads() (rows []load) {
	for _, slots := range []int{1, 2, 8, 64, 256, 512, 2000} {
		for _, times := range []float64{1.2, 2, 5, 20} {
			for _, ramp := range []bool{false, true} {
				for seed := range uint64(2) {
					if big := float64(slots) * times; big <= 1000 || big <= 10_000 && seed == 0 && !ramp {
						rows = append(rows, load{slots, times, ramp, seed})
					}
				}
			}
		}
	}
	return rows
}

// bands returns the least goodput, in shares of the capacity, and the greatest limit. A pool that
// serves 100 per second or less is not limited with fewer than 16 in flight, and takes seconds
// for each probe, which chance decides: only its limit is bounded.
func (r load) bands() (goodput, limit float64) {
	if r.slots < 8 {
		return 0, 24
	}
	return 0.9, 6 * float64(r.slots)
}

// Requests that take the same time and start together end together, one batch after the other. The
// limit is the same as with random times.
func TestBatches(t *testing.T) {
	race.SkipOneGoroutine(t)
	for name, service := range map[string]func(*rand.Rand) time.Duration{
		"constant": constantly, "nearly constant": nearly, "random": randomly,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for _, r := range loads() {
				f := &fifo{l: must(t, Config{}), rng: rand.New(rand.NewPCG(r.seed, 9)), slots: r.slots, service: service}
				goodput, least, most := f.measure(r)
				if wantGood, wantMost := r.bands(); goodput < wantGood || most > wantMost || least < float64(r.slots)/3 {
					t.Errorf("%v: goodput %.3f, limit %.1f to %.1f, want %v, %.1f to %v", r, goodput, least, most, wantGood, float64(r.slots)/3, wantMost)
				}
			}
		})
	}
}

// measure returns the goodput after a second and some hundred requests, and the bounds of the limit.
// Without a limit what is in flight counts.
func (f *fifo) measure(r load) (goodput, least, most float64) {
	capacity := float64(r.slots) * 50
	warm := time.Second + seconds(400/capacity)
	const steps = 50
	for i := 0; r.ramp && i < steps; i++ {
		f.run(2*warm/steps, capacity*(0.3+(r.times-0.3)*float64(i)/steps))
	}
	f.run(warm, capacity*r.times)
	f.good, least = 0, math.Inf(1)
	begin := f.now
	for f.now < begin+2*warm {
		f.run(10*time.Millisecond, capacity*r.times)
		switch k := f.l.Stats(t0.Add(f.now)).Tightest(); k.State {
		case Limiting:
			least, most = min(least, k.Limit), max(most, k.Limit)
		case Open:
			most = max(most, float64(k.InFlight+k.Parked))
		case Draining, Probing:
		}
	}
	return float64(f.good) / capacity / (f.now - begin).Seconds(), least, most
}
