package throttle_test

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/seed90641741/spillway"
	"github.com/seed90641741/spillway/internal/race"
	"github.com/seed90641741/spillway/internal/thorough"
	"github.com/seed90641741/spillway/throttle"
)

// ks are the K that recovery is wanted for.
var ks = []float64{1.05, 1.1, 1.5, 2, 4}

// A population is the clients of a backend, and their K.
type population struct {
	clients int
	k       float64
}

// populations are what recovery is wanted for: some of them by default, and with -short one.
func populations() (all []population) {
	if testing.Short() {
		return []population{{20, 1.1}}
	}
	if !thorough.Enabled() {
		return []population{{1, 2}, {20, 1.1}, {1000, 2}}
	}
	for _, clients := range []int{1, 20, 1000} {
		for _, k := range ks {
			all = append(all, population{clients, k})
		}
	}
	return all
}

// outages returns lengths of outages in seconds: the given ones, and an hour for 20 clients with the
// least and the greatest K. A throttle forgets what was before after some windows of 30 s, and a K
// multiplies accepts, of which there are none, so the others do with the given ones. By default the
// last two are tried, and with -short the second.
func (p population) outages(all ...int) []int {
	switch {
	case testing.Short():
		return all[1:2]
	case !thorough.Enabled():
		return all[len(all)-2:]
	case p.clients == 20 && (p.k == ks[0] || p.k == ks[len(ks)-1]):
		return append(all, 3600)
	}
	return all
}

// within is how soon after the backend 90 % of the calls must be served: a smaller K
// lets fewer calls show it.
func within(k float64) int {
	if k < 1.5 {
		return 2
	}
	return 1
}

func TestRecoveryFromOverload(t *testing.T) {
	const end = 90 * time.Second
	for i, p := range populations() {
		clients, k, seed := p.clients, p.k, uint64(i)
		seconds := scenario{
			seed: seed, k: k, clients: clients, latency: 5 * time.Millisecond, length: end + 6*time.Second,
			load: func(at time.Duration) float64 {
				if at < end {
					return 10
				}
				return 0.5
			},
		}.run(t)
		steady, after := sum(seconds[30:90]), seconds[90+within(k):]
		sent := steady.sent / 60 / capacity
		if most := k*1.03 + 0.05; sent > most {
			t.Errorf("%d clients, K = %v, seed %d: %.3f of the capacity is sent at 10x, want at most %.3f", clients, k, seed, sent, most)
		}
		for i, s := range after {
			if s.served < 0.9*s.offered {
				t.Errorf("%d clients, K = %v, seed %d: %.2f served %d s after the overload", clients, k, seed, s.served/s.offered, i+within(k))
			}
		}
	}
}

func TestRecoveryFromOutages(t *testing.T) {
	const begin = 60
	for _, p := range populations() {
		clients, k := p.clients, p.k
		for _, outage := range p.outages(1, 5, 60, 300) {
			for _, load := range []float64{0.5, 0.9} {
				name := fmt.Sprintf("%d clients, K = %v, %d s at %vx", clients, k, outage, load)
				seconds := scenario{
					k: k, clients: clients, latency: 5 * time.Millisecond,
					length: time.Duration(begin+outage+6) * time.Second, load: constant(load),
					down: func(at time.Duration) bool {
						return at >= begin*time.Second && at < time.Duration(begin+outage)*time.Second
					},
				}.run(t)
				// A probe may be sent an interval after the backend is back: a second to
				// know of it, and then within.
				after := seconds[begin+outage+1+within(k)-1:]
				if clients == 1000 && outage >= 60 {
					// A client of so few calls sends one of nine to a dead backend, and cannot know of
					// its return before: see TestSparseClients.
					after = nil
				}
				for i, s := range after {
					if s.served < 0.9*s.offered {
						t.Errorf("%s: %.2f served %d s after the outage", name, s.served/s.offered, i+within(k))
					}
				}
				if outage >= 60 {
					late := sum(seconds[begin+30 : begin+outage])
					if most := 1.05*float64(clients) + 1; late.sent/float64(outage-30) > most {
						t.Errorf("%s: a dead backend gets %.1f calls per second, want %.1f", name, late.sent/float64(outage-30), most)
					}
				}
			}
		}
	}
}

// After an outage under ten times the capacity, what is sent stays at K times the
// capacity, but for a second.
func TestRecoveryIntoOverload(t *testing.T) {
	const begin = 60
	for _, p := range populations() {
		clients, k := p.clients, p.k
		for _, outage := range p.outages(1, 10, 300) {
			seconds := scenario{
				k: k, clients: clients, latency: 5 * time.Millisecond,
				length: time.Duration(begin+outage+10) * time.Second,
				load: func(at time.Duration) float64 {
					if at > begin*time.Second && at < time.Duration(begin+outage-30)*time.Second {
						return 1 // until the last window of the outage: ten times as many calls would take long here
					}
					return 10
				},
				down: func(at time.Duration) bool {
					return at >= begin*time.Second && at < time.Duration(begin+outage)*time.Second
				},
			}.run(t)
			over := 0
			for _, s := range seconds[begin+outage:] {
				if s.sent > (1.2*k+0.1)*capacity {
					over++
				}
			}
			if over > 1 {
				t.Errorf("%d clients, K = %v, %d s: %d seconds above K times the capacity: %v", clients, k, outage, over, seconds[begin+outage:])
			}
		}
	}
}

// oneBusyClient is an overload of two minutes and six seconds after it, in which one client makes
// most of the calls, and each of the others one in five seconds after the overload: what these know
// of the backend is minutes old.
func oneBusyClient(t testing.TB, seed uint64) (overload, after second) {
	t.Helper()
	const end = 120 * time.Second
	seconds := scenario{
		seed: seed, k: 1.1, clients: 1000, busiest: 0.6, latency: 5 * time.Millisecond, length: end + 6*time.Second,
		load: func(at time.Duration) float64 {
			if at < end {
				return 10
			}
			return 0.5
		},
	}.run(t)
	return sum(seconds[60:120]), sum(seconds[122:])
}

// The backend serves most of what it can in the overload, and most calls two seconds after it.
// BenchmarkFigures has how many.
func TestOneClientMakesMostCalls(t *testing.T) {
	if testing.Short() {
		t.Skip("a second of work")
	}
	overload, after := oneBusyClient(t, 0)
	if overload.sent > 60*2*capacity || overload.served < 60*0.9*capacity {
		t.Errorf("%.3f sent and %.2f served at 10x", overload.sent/60/capacity, overload.served/60/capacity)
	}
	if after.served < 0.75*after.offered {
		t.Errorf("%.2f served after the overload", after.served/after.offered)
	}
}

// periods are how long a flapping backend takes to be down and up once.
var periods = []time.Duration{200 * time.Millisecond, time.Second, 4 * time.Second, 20 * time.Second}

// upAndDown returns which shares of what a backend can serve are sent and served, when it is down and
// up in turn.
func upAndDown(t testing.TB, seed uint64, period time.Duration) (sent, served float64) {
	t.Helper()
	seconds := scenario{
		seed: seed, k: 2, clients: 20, latency: 5 * time.Millisecond, length: 120 * time.Second, load: constant(0.8),
		down: func(at time.Duration) bool { return at%period < period/2 },
	}.run(t)
	all := sum(seconds[40:])
	could := 80 * 0.4 * capacity // half of the time it is down
	return all.sent / could, all.served / could
}

// A backend that is up and down in turn gets no more than K times what it can do in its good times,
// and serves most of what it can. BenchmarkFigures has how much.
func TestFlappingBackend(t *testing.T) {
	for _, period := range periods {
		if sent, served := upAndDown(t, 0, period); sent > 2 || served < 0.5 {
			t.Errorf("down and up every %v: of what it could serve %.2f were sent and %.2f served", period, sent, served)
		}
	}
}

// A backend that takes ten seconds over each call, and rejects at once or as late.
func TestLongLatency(t *testing.T) {
	const latency, begin, end = 10 * time.Second, 60, 120
	for _, k := range ks {
		seconds := scenario{
			k: k, clients: 20, latency: latency, length: (end + 60) * time.Second, load: constant(0.5),
			down: func(at time.Duration) bool { return at >= begin*time.Second && at < end*time.Second },
		}.run(t)
		// What was sent when it was back is known ten seconds later, and what that led to
		// after ten more.
		for i, s := range seconds[end+30:] {
			if s.served < 0.9*s.offered {
				t.Errorf("K = %v: %.2f served %d s after the outage", k, s.served/s.offered, 30+i)
				break
			}
		}
	}
}

// A clock that is set back in an outage stops neither the probes nor the recovery.
func TestClockSetBack(t *testing.T) {
	for _, back := range []time.Duration{time.Second / 2, 10 * time.Second, time.Hour} {
		th := must(t, throttle.Config{Rand: rand.New(rand.NewPCG(1, 1)).Float64})
		var set time.Duration
		served, calls := 0, 0
		for at := time.Duration(0); at < 60*time.Second; at += 2 * time.Millisecond {
			if at == 25*time.Second {
				set = back
			}
			now := t0.Add(at - set)
			up := at < 20*time.Second || at >= 30*time.Second
			ticket, err := th.Admit(now, spillway.Call{})
			if at >= 32*time.Second {
				calls++
			}
			switch {
			case err != nil:
			case up:
				ticket.Settle(now, spillway.OutcomeServed)
				if at >= 32*time.Second {
					served++
				}
			default:
				ticket.Settle(now, spillway.OutcomeOverloaded)
			}
		}
		if served < calls*99/100 {
			t.Errorf("set back by %v: %d of %d calls served two seconds after the outage", back, served, calls)
		}
	}
}

// A backend that accepts what is cheap and rejects what is costly gets at most K calls
// for each that it accepts: cheap calls that go well are no recovery.
func TestCheapAcceptedCostlyRejected(t *testing.T) {
	race.SkipOneGoroutine(t)
	for _, k := range ks {
		r := rand.New(rand.NewPCG(5, 5))
		th := must(t, throttle.Config{K: k, Rand: r.Float64})
		sent, accepted := 0., 0.
		for at := time.Duration(0); at < 120*time.Second; at += 2 * time.Millisecond {
			now := t0.Add(at)
			ticket, err := th.Admit(now, spillway.Call{})
			if err != nil {
				continue
			}
			o := spillway.OutcomeOverloaded
			if r.Float64() < 0.15 {
				o = spillway.OutcomeServed
			}
			if at >= 10*time.Second {
				sent++
				if o.Accepted() {
					accepted++
				}
			}
			ticket.Settle(now, o)
		}
		// Of 0.15 no K up to 4 lets more than a trickle through: probes and their like.
		if perSecond := sent / 110; perSecond > 60 {
			t.Errorf("K = %v: %.0f of 500 calls per second are sent to a backend that rejects most", k, perSecond)
		}
	}
}

// Clients from one call per minute to a hundred thousand per second.
func TestFromSparseToHot(t *testing.T) {
	race.SkipOneGoroutine(t)
	for _, every := range []time.Duration{time.Minute, 10 * time.Second, 100 * time.Millisecond, 10 * time.Microsecond} {
		th := must(t, throttle.Config{Rand: rand.New(rand.NewPCG(2, 2)).Float64})
		length := max(100*every, 4*time.Second)
		run := func(from time.Duration, o spillway.Outcome) (sent, calls int) {
			for at := from; at < from+length; at += every {
				calls++
				if ticket, err := th.Admit(t0.Add(at), spillway.Call{}); err == nil {
					sent++
					ticket.Settle(t0.Add(at), o)
				}
			}
			return sent, calls
		}
		run(0, spillway.OutcomeServed)
		rejected, calls := run(length, spillway.OutcomeOverloaded)
		run(2*length, spillway.OutcomeServed)
		served, again := run(3*length, spillway.OutcomeServed)
		if served != again {
			t.Errorf("every %v: %d of %d calls sent after the outage", every, served, again)
		}
		if bound := 15 + int(length/time.Second) + calls*40/100; rejected > bound {
			t.Errorf("every %v: %d of %d calls sent in an outage of %v, want at most %d", every, rejected, calls, length, bound)
		}
	}
}
