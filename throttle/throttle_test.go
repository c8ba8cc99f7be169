package throttle_test

import (
	"encoding/json"
	"errors"
	"math"
	"math/rand/v2"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/seed90641741/spillway"
	"github.com/seed90641741/spillway/internal/race"
	"github.com/seed90641741/spillway/throttle"
)

var t0 = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

func must(t testing.TB, c throttle.Config) *throttle.Throttle {
	t.Helper()
	th, err := throttle.New(c)
	if err != nil {
		t.Fatal(err)
	}
	return th
}

// A step is one call: admitted at a time with a random number, and settled at
// once with an outcome, or rejected where the outcome is zero.
type step struct {
	at      time.Duration
	u       float64
	outcome spillway.Outcome
}

// times repeats s n times, each later than the one before by every.
func times(n int, every time.Duration, s step) []step {
	steps := make([]step, n)
	for i := range steps {
		steps[i] = s
		steps[i].at += time.Duration(i) * every
	}
	return steps
}

func replay(t *testing.T, th *throttle.Throttle, steps []step, u *float64) {
	t.Helper()
	for i, s := range steps {
		now := t0.Add(s.at)
		*u = s.u
		ticket, err := th.Admit(now, spillway.Call{})
		if got, want := err != nil, s.outcome == 0; got != want {
			t.Fatalf("step %d at %v: rejected = %v, want %v (%+v)", i, s.at, got, want, th.Stats(now)[spillway.Critical.Index()])
		}
		ticket.Settle(now, s.outcome)
	}
}

func concat(parts ...[]step) (all []step) {
	for _, p := range parts {
		all = append(all, p...)
	}
	return all
}

func TestRows(t *testing.T) {
	const ms = time.Millisecond
	for name, steps := range map[string][]step{
		"a healthy backend is never throttled":              times(1000, ms, step{0, 0, spillway.OutcomeServed}),
		"a failing backend that accepts is never throttled": times(1000, ms, step{0, 0, spillway.OutcomeFailed}),
		"too few calls say nothing":                         times(9, ms, step{0, 0, spillway.OutcomeOverloaded}),
		"a backend that has rejected ten calls and accepted none gets a probe per interval": concat(
			times(10, ms, step{0, 0.99, spillway.OutcomeOverloaded}),
			[]step{{1008 * ms, 0.99, 0}, {1009 * ms, 0.99, spillway.OutcomeOverloaded}, {2008 * ms, 0.99, 0}, {2009 * ms, 0.99, spillway.OutcomeTimedOut}},
		),
		"rejections of less than a quarter of an interval are no overload": concat(
			times(1000, ms, step{0, 0, spillway.OutcomeServed}),
			times(200, ms, step{1000 * ms, 0, spillway.OutcomeOverloaded}),
			times(1000, ms, step{1200 * ms, 0, spillway.OutcomeServed}),
		),
		"abandoned calls count as nothing": concat(
			times(9, ms, step{0, 0, spillway.OutcomeOverloaded}),
			times(100, ms, step{10 * ms, 0, spillway.OutcomeAbandoned}),
			[]step{{200 * ms, 0, spillway.OutcomeOverloaded}, {201 * ms, 0.99, 0}},
		),
		"an accepted probe releases a call at once, a rejected one does not": concat(
			times(10, 0, step{0, 0, spillway.OutcomeOverloaded}),
			[]step{{1000 * ms, 0, spillway.OutcomeOverloaded}, {1001 * ms, 0.99, 0}, {2000 * ms, 0, spillway.OutcomeServed}, {2001 * ms, 0, spillway.OutcomeOverloaded}, {2002 * ms, 0, 0}},
		),
		"a run that paused for a Window is forgotten": concat(
			times(9, ms, step{0, 0, spillway.OutcomeOverloaded}),
			times(9, ms, step{32 * time.Second, 0, spillway.OutcomeOverloaded}),
			[]step{{33 * time.Second, 0, spillway.OutcomeServed}},
		),
		"a clock that is set back does not stop the probes": concat(
			times(10, 0, step{time.Hour, 0, spillway.OutcomeOverloaded}),
			[]step{{0, 0, 0}, {999 * ms, 0, 0}, {1001 * ms, 0, spillway.OutcomeServed}, {1002 * ms, 0, spillway.OutcomeServed}, {1003 * ms, 0, spillway.OutcomeServed}},
		),
	} {
		t.Run(name, func(t *testing.T) {
			var u float64
			th := must(t, throttle.Config{Rand: func() float64 { return u }})
			replay(t, th, steps, &u)
		})
	}
}

func TestRecoveryForgetsTheOutage(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 1))
	th := must(t, throttle.Config{K: 1.1, Rand: r.Float64})
	for i := range 3000 { // five minutes of nothing but rejections
		now := t0.Add(time.Duration(i) * 100 * time.Millisecond)
		ticket, _ := th.Admit(now, spillway.Call{})
		ticket.Settle(now, spillway.OutcomeOverloaded)
	}
	now := t0.Add(5 * time.Minute)
	if p := th.Stats(now)[spillway.Critical.Index()].Probability; p < 0.99 {
		t.Fatalf("after the outage p = %v, want nearly 1", p)
	}
	sent := 0
	for range 100 { // ten seconds of nothing but accepts
		now = now.Add(100 * time.Millisecond)
		if ticket, err := th.Admit(now, spillway.Call{}); err == nil {
			sent++
			ticket.Settle(now, spillway.OutcomeServed)
		}
	}
	if p := th.Stats(now)[spillway.Critical.Index()].Probability; p != 0 || sent < 90 {
		t.Errorf("ten seconds after the outage p = %v with %d of 100 calls sent", p, sent)
	}
}

// A call that was sent before a rejection was heard of says nothing about what the
// backend does after it.
func TestLateAcceptsAreNoEvidence(t *testing.T) {
	th := must(t, throttle.Config{Rand: func() float64 { return 0 }})
	early := make([]spillway.Ticket, 50)
	for i := range early {
		early[i], _ = th.Admit(t0, spillway.Call{})
	}
	for range 200 {
		ticket, _ := th.Admit(t0, spillway.Call{})
		ticket.Settle(t0, spillway.OutcomeOverloaded)
	}
	for i := range early {
		early[i].Settle(t0.Add(time.Duration(i)*100*time.Millisecond), spillway.OutcomeServed)
	}
	now := t0.Add(5 * time.Second)
	if s := th.Stats(now)[spillway.Critical.Index()]; s.Accepts != 50 || s.Limit > 0.1 {
		t.Errorf("late accepts raised the limit: %+v", s)
	}
}

// The rejection of a call that was sent before the limit fell does not lower it again,
// and that of one that was sent before an accepted one does not end a recovery.
func TestLateRejectionsAreNoEvidence(t *testing.T) {
	th := must(t, throttle.Config{Rand: func() float64 { return 0.5 }})
	call := func(at time.Duration) spillway.Ticket {
		ticket, _ := th.Admit(t0.Add(at), spillway.Call{})
		return ticket
	}
	var late []spillway.Ticket
	for i := range 400 { // a tenth of 1000 calls per second is accepted
		at := time.Duration(i) * time.Millisecond
		ticket := call(at)
		switch {
		case i%2 == 1:
			late = append(late, ticket)
		case i%20 == 0:
			ticket.Settle(t0.Add(at), spillway.OutcomeServed)
		default:
			ticket.Settle(t0.Add(at), spillway.OutcomeOverloaded)
		}
	}
	at := 400 * time.Millisecond
	limit := func() float64 { return th.Stats(t0.Add(at))[spillway.Critical.Index()].Limit }
	before := limit()
	if before < 50 || before > 200 {
		t.Fatalf("limit = %v with 50 of 500 calls per second accepted, want about 100", before)
	}
	for i := range late {
		at += time.Millisecond
		late[i].Settle(t0.Add(at), spillway.OutcomeOverloaded)
	}
	if after := limit(); after < before*0.9 {
		t.Errorf("late rejections lowered the limit from %v to %v", before, after)
	}
}

func TestSettlingTwiceCountsOnce(t *testing.T) {
	th := must(t, throttle.Config{})
	ticket, err := th.Admit(t0, spillway.Call{})
	if err != nil {
		t.Fatal(err)
	}
	ticket.Settle(t0, spillway.OutcomeServed)
	ticket.Settle(t0, spillway.OutcomeOverloaded)
	if s := th.Stats(t0)[spillway.Critical.Index()]; s.Requests != 1 || s.Accepts != 1 {
		t.Errorf("after settling twice: %+v", s)
	}
}

func TestClassesDoNotThrottleOneAnother(t *testing.T) {
	th := must(t, throttle.Config{Rand: func() float64 { return 0 }})
	for _, c := range []spillway.Criticality{spillway.Sheddable, spillway.SheddablePlus} {
		for range 100 {
			ticket, _ := th.Admit(t0, spillway.Call{Criticality: c})
			ticket.Settle(t0, spillway.OutcomeOverloaded)
		}
		if _, err := th.Admit(t0, spillway.Call{Criticality: c}); err == nil {
			t.Errorf("%v is not throttled", c)
		}
	}
	for _, c := range []spillway.Criticality{spillway.Critical, spillway.CriticalPlus} {
		if _, err := th.Admit(t0, spillway.Call{Criticality: c}); err != nil {
			t.Errorf("%v is throttled: %v", c, err)
		}
	}
}

func TestRejectionExplainsItself(t *testing.T) {
	th := must(t, throttle.Config{Rand: func() float64 { return 0 }})
	for range 100 {
		ticket, _ := th.Admit(t0, spillway.Call{Criticality: spillway.Sheddable})
		ticket.Settle(t0, spillway.OutcomeOverloaded)
	}
	_, err := th.Admit(t0, spillway.Call{Criticality: spillway.Sheddable})
	if !errors.Is(err, spillway.ErrRejected) {
		t.Fatalf("err = %v", err)
	}
	r, ok := errors.AsType[*spillway.RejectedError](err)
	if !ok || r.Policy != "throttle" || r.Reason != spillway.ReasonThrottle || r.Criticality != spillway.Sheddable || r.Level < 90 {
		t.Errorf("rejection = %+v", r)
	}
	for _, word := range []string{"rejected locally", "throttle", "SHEDDABLE", "send less"} {
		if !strings.Contains(err.Error(), word) {
			t.Errorf("%q does not say %q", err, word)
		}
	}
}

func TestConfigOutOfRangeNamesTheField(t *testing.T) {
	for want, c := range map[string]throttle.Config{
		"K is 1, must be above 1":            {K: 1},
		"K is -2, must":                      {K: -2},
		"K is NaN, must":                     {K: math.NaN()},
		"K is +Inf, must":                    {K: math.Inf(1)},
		"Window is 1ms, must be 1s to 1h":    {Window: time.Millisecond},
		"ProbeInterval is 1m0s, must be 1ms": {ProbeInterval: time.Minute},
		"ProbeInterval is -1s, must be 1ms":  {ProbeInterval: -time.Second},
		"Window is -1s, must be 1s to 1h":    {Window: -time.Second},
	} {
		th, err := throttle.New(c)
		if th != nil || err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("New(%+v) = %v, %v; want an error with %q", c, th, err, want)
		}
	}
}

func TestUpdate(t *testing.T) {
	th := must(t, throttle.Config{K: 2, Rand: func() float64 { return 0.4 }})
	settle := func(n int, o spillway.Outcome) {
		for range n {
			ticket, _ := th.Admit(t0, spillway.Call{})
			ticket.Settle(t0, o)
		}
	}
	settle(50, spillway.OutcomeServed)
	settle(50, spillway.OutcomeOverloaded)
	now := t0.Add(300 * time.Millisecond)
	overloaded := func() {
		ticket, _ := th.Admit(now, spillway.Call{})
		ticket.Settle(now, spillway.OutcomeOverloaded)
	}
	overloaded()
	limit := func() float64 { return th.Stats(now)[spillway.Critical.Index()].Limit }
	if l := limit(); !math.IsInf(l, 1) {
		t.Fatalf("K = 2 limits at one in two: %v", l)
	}
	if err := th.Update(throttle.Config{K: 0.5}); err == nil {
		t.Error("K = 0.5 was accepted")
	}
	if l := limit(); !math.IsInf(l, 1) {
		t.Errorf("a failed Update left a limit of %v", l)
	}
	if err := th.Update(throttle.Config{K: 1.1}); err != nil {
		t.Fatal(err)
	}
	overloaded()
	for range 60 {
		overloaded()
	}
	if l := limit(); math.IsInf(l, 1) {
		t.Error("K = 1.1 does not limit at one in two")
	}
	if err := th.Update(throttle.Config{Window: time.Minute}); err != nil {
		t.Fatal(err)
	}
	if s := th.Stats(t0)[spillway.Critical.Index()]; s.Requests != 0 {
		t.Errorf("a new window remembers %v calls", s.Requests)
	}
}

func TestProbabilityVectors(t *testing.T) {
	data, err := os.ReadFile("../conformance/retry/sre_ch21.json")
	if err != nil {
		t.Fatal(err)
	}
	var file struct {
		Probability []struct{ Requests, Accepts, K, P float64 }
	}
	if err := json.Unmarshal(data, &file); err != nil {
		t.Fatal(err)
	}
	if len(file.Probability) < 10 {
		t.Fatalf("only %d rows", len(file.Probability))
	}
	for _, r := range file.Probability {
		if p := throttle.Probability(r.Requests, r.Accepts, r.K); math.Abs(p-r.P) > 1e-8 {
			t.Errorf("Probability(%v, %v, %v) = %v, want %v", r.Requests, r.Accepts, r.K, p, r.P)
		}
	}
}

func TestHotPathDoesNotAllocate(t *testing.T) {
	if race.Enabled {
		t.Skip("the race detector allocates")
	}
	u := 0.0
	th := must(t, throttle.Config{Rand: func() float64 { return u }})
	cycle := func(o spillway.Outcome) func() {
		return func() {
			ticket, _ := th.Admit(t0, spillway.Call{})
			ticket.Settle(t0, o)
		}
	}
	u = 0.999
	for name, o := range map[string]spillway.Outcome{"served": spillway.OutcomeServed, "overloaded": spillway.OutcomeOverloaded} {
		if n := testing.AllocsPerRun(200, cycle(o)); n != 0 {
			t.Errorf("a call that is %s allocates %v times", name, n)
		}
	}
	u = 0
	for range 1000 {
		cycle(spillway.OutcomeOverloaded)()
	}
	if n := testing.AllocsPerRun(200, cycle(spillway.OutcomeOverloaded)); n != 0 {
		t.Errorf("a rejection allocates %v times", n)
	}
}

func TestConcurrentUse(t *testing.T) {
	th := must(t, throttle.Config{})
	const workers, calls = 8, 2000
	var wg sync.WaitGroup
	for w := range workers {
		wg.Go(func() {
			for i := range calls {
				now := t0.Add(time.Duration(i) * 100 * time.Microsecond) // as clocks of one machine
				ticket, err := th.Admit(now, spillway.Call{})
				if err != nil {
					continue
				}
				o := spillway.OutcomeServed
				if (i+w)%3 == 0 {
					o = spillway.OutcomeOverloaded
				}
				ticket.Settle(now, o)
				if i%500 == 0 {
					if err := th.Update(throttle.Config{K: 2 + float64(i)/1000}); err != nil {
						t.Error(err)
					}
					th.Stats(now)
				}
			}
		})
	}
	wg.Wait()
	s := th.Stats(t0.Add(calls * 100 * time.Microsecond))[spillway.Critical.Index()]
	if s.Requests != workers*calls {
		t.Errorf("%v calls counted, want %d", s.Requests, workers*calls)
	}
}
