package throttle_test

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/seed90641741/spillway"
	"github.com/seed90641741/spillway/internal/race"
	"github.com/seed90641741/spillway/internal/thorough"
	"github.com/seed90641741/spillway/throttle"
)

const (
	capacity = 1000 // calls per second that the backend of a scenario accepts
	tick     = 10 * time.Millisecond
)

// A scenario is a number of clients, each with its own throttle, calling one
// backend that accepts up to its capacity and rejects the rest. Arrivals are
// Poisson; answers take latency.
type scenario struct {
	seed    uint64
	k       float64
	clients int
	busiest float64 // the share of calls that the first client makes besides its own
	latency time.Duration
	length  time.Duration
	load    func(at time.Duration) float64 // offered, in capacities
	down    func(at time.Duration) bool    // the backend rejects everything
}

// A second is what happened in one second of a scenario.
type second struct{ offered, sent, served float64 }

// perTick is what the backend accepts in a tick.
const perTick = capacity * float64(tick) / float64(time.Second)

type answer struct {
	at      time.Duration
	ticket  spillway.Ticket
	outcome spillway.Outcome
}

// answers are the pending ones, in order, after some that were given.
type answers struct {
	all   []answer
	given int
}

// until gives the answers until at.
func (a *answers) until(at time.Duration) {
	for ; a.given < len(a.all) && a.all[a.given].at <= at; a.given++ {
		next := &a.all[a.given]
		next.ticket.Settle(t0.Add(next.at), next.outcome)
	}
	if 2*a.given >= len(a.all) { // the memory is used again
		a.all, a.given = append(a.all[:0], a.all[a.given:]...), 0
	}
}

func (s scenario) throttles(t testing.TB) []*throttle.Throttle {
	t.Helper()
	race.SkipOneGoroutine(t)
	clients := make([]*throttle.Throttle, s.clients)
	for i := range clients {
		clients[i] = must(t, throttle.Config{K: s.k, Rand: rand.New(rand.NewPCG(21+s.seed, uint64(i)+2)).Float64})
	}
	return clients
}

// client returns which client makes a call.
func (s *scenario) client(r *rand.Rand) int {
	client := r.IntN(s.clients)
	if s.busiest > 0 && r.Float64() < s.busiest {
		return 0
	}
	return client
}

// room returns how many calls the backend accepts in a tick, with some left from before.
func (s *scenario) room(left float64, at time.Duration) float64 {
	if s.down != nil && s.down(at) {
		return 0
	}
	return min(left+perTick, capacity/10)
}

func (s scenario) run(t testing.TB) []second {
	t.Helper()
	r := rand.New(rand.NewPCG(21, s.seed+1))
	clients := s.throttles(t)
	seconds := make([]second, s.length/time.Second)
	var pending answers
	var room float64
	next := r.ExpFloat64()
	for at := time.Duration(0); at < s.length; at += tick {
		pending.until(at)
		room = s.room(room, at)
		now, sec := t0.Add(at), &seconds[at/time.Second]
		// The next arrival is kept as what is left of a unit-rate process, so
		// that a change of load takes effect at once.
		for left := s.load(at) * perTick; ; next = r.ExpFloat64() {
			if next > left {
				next -= left
				break
			}
			left -= next
			sec.offered++
			ticket, err := clients[s.client(r)].Admit(now, spillway.Call{})
			if err != nil {
				continue
			}
			sec.sent++
			a := answer{at + s.latency, ticket, spillway.OutcomeOverloaded}
			if room >= 1 {
				room--
				sec.served++
				a.outcome = spillway.OutcomeServed
			}
			pending.all = append(pending.all, a)
		}
	}
	return seconds
}

func constant(load float64) func(time.Duration) float64 {
	return func(time.Duration) float64 { return load }
}

func sum(seconds []second) (all second) {
	for _, s := range seconds {
		all.offered += s.offered
		all.sent += s.sent
		all.served += s.served
	}
	return all
}

func TestBackendReceivesKTimesItsCapacity(t *testing.T) {
	for _, row := range []struct{ k, load, want, within float64 }{
		{2, 3, 2, 0.1},
		{2, 10, 2, 0.1},
		{2, 30, 2, 0.1},
		{1.1, 2, 1.1, 0.05},
		{1.1, 10, 1.1, 0.05},
		{1.1, 30, 1.1, 0.05},
		{2, 1.2, 1.2, 0.05}, // below K nothing is rejected
	} {
		if testing.Short() && row.load > 2 || !thorough.Enabled() && row.load > 10 {
			continue // as the time that a row takes goes by its load
		}
		seconds := scenario{
			k: row.k, clients: 100, latency: 5 * time.Millisecond,
			length: 90 * time.Second, load: constant(row.load),
		}.run(t)
		steady := seconds[30:]
		all := sum(steady)
		full := float64(len(steady)) * capacity
		sent, served := all.sent/full, all.served/full
		t.Logf("K = %v at %vx: backend receives %.3f of its capacity and serves %.3f", row.k, row.load, sent, served)
		if sent < row.want-row.within || sent > row.want+row.within {
			t.Errorf("K = %v at %vx: backend receives %.3f of its capacity, want %v ± %v", row.k, row.load, sent, row.want, row.within)
		}
		if served < 0.97 {
			t.Errorf("K = %v at %vx: backend serves only %.3f of its capacity", row.k, row.load, served)
		}
	}
}

func TestRecoveryAfterATotalOutage(t *testing.T) {
	const begin, end = 60 * time.Second, 360 * time.Second
	for _, row := range []struct {
		k, load float64
		within  int // seconds
	}{{2, 0.5, 10}, {1.1, 0.5, 30}, {2, 0.9, 10}, {1.1, 0.9, 30}} {
		seconds := scenario{
			k: row.k, clients: 100, latency: 5 * time.Millisecond,
			length: end + 60*time.Second, load: constant(row.load),
			down: func(at time.Duration) bool { return at >= begin && at < end },
		}.run(t)
		outage := sum(seconds[begin/time.Second+30 : end/time.Second])
		took := -1
		for i, s := range seconds[end/time.Second:] {
			if s.served >= 0.99*s.offered {
				took = i + 1
				break
			}
		}
		t.Logf("K = %v at %vx: 99 %% success in second %d after a 300 s outage; %.2f of calls sent during it", row.k, row.load, took, outage.sent/outage.offered)
		if took < 0 || took > row.within {
			t.Errorf("K = %v at %vx: 99 %% success in second %d after the outage, want within %d s", row.k, row.load, took, row.within)
		}
		if after := sum(seconds[int(end/time.Second)+row.within:]); after.served < 0.99*after.offered {
			t.Errorf("K = %v at %vx: only %.3f served after the recovery", row.k, row.load, after.served/after.offered)
		}
	}
}

func TestRecoveryIntoOverloadDoesNotFlood(t *testing.T) {
	const begin, end = 30 * time.Second, 90 * time.Second
	seconds := scenario{
		k: 1.1, clients: 100, latency: 5 * time.Millisecond,
		length: end + 60*time.Second, load: constant(10),
		down: func(at time.Duration) bool { return at >= begin && at < end },
	}.run(t)
	for i, s := range seconds[end/time.Second:] {
		if s.sent > 2*capacity {
			t.Errorf("second %d after the outage: %.2f capacities sent", i, s.sent/capacity)
		}
	}
}

func TestRecoveryWhenTheLoadGoesAway(t *testing.T) {
	const end = 90 * time.Second
	for _, row := range []struct {
		k      float64
		within int
	}{{2, 60}, {1.1, 60}} {
		seconds := scenario{
			k: row.k, clients: 100, latency: 5 * time.Millisecond, length: end + 120*time.Second,
			load: func(at time.Duration) float64 {
				if at < end {
					return 10
				}
				return 0.5
			},
		}.run(t)
		after := sum(seconds[int(end/time.Second)+row.within:])
		if after.served < 0.99*after.offered {
			t.Errorf("K = %v: %v s after the load went away only %.3f is served", row.k, row.within, after.served/after.offered)
		}
	}
}

func TestHealthySlowBackendIsNeverThrottled(t *testing.T) {
	for _, k := range []float64{2, 1.1} {
		seconds := scenario{
			k: k, clients: 100, latency: time.Second,
			length: 60 * time.Second, load: constant(0.9),
		}.run(t)
		if all := sum(seconds); all.sent != all.offered {
			t.Errorf("K = %v: %v of %v calls to a healthy backend with 1 s latency were rejected", k, all.offered-all.sent, all.offered)
		}
	}
}

// A backend that accepts no call of a class for a while is as good as down for it,
// whatever it accepted before: the class must be back right after an outage.
func TestHardlyAnyAccepts(t *testing.T) {
	for seed := range uint64(20) {
		th := must(t, throttle.Config{Rand: rand.New(rand.NewPCG(seed, 3)).Float64})
		rejected := 0
		call := func(at time.Duration, o spillway.Outcome) {
			now := t0.Add(at)
			ticket, err := th.Admit(now, spillway.Call{})
			if err != nil {
				rejected++
				return
			}
			ticket.Settle(now.Add(3*time.Millisecond), o)
		}
		offer := func(from, to, every time.Duration, o spillway.Outcome) {
			for at := from; at < to; at += every {
				call(at, o)
			}
		}
		const s = time.Second
		offer(0, 4*s, s/80, spillway.OutcomeServed)
		offer(4*s, 12*s, s/1600, spillway.OutcomeOverloaded)
		offer(12*s, 14*s, s/20, spillway.OutcomeServed)
		rejected = 0
		offer(14*s, 15*s, s/20, spillway.OutcomeServed)
		if rejected > 0 {
			t.Errorf("seed %d: %d of 20 calls rejected two seconds after the backend was back", seed, rejected)
		}
	}
}

// Package egress settles with the time at which an attempt began. A backend that
// hangs is probed once per interval all the same, however late its calls time out,
// and is called again soon after it answers.
func TestHangingBackendIsProbedOncePerInterval(t *testing.T) {
	const (
		timeout = 5 * time.Second
		length  = 60 * time.Second
		back    = 20 * time.Second
	)
	th := must(t, throttle.Config{Rand: rand.New(rand.NewPCG(21, 4)).Float64})
	type call struct {
		began  time.Time
		ticket spillway.Ticket
	}
	var pending []call
	probes, rejected := 0, 0 // in the last 30 s of the hang, in the last 10 s of all
	for at := time.Duration(0); at < length+back; at += tick {
		now := t0.Add(at)
		for len(pending) > 0 && now.Sub(pending[0].began) >= timeout {
			pending[0].ticket.Settle(pending[0].began, spillway.OutcomeTimedOut)
			pending = pending[1:]
		}
		ticket, err := th.Admit(now, spillway.Call{})
		switch {
		case err != nil && at >= length+back/2:
			rejected++
		case err != nil:
		case at >= length:
			ticket.Settle(now, spillway.OutcomeServed)
		default:
			pending = append(pending, call{now, ticket})
			if at >= length/2 {
				probes++
			}
		}
	}
	if probes > 35 {
		t.Errorf("a backend that hangs was sent %d calls in 30 s, want about one a second", probes)
	}
	if rejected > 0 {
		t.Errorf("%d calls were rejected more than 10 s after the backend was back", rejected)
	}
}
