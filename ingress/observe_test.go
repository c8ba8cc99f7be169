package ingress

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seed90641741/spillway"
	"github.com/seed90641741/spillway/attempts"
	"github.com/seed90641741/spillway/load"
	"github.com/seed90641741/spillway/ratelimit"
	"github.com/seed90641741/spillway/shed"
)

// A trace is what comes to a server, and how busy it is then, whatever it does.
type trace struct {
	visits []visit
	states func(since time.Duration) shed.State
}

type visit struct {
	at, takes, limit time.Duration // the last: 0 for none
	call             spillway.Call
	panics           bool
}

// newTrace returns a trace of some seconds, with calm and busy times, requests of
// all classes and customers, that come in bursts. All are patient: when one leaves depends on how long it waits.
func newTrace(seed uint64) (tr trace) {
	r := rand.New(rand.NewPCG(seed, 2))
	var at time.Duration
	for range 3000 {
		rate := 400.0
		if at/(300*time.Millisecond)%4 == 3 {
			rate = 4000
		}
		at += time.Duration(r.ExpFloat64() / rate * float64(time.Second))
		v := visit{at: at, takes: time.Duration(r.ExpFloat64()*3e6) + 100*time.Microsecond + 1}
		v.call = spillway.Call{
			Customer:    []string{"a", "b", "c", "d", "e"}[r.IntN(5)],
			Criticality: spillway.Criticality(r.IntN(4)) - 2,
			Attempt:     int16(r.IntN(2)),
			Level:       spillway.Level(1 + r.IntN(spillway.Levels)),
		}
		switch r.IntN(10) {
		case 0:
			v.limit = time.Duration(r.IntN(int(20 * time.Millisecond)))
		case 1:
			v.panics = true
		case 2:
			v.limit = time.Duration(r.IntN(int(500 * time.Microsecond)))
		}
		tr.visits = append(tr.visits, v)
	}
	tr.states = func(since time.Duration) shed.State {
		seconds := since.Seconds()
		s := shed.State{Processors: 2, CPU: 0.9, Utilization: 0.6 + 0.5*math.Sin(seconds*3)}
		if math.Mod(seconds, 0.011) > 0.0021 {
			s.Runnable = 5 // so that requests wait, and some in vain
		}
		return s
	}
	return tr
}

// play lets a trace pass a Server, and returns what was decided on each request
// by each gate, and how many answers were rejections.
func (tr trace) play(t *testing.T, c Config) (decisions []string, rejections int) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		var seen log
		c.Observer = &seen
		var rejected atomic.Int64
		// The same for the same request, however many have drawn before.
		c.Shed.Rand = func() float64 { return math.Mod(float64(time.Now().UnixNano())*math.Phi, 1) }
		s := must(t, c)
		start := time.Now()
		var last atomic.Int64
		s.core.state = func(now time.Time) shed.State {
			st := tr.states(now.Sub(start))
			if last.Swap(now.UnixNano()) == now.UnixNano() {
				st.Runnable = 5 // a free processor takes one request
			}
			return st
		}
		s.dispatcher.idle.close()
		s.dispatcher.idle = nap{}
		var all sync.WaitGroup
		for _, v := range tr.visits {
			time.Sleep(time.Until(start.Add(v.at)))
			all.Go(func() {
				if v.visit(s) {
					rejected.Add(1)
				}
			})
		}
		all.Wait()
		s.shadows.Wait()
		rejections = int(rejected.Load())
		for _, e := range seen.events {
			word := e.Outcome.String()
			if e.Rejected {
				word = e.Err.Error()
			}
			decisions = append(decisions, fmt.Sprintf("%v %s %s: %s", e.Time.Sub(start), e.Call.Customer, e.Policy, word))
		}
		if st := s.Stats(time.Now()); st.InFlight.InFlight+st.Concurrency.Shared.InFlight+st.Concurrency.Shared.Parked+st.Shed.Waiting+st.RateLimit.Waiting != 0 {
			t.Errorf("left: %+v", st)
		}
	})
	slices.Sort(decisions)
	return decisions, rejections
}

// visit makes one request, and reports whether it was rejected.
func (v visit) visit(s *Server) (rejected bool) {
	call := v.call
	if v.limit > 0 {
		call.Deadline = time.Now().Add(v.limit)
	}
	p := usedSlots.Get().(*Slot)
	defer usedSlots.Put(p)
	if p.EnterAt(context.Background(), s, time.Now(), &call, &ratelimit.Caller{}).Rejected() {
		return true
	}
	outcome := spillway.OutcomeFailed
	defer func() {
		p.Done(outcome)
		_ = recover()
	}()
	if time.Sleep(v.takes); v.panics {
		panic("on purpose")
	}
	outcome = spillway.OutcomeServed
	return false
}

// usedSlots are used again for other requests, as adapters do.
var usedSlots = sync.Pool{New: func() any { return new(Slot) }}

// TestObserveReportsWhatEnforceDoes: with all gates in Observe no request is
// rejected, and what each gate reports of each is what it does in Enforce. One waiting queue
// at a time: requests that leave the first at one moment reach the second in no order.
func TestObserveReportsWhatEnforceDoes(t *testing.T) {
	for name, row := range map[string]struct {
		config Config
		kinds  []string
	}{
		"shed": {
			Config{InFlightMode: spillway.ModeOff},
			[]string{
				"rejected recently", "became free within", "fastest", "full", "threshold", "shed: served", "shed: failed",
				"quota: spillway", "quota: not started",
			},
		},
		"inflight": {
			Config{ShedMode: spillway.ModeOff, MaxInFlight: 5},
			[]string{"became free within", "full", "MaxInFlight", "rejected recently", "inflight: served", "inflight: failed"},
		},
	} {
		all := ""
		for seed := range uint64(4) {
			t.Run(fmt.Sprint(name, seed), func(t *testing.T) { all += observeAsEnforce(t, newTrace(seed), row.config) })
		}
		for _, kind := range append(row.kinds, "ratelimit: spillway", "before a token", "ratelimit: not started") {
			if n := strings.Count(all, kind); n < 12 {
				t.Errorf("%s: %q occurs %d times, which tests nothing", name, kind, n)
			}
		}
	}
}

// observeAsEnforce returns the decisions.
func observeAsEnforce(t *testing.T, tr trace, c Config) string {
	t.Helper()
	c.RateLimit = ratelimit.Config{Rate: 1500, BurstSeconds: 0.1, QueueDepth: 5}
	c.Attempts, c.Shed = attempts.Config{Share: -1}, shed.Config{MaxWait: 30 * time.Millisecond}
	play := func(mode spillway.Mode) ([]string, int) {
		for _, m := range []*spillway.Mode{&c.RateLimitMode, &c.QuotaMode, &c.InFlightMode, &c.ShedMode} {
			if *m != spillway.ModeOff {
				*m = mode
			}
		}
		c.Quota = perCustomer(t, 45)
		return tr.play(t, c)
	}
	enforced, rejections := play(spillway.ModeEnforce)
	observed, answers := play(spillway.ModeObserve)
	if answers != 0 || rejections == 0 {
		t.Errorf("observe mode rejected %d requests, enforce %d", answers, rejections)
	}
	if !slices.Equal(enforced, observed) {
		t.Errorf("enforce made %d decisions and observe %d; first difference %s", len(enforced), len(observed), difference(enforced, observed))
	}
	return strings.Join(enforced, "\n")
}

func difference(a, b []string) string {
	for i := range min(len(a), len(b)) {
		if a[i] != b[i] {
			return a[i] + " | " + b[i]
		}
	}
	return "in length"
}

// TestShadows: while a request that would wait is served, its shadow waits.
func TestShadows(t *testing.T) {
	const ms, forever = time.Millisecond, time.Hour
	for _, row := range []struct {
		name    string
		idle    time.Duration // when a processor is
		outcome spillway.Outcome
		ends    time.Duration // when the shadow does
		events  string
	}{
		{"in vain", forever, spillway.OutcomeServed, 60 * ms, "shed rejected (observe)"},
		{"until the client leaves", forever, spillway.OutcomeAbandoned, 10 * ms, "shed abandoned (observe)"},
		{"and is in flight as long as the request was", 20 * ms, spillway.OutcomeServed, 30 * ms, "shed served (observe)"},
		{"less long than the request is served", 5 * ms, spillway.OutcomeFailed, 15 * ms, "shed failed (observe)"},
	} {
		t.Run(row.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var seen log
				s := must(t, Config{ShedMode: spillway.ModeObserve, Observer: &seen})
				first := occupy(t, s)
				start := time.Now()
				s.core.state = func(now time.Time) shed.State {
					if now.Sub(start) >= row.idle {
						return shed.State{Processors: 1}
					}
					return shed.State{Processors: 1, Runnable: 5}
				}
				p, r := enter(s, spillway.Call{})
				if r.Rejected() || time.Since(start) != 0 || s.core.shed().Waiting() != 1 {
					t.Errorf("%+v after %v, %d wait", r, time.Since(start), s.core.shed().Waiting())
				}
				time.Sleep(10 * ms)
				p.Done(row.outcome)
				s.shadows.Wait()
				if got := seen.take(); got != row.events || time.Since(start) != row.ends {
					t.Errorf("%s after %v, want %s after %v", got, time.Since(start), row.events, row.ends)
				}
				first.Done(spillway.OutcomeServed)
			})
		})
	}
}

// TestObserverBeforeEnforcer: a gate that observes learns that another one has
// rejected.
func TestObserverBeforeEnforcer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var seen log
		s := must(t, Config{
			RateLimit: ratelimit.Config{Rate: 10, BurstSeconds: 0.1, QueueDepth: 5}, RateLimitMode: spillway.ModeObserve,
			Observer: &seen,
		})
		s.core.state = func(time.Time) shed.State { return shed.State{Processors: 1, Utilization: 2} }
		for _, want := range []string{
			"shed rejected, ratelimit not started (observe)",
			"shed rejected", // the rest once there is a token
		} {
			if _, r := enter(s, spillway.Call{}); !r.Rejected() {
				t.Errorf("%+v", r)
			}
			if got := seen.take(); got != want {
				t.Errorf("%s, want %s", got, want)
			}
		}
		s.shadows.Wait()
		if got := seen.take(); got != "ratelimit not started (observe)" {
			t.Errorf("%s", got)
		}
	})
}

// TestSuspendedShadows: requests that wait for their client are not in flight at gates that
// observe, whether their shadows were admitted at once or have waited.
func TestSuspendedShadows(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := must(t, Config{InFlightMode: spillway.ModeObserve, MaxInFlight: 1, ShedMode: spillway.ModeOff})
		s.dispatcher.idle.close()
		s.dispatcher.idle = nap{}
		inFlight := func(want, waiting int) {
			t.Helper()
			time.Sleep(10 * time.Millisecond)
			synctest.Wait()
			if st := s.Stats(time.Now()).InFlight; st.InFlight != want || st.Waiting != waiting {
				t.Errorf("%d in flight and %d waiting, want %d and %d", st.InFlight, st.Waiting, want, waiting)
			}
		}
		first, _ := enter(s, spillway.Call{})
		second, _ := enter(s, spillway.Call{})
		inFlight(1, 1)
		second.Suspend(time.Now()) // its shadow waits
		inFlight(1, 1)
		first.Suspend(time.Now())
		inFlight(0, 0)
		first.Resume(time.Now())
		inFlight(1, 0)
		second.Resume(time.Now())
		inFlight(2, 0)
		second.Suspend(time.Now())
		inFlight(1, 0)
		first.Done(spillway.OutcomeServed)
		second.Done(spillway.OutcomeServed)
		s.shadows.Wait()
		inFlight(0, 0)
	})
}

// A wait that a limit only observes is no load: the shedder, which enforces, would reject requests for it.
func TestObservedWaitIsNoLoad(t *testing.T) {
	for _, row := range []struct {
		inFlight, shed spillway.Mode
		load           bool
	}{
		{spillway.ModeObserve, spillway.ModeEnforce, false},
		{spillway.ModeObserve, spillway.ModeObserve, true},
		{spillway.ModeEnforce, spillway.ModeEnforce, true},
	} {
		synctest.Test(t, func(t *testing.T) {
			s := must(t, Config{MaxInFlight: 1, InFlightMode: row.inFlight, ShedMode: row.shed})
			s.dispatcher.idle.close()
			s.dispatcher.idle = nap{}
			first, _ := enter(s, spillway.Call{})
			second, _ := enter(s, spillway.Call{})
			time.Sleep(2 * time.Second)
			for _, r := range s.load.Stats(time.Now()).Readings {
				if r.Name == load.Queue.String() && (r.Value > 0) != row.load {
					t.Errorf("MaxInFlight %v, shedder %v: the queue is %v, want load: %v", row.inFlight, row.shed, r.Value, row.load)
				}
			}
			first.Done(spillway.OutcomeServed)
			second.Done(spillway.OutcomeServed)
		})
	}
}
