package ingress

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seed90641741/spillway"
	"github.com/seed90641741/spillway/internal/race"
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

// newTrace returns a trace of some seconds, with calm and busy times, requests of all classes and
// customers, that come in bursts. All are patient: when one leaves depends on how long it waits.
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

// play lets a trace pass a Server, and returns what each gate has, or would have, rejected, and
// how many answers were rejections.
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
		s.core.State = func(now time.Time) shed.State {
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
		rejections = int(rejected.Load())
		for _, e := range seen.events {
			if e.Rejected {
				decisions = append(decisions, fmt.Sprintf("%v %s %s: %s", e.Time.Sub(start), e.Call.Customer, e.Policy, e.Err.Error()))
			}
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

// TestObserveReportsWhatEnforceDoes: the rate limit and the quota decide by the arriving requests
// alone. In the mode observe they reject no request, and report what they reject in the mode
// enforce.
func TestObserveReportsWhatEnforceDoes(t *testing.T) {
	for name, row := range map[string]struct {
		config Config
		quota  float64
		kinds  []string
	}{
		"rate limit with a queue": {Config{RateLimit: ratelimit.Config{Rate: 1500, BurstSeconds: 0.1, QueueDepth: 5}, QuotaMode: spillway.ModeOff}, 45, []string{"ratelimit: spillway", "before a token"}},
		"rate limit and quota":    {Config{RateLimit: ratelimit.Config{Rate: 1500, BurstSeconds: 0.1}}, 45, []string{"ratelimit: spillway", "quota: spillway"}},
	} {
		all := ""
		for seed := range uint64(4) {
			t.Run(fmt.Sprint(name, seed), func(t *testing.T) { all += observeAsEnforce(t, newTrace(seed), row.config, row.quota) })
		}
		for _, kind := range row.kinds {
			if n := strings.Count(all, kind); n < 12 {
				t.Errorf("%s: %q occurs %d times, which tests nothing", name, kind, n)
			}
		}
	}
}

// observeAsEnforce returns the decisions.
func observeAsEnforce(t *testing.T, tr trace, c Config, rate float64) string {
	t.Helper()
	c.ShedMode = spillway.ModeOff
	play := func(mode spillway.Mode) ([]string, int) {
		for _, m := range []*spillway.Mode{&c.RateLimitMode, &c.QuotaMode} {
			if *m != spillway.ModeOff {
				*m = mode
			}
		}
		c.Quota = perCustomer(t, rate)
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

// TestObserverBeforeEnforcer: a gate that observes learns that another one has
// rejected.
func TestObserverBeforeEnforcer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var seen log
		s := must(t, Config{
			RateLimit: ratelimit.Config{Rate: 10, BurstSeconds: 0.1, QueueDepth: 5}, RateLimitMode: spillway.ModeObserve,
			Observer: &seen,
		})
		s.core.State = func(time.Time) shed.State { return shed.State{Processors: 1, Utilization: 2} }
		for _, want := range []string{
			"shed rejected, ratelimit not started (observe)",
			"shed rejected, ratelimit not started (observe)", // it would have waited for a token
		} {
			if _, r := enter(s, spillway.Call{}); !r.Rejected() {
				t.Errorf("%+v", r)
			}
			if got := seen.take(); got != want {
				t.Errorf("%s, want %s", got, want)
			}
		}
	})
}

// A request that would wait runs at once. It ends as served if there was room before its maximum
// wait, and else as one that would have been rejected.
func TestWouldWait(t *testing.T) {
	const ms = time.Millisecond
	for name, row := range map[string]struct {
		takes   time.Duration // the request that would wait
		first   time.Duration // the one that has the slot ends
		outcome spillway.Outcome
		want    string
	}{
		"there was room":               {50 * ms, 20 * ms, spillway.OutcomeServed, "inflight served (observe)"},
		"there was room too late":      {200 * ms, 100 * ms, spillway.OutcomeServed, "inflight rejected (observe)"},
		"it made room itself":          {50 * ms, time.Hour, spillway.OutcomeFailed, "inflight failed (observe)"},
		"it made room itself too late": {100 * ms, time.Hour, spillway.OutcomeServed, "inflight rejected (observe)"},
		"its client left":              {50 * ms, time.Hour, spillway.OutcomeAbandoned, "inflight abandoned (observe)"},
	} {
		synctest.Test(t, func(t *testing.T) {
			var seen log
			s := must(t, Config{MaxInFlight: 1, InFlightMode: spillway.ModeObserve, ShedMode: spillway.ModeOff, Observer: &seen})
			first, _ := enter(s, spillway.Call{})
			var all sync.WaitGroup
			all.Go(func() {
				time.Sleep(row.first)
				first.Done(spillway.OutcomeServed)
			})
			start := time.Now()
			p, r := enter(s, spillway.Call{})
			if st := s.Stats(time.Now()).InFlight; r.Rejected() || time.Since(start) != 0 || st.InFlight != 2 || st.Waiting != 1 {
				t.Errorf("%s: %+v after %v, %d in flight, %d would wait", name, r, time.Since(start), st.InFlight, st.Waiting)
			}
			time.Sleep(row.takes)
			seen.take()
			p.Done(row.outcome)
			if got := seen.take(); got != row.want {
				t.Errorf("%s: %s, want %s", name, got, row.want)
			}
			all.Wait()
			if st := s.Stats(time.Now()).InFlight; st.InFlight != 0 || st.Waiting != 0 {
				t.Errorf("%s: left %d in flight, %d waiting", name, st.InFlight, st.Waiting)
			}
		})
	}
}

// Requests that wait for their client are not in flight at a gate that observes, whether they
// would run or would wait.
func TestSuspendedWhileObserved(t *testing.T) {
	s := must(t, Config{InFlightMode: spillway.ModeObserve, MaxInFlight: 1, ShedMode: spillway.ModeOff})
	inFlight := func(want int) {
		t.Helper()
		if st := s.Stats(time.Now()).InFlight; st.InFlight != want {
			t.Errorf("%d in flight, want %d", st.InFlight, want)
		}
	}
	first, _ := enter(s, spillway.Call{})
	second, _ := enter(s, spillway.Call{})
	inFlight(2)
	second.Suspend(time.Now())
	inFlight(1)
	first.Suspend(time.Now())
	inFlight(0)
	second.Resume(time.Now())
	first.Resume(time.Now())
	inFlight(2)
	second.Suspend(time.Now())
	first.Done(spillway.OutcomeServed)
	second.Done(spillway.OutcomeServed)
	inFlight(0)
}

// At whatever moment gates stop to observe, what is in flight is known at once, and nothing waits
// that no goroutine waits for.
func TestStopObserving(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		config := Config{MaxInFlight: 2, InFlightMode: spillway.ModeObserve, ShedMode: spillway.ModeObserve}
		s := must(t, config)
		s.dispatcher.idle.close()
		s.dispatcher.idle = nap{}
		s.core.State = func(time.Time) shed.State { return shed.State{Processors: 1, Runnable: 5} }
		var observed [5]Slot
		for i := range observed {
			observed[i], _ = enter(s, spillway.Call{})
		}
		config.InFlightMode, config.ShedMode = spillway.ModeEnforce, spillway.ModeEnforce
		if err := s.Update(config); err != nil {
			t.Fatal(err)
		}
		s.core.State = func(time.Time) shed.State { return shed.State{Processors: 1} }
		if st := s.Stats(time.Now()); st.InFlight.InFlight != 5 || st.Shed.InFlight != 5 || st.InFlight.Waiting+st.Shed.Waiting+s.Waiting() != 0 {
			t.Errorf("after the change: %+v, %+v", st.InFlight, st.Shed)
		}
		for i := range 4 { // at 2 in flight a third one waits
			if i < 3 {
				if _, r := enter(s, spillway.Call{}); !r.Rejected() {
					t.Fatalf("a request was admitted beside %d", 5-i)
				}
			}
			observed[i].Done(spillway.OutcomeServed)
		}
		p, r := enter(s, spillway.Call{})
		if r.Rejected() {
			t.Errorf("beside one in flight: %v", r.Err)
		}
		p.Done(spillway.OutcomeServed)
		observed[4].Done(spillway.OutcomeServed)
		if st := s.Stats(time.Now()); st.InFlight.InFlight != 0 || st.Shed.InFlight != 0 {
			t.Errorf("left: %+v, %+v", st.InFlight, st.Shed)
		}
	})
}

// Observing allocates nothing, also where a request would wait or be rejected.
func TestObservingAllocatesNothing(t *testing.T) {
	if race.Enabled {
		t.Skip("the race detector allocates")
	}
	s := must(t, Config{MaxInFlight: 1, InFlightMode: spillway.ModeObserve, ShedMode: spillway.ModeObserve, Observer: spillway.ObserverFunc(func(spillway.Event) {})})
	s.core.State = func(time.Time) shed.State { return shed.State{Processors: 1, Runnable: 5} }
	ctx := context.Background()
	var slots [50]Slot
	ask := func() {
		for i := range slots {
			slots[i].EnterAt(ctx, s, time.Now(), &spillway.Call{}, &ratelimit.Caller{})
		}
		for i := range slots {
			slots[i].Done(spillway.OutcomeServed)
		}
	}
	goroutines := runtime.NumGoroutine()
	if n := testing.AllocsPerRun(100, ask); n >= 1 {
		t.Errorf("%v allocations for %d requests", n, len(slots))
	}
	if n := runtime.NumGoroutine(); n > goroutines {
		t.Errorf("%d goroutines more", n-goroutines)
	}
}
