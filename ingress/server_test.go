package ingress

import (
	"context"
	"errors"
	"math/rand/v2"
	"reflect"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seed90641741/spillway"
	"github.com/seed90641741/spillway/attempts"
	"github.com/seed90641741/spillway/internal/race"
	"github.com/seed90641741/spillway/ratelimit"
	"github.com/seed90641741/spillway/shed"
)

func TestConfigNamesTheBadField(t *testing.T) {
	for _, row := range []struct {
		config Config
		want   string
	}{
		{Config{ShedMode: 7}, "ingress: ShedMode is Mode(7), must be Enforce, Observe or Off"},
		{Config{RetryAfter: -1}, "ingress: RetryAfter is -1ns, must be 1ms to 1h"},
		{Config{InFlightMode: 7}, "ingress: InFlightMode is Mode(7), must be Enforce, Observe or Off"},
		{Config{Trust: Trust{Boundary: 9}}, "ingress: Trust.Boundary is Boundary(9), must be Edge or Internal"},
		{Config{Trust: Trust{MaxTimeout: -1}}, "ingress: Trust.MaxTimeout is -1ns, must be 1ms to 24h"},
		{Config{Trust: Trust{MaxByIdentity: map[string]spillway.Criticality{"x": 9}}}, `ingress: Trust.MaxByIdentity["x"] is Criticality(9), must be one of the four`},
		{Config{Shed: shed.Config{MaxWait: -1}}, "ingress: Shed.MaxWait is -1ns, must be 1ms to 10s"},
		{Config{RateLimit: ratelimit.Config{Rate: 1, QueueDepth: -1}}, "ingress: RateLimit.QueueDepth is -1"},
		{Config{Attempts: attempts.Config{Share: 2}}, "ingress: Attempts.Share is 2"},
	} {
		if _, err := New(row.config); err == nil || !strings.HasPrefix(err.Error(), row.want) {
			t.Errorf("New = %v, want %s", err, row.want)
		} else if e, ok := errors.AsType[*spillway.FieldError](err); !ok || err.Error() != "ingress: "+e.Error() {
			t.Errorf("New = %v is no FieldError with the path from Config", err)
		}
	}
}

func TestAdmission(t *testing.T) {
	var seen log
	s := must(t, Config{Observer: &seen, Quota: perCustomer(t, 100)})
	p, r := enter(s, spillway.Call{Key: "/", Criticality: spillway.Sheddable})
	if r.Rejected() || r != (Rejection{}) || p.Call().Key != "/" {
		t.Fatalf("%+v", r)
	}
	if n := s.Stats(time.Now()).Concurrency.Shared.InFlight; n != 1 {
		t.Errorf("%d in flight", n)
	}
	p.Done(spillway.OutcomeServed)
	p.Done(spillway.OutcomeFailed)
	if got := seen.take(); got != "quota served, shed served" {
		t.Errorf("events: %s", got)
	}
	if n := s.Stats(time.Now()).Concurrency.Shared.InFlight; n != 0 {
		t.Errorf("%d in flight after Done", n)
	}
}

func TestGatesReject(t *testing.T) {
	for _, row := range []struct {
		name   string
		config Config
		reason spillway.Outcome
		after  time.Duration // base of the hint; 0: do not compare
		events string
	}{
		{
			"ratelimit", Config{RateLimit: ratelimit.Config{Rate: 1}}, spillway.OutcomeOverloaded, 0,
			"ratelimit rejected",
		},
		{
			"quota", Config{Quota: perCustomer(t, 1)}, spillway.OutcomeOverQuota, 0,
			"quota rejected",
		},
		{
			"shed", Config{
				Quota: perCustomer(t, 1000), RetryAfter: 2 * time.Second,
				Rand: func() float64 { return 0.75 },
			}, spillway.OutcomeOverloaded, 2500 * time.Millisecond,
			"shed rejected, quota not started",
		},
	} {
		t.Run(row.name, func(t *testing.T) {
			var seen log
			row.config.Observer = &seen
			s := must(t, row.config)
			call := spillway.Call{Customer: "c"}
			if row.name == "shed" {
				call.Deadline = time.Now().Add(-time.Second)
			}
			var r Rejection
			for range 5 {
				seen.take()
				var p Slot
				if p, r = enter(s, call); r.Rejected() {
					break
				}
				p.Done(spillway.OutcomeServed)
			}
			if r.Outcome != row.reason || !errors.Is(r.Err, spillway.ErrRejected) || r.RetryAfter <= 0 || r.DontRetry {
				t.Errorf("%+v", r)
			}
			if row.after > 0 && r.RetryAfter != row.after {
				t.Errorf("retry after %v, want %v", r.RetryAfter, row.after)
			}
			if got := seen.take(); got != row.events {
				t.Errorf("events: %s; want %s", got, row.events)
			}
		})
	}
}

// TestMaxInFlight: what is beyond it waits by class, and is rejected for its advice. It
// counts from the start, also where the shedder admits no request yet.
func TestMaxInFlight(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var seen log
		config := Config{MaxInFlight: 2, Observer: &seen, Quota: perCustomer(t, 1e6), Shed: shed.Config{MaxWait: time.Second}}
		s := must(t, config)
		held := []*Slot{occupy(t, s), nil}
		s.core.State = func(time.Time) shed.State { return shed.State{Processors: 1} }
		p, _ := enter(s, spillway.Call{})
		held[1] = &p
		seen.take()
		served := make(chan spillway.Criticality, 3)
		for _, c := range []spillway.Criticality{spillway.Sheddable, spillway.CriticalPlus, spillway.Critical} {
			go func() {
				p, r := enter(s, spillway.Call{Criticality: c})
				if !r.Rejected() {
					served <- c
					time.Sleep(10 * time.Millisecond)
					p.Done(spillway.OutcomeServed)
				}
			}()
			synctest.Wait()
		}
		if n := s.Stats(time.Now()).InFlight.Waiting; n != 3 {
			t.Errorf("%d wait, want 3", n)
		}
		held[0].Done(spillway.OutcomeServed)
		for _, want := range []spillway.Criticality{spillway.CriticalPlus, spillway.Critical, spillway.Sheddable} {
			if got := <-served; got != want {
				t.Errorf("%v runs, want %v", got, want)
			}
		}
		synctest.Wait()
		time.Sleep(20 * time.Millisecond)
		seen.take()
		config.MaxInFlight = 1
		if err := s.Update(config); err != nil {
			t.Fatal(err)
		}
		start := time.Now()
		_, r := enter(s, spillway.Call{Customer: "c"})
		if waited := time.Since(start); r.Outcome != spillway.OutcomeOverloaded || r.RetryAfter <= 0 || waited != time.Second || !strings.Contains(r.Err.Error(), "MaxInFlight") {
			t.Errorf("%+v after %v", r, waited)
		}
		if got := seen.take(); got != "inflight rejected, quota not started" {
			t.Errorf("events: %s", got)
		}
		held[1].Done(spillway.OutcomeServed)
		config.MaxInFlight = 0
		if err := s.Update(config); err != nil {
			t.Fatal(err)
		}
		for range 2000 {
			if p, r := enter(s, spillway.Call{}); r.Rejected() {
				t.Fatalf("%+v without a limit", r)
			} else {
				p.Done(spillway.OutcomeServed)
			}
		}
		if n := s.Stats(time.Now()).InFlight.InFlight; n != 0 {
			t.Errorf("%d left in flight", n)
		}
	})
}

// Rejections of a client whose deadlines are too close say nothing of the load: they degrade no
// answers to other clients, and do not lower the accept ratio.
func TestCloseDeadlinesAreNoOverload(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := must(t, Config{Trust: Trust{Boundary: Internal}})
		for range 400 {
			p, r := enter(s, spillway.Call{})
			if r.Rejected() {
				t.Fatalf("a patient client: %+v", r)
			}
			hasty, _ := enter(s, spillway.Call{Deadline: time.Now().Add(time.Millisecond)})
			hasty.Done(spillway.OutcomeTimedOut)
			time.Sleep(10 * time.Millisecond)
			p.Done(spillway.OutcomeServed)
		}
		class := s.Stats(time.Now()).Shed.Classes[spillway.Critical.Index()]
		if class.RejectedTotal < 100 {
			t.Fatalf("there is nothing to show: %+v", class)
		}
		if level, ratio := s.Degradation(spillway.Critical), s.AcceptRatio(spillway.Critical); level != spillway.DegradationNone || ratio != "" {
			t.Errorf("degradation %v, accept ratio %q", level, ratio)
		}
	})
}

// What waits for a limit runs when an Update has raised or removed it, and not only when another
// request ends.
func TestUpdateWakesWaiters(t *testing.T) {
	for _, most := range []int{2, 0} {
		synctest.Test(t, func(t *testing.T) {
			config := Config{MaxInFlight: 1, Shed: shed.Config{MaxWait: time.Second}}
			s := must(t, config)
			s.dispatcher.idle.close()
			s.dispatcher.idle = nap{}
			first, _ := enter(s, spillway.Call{})
			start, waited := time.Now(), make(chan time.Duration, 1)
			go func() {
				p, r := enter(s, spillway.Call{})
				if r.Rejected() {
					t.Errorf("MaxInFlight becomes %d: %+v", most, r)
				}
				waited <- time.Since(start)
				p.Done(spillway.OutcomeServed)
			}()
			time.Sleep(10 * time.Millisecond)
			config.MaxInFlight = most
			if err := s.Update(config); err != nil {
				t.Fatal(err)
			}
			if d := <-waited; d > 20*time.Millisecond {
				t.Errorf("MaxInFlight becomes %d after 10ms: the request waited %v", most, d)
			}
			first.Done(spillway.OutcomeServed)
		})
	}
}

// What the shedder rejects costs the customer nothing.
func TestQuotaIsGivenBack(t *testing.T) {
	s := must(t, Config{Quota: perCustomer(t, 1)})
	late := spillway.Call{Customer: "c", Deadline: time.Now().Add(-time.Second)}
	for i := range 10 {
		if _, r := enter(s, late); r.Outcome != spillway.OutcomeOverloaded {
			t.Fatalf("request %d: %+v", i, r)
		}
	}
	if _, r := enter(s, spillway.Call{Customer: "c"}); r.Rejected() {
		t.Errorf("%+v", r)
	}
}

func TestExemptPassesAllGates(t *testing.T) {
	var seen log
	s := must(t, Config{
		Observer: &seen, RateLimit: ratelimit.Config{Rate: 1},
		Exempt: func(c spillway.Call) bool { return c.Key == "/healthz" },
	})
	past := time.Now().Add(-time.Hour)
	for range 10 {
		call := spillway.Call{Key: "/healthz", Deadline: past}
		p, r := enter(s, call)
		if r.Rejected() || s.Reject(call, ratelimit.Caller{}).Rejected() {
			t.Fatalf("%+v", r)
		}
		p.Done(spillway.OutcomeServed)
	}
	if got := seen.take(); got != "" {
		t.Errorf("events: %s", got)
	}
}

func TestModes(t *testing.T) {
	past := time.Now().Add(-time.Second)
	for _, row := range []struct {
		limit, shed spillway.Mode
		rejected    bool
		events      string
	}{
		{spillway.ModeEnforce, spillway.ModeEnforce, true, "ratelimit rejected"},
		{spillway.ModeOff, spillway.ModeEnforce, true, "shed rejected"},
		{spillway.ModeOff, spillway.ModeOff, false, ""},
		{spillway.ModeObserve, spillway.ModeObserve, false, "ratelimit rejected (observe)"},
		{spillway.ModeObserve, spillway.ModeEnforce, true, "ratelimit rejected (observe), shed rejected"},
		{spillway.ModeOff, spillway.ModeObserve, false, "shed rejected (observe)"},
	} {
		var seen log
		s := must(t, Config{
			RateLimit: ratelimit.Config{Rate: 0.001, BurstSeconds: 1000}, Observer: &seen,
			RateLimitMode: row.limit, ShedMode: row.shed,
		})
		if row.limit != spillway.ModeOff {
			p, _ := enter(s, spillway.Call{})
			p.Done(spillway.OutcomeServed)
		}
		seen.take()
		p, r := enter(s, spillway.Call{Deadline: past})
		p.Done(spillway.OutcomeServed)
		if got := seen.take(); got != row.events || r.Rejected() != row.rejected {
			t.Errorf("%v, %v: %s, rejected %v; want %s, %v", row.limit, row.shed, got, r.Rejected(), row.events, row.rejected)
		}
		if early := s.Reject(spillway.Call{Deadline: past}, ratelimit.Caller{}).Rejected(); early != (row.shed == spillway.ModeEnforce) {
			t.Errorf("%v: early rejection %v", row.shed, early)
		}
	}
}

func TestDontRetry(t *testing.T) {
	past := time.Now().Add(-time.Second)
	for _, row := range []struct {
		trust    Trust
		customer string
		want     bool
	}{
		{Trust{Boundary: Internal}, "", true},
		{Trust{}, "", false},
		{Trust{}, "c", true},
	} {
		s := must(t, Config{Trust: row.trust})
		var r Rejection
		for i := range 200 {
			_, r = enter(s, spillway.Call{Customer: row.customer, Attempt: int16(i % 2), Deadline: past})
		}
		if r.DontRetry != row.want {
			t.Errorf("%v, customer %q: don't retry %v", row.trust.Boundary, row.customer, r.DontRetry)
		}
		// What one customer claims does not count against another.
		if _, r = enter(s, spillway.Call{Customer: "other", Deadline: past}); r.DontRetry != (row.trust.Boundary == Internal) {
			t.Errorf("%v, another customer: don't retry %v", row.trust.Boundary, r.DontRetry)
		}
	}
}

func TestUpdate(t *testing.T) {
	s := must(t, Config{})
	p, _ := enter(s, spillway.Call{})
	for range 3 {
		if _, r := enter(s, spillway.Call{Customer: "c"}); r.Rejected() {
			t.Fatalf("%+v", r)
		}
	}
	if err := s.Update(Config{RateLimit: ratelimit.Config{Rate: 1}, RetryAfter: -1}); err == nil {
		t.Error("a bad Update is taken")
	}
	if err := s.Update(Config{Quota: perCustomer(t, 1), Trust: Trust{Boundary: Internal}}); err != nil {
		t.Fatal(err)
	}
	p.Done(spillway.OutcomeServed)
	rejected := 0
	for range 3 {
		if _, r := enter(s, spillway.Call{Customer: "c"}); r.Outcome == spillway.OutcomeOverQuota {
			rejected++
		}
	}
	if rejected == 0 || s.Trust().Boundary != Internal {
		t.Errorf("%d rejected after an Update", rejected)
	}
	if st := s.Stats(time.Now()); st.Shed.Classes[2].AdmittedTotal != uint64(4+3-rejected) || len(st.Quota) == 0 {
		t.Errorf("what was known is lost: %+v", st)
	}
	if err := s.Update(Config{}); err != nil || s.Stats(time.Now()).Quota != nil {
		t.Errorf("the quota does not go: %v", err)
	}
}

// Requests come, wait, are rejected and leave in all ways at once, while the
// configuration changes: then nothing is left.
func TestNothingIsLeft(t *testing.T) {
	var events atomic.Int64
	observer := spillway.ObserverFunc(func(spillway.Event) { events.Add(1) })
	config := Config{Observer: observer, Shed: shed.Config{MaxWait: time.Millisecond}}
	s := must(t, config)
	var turn atomic.Int64
	s.core.State = func(time.Time) shed.State {
		return shed.State{Processors: 1, Runnable: int(turn.Add(1) % 4 / 2)}
	}
	var all sync.WaitGroup
	for i := range 8 {
		all.Go(func() {
			r := rand.New(rand.NewPCG(uint64(i), 1))
			for range 300 {
				ctx, cancel := context.WithTimeout(context.Background(), time.Duration(r.IntN(1000))*time.Microsecond)
				call := spillway.Call{Criticality: spillway.Criticality(r.IntN(4)) - 2}
				if !s.Reject(call, ratelimit.Caller{}).Rejected() {
					p, _ := s.Enter(ctx, call, ratelimit.Caller{})
					p.Done(spillway.OutcomeServed)
				}
				cancel()
			}
		})
	}
	for range 5 {
		if err := s.Update(config); err != nil {
			t.Error(err)
		}
	}
	all.Wait()
	st := s.Stats(time.Now()).Shed
	if st.InFlight+st.Parked != 0 || st.Waiting != 0 {
		t.Errorf("%+v", st)
	}
	if n := events.Load(); n < 2400 {
		t.Errorf("%d events of 2400 requests", n)
	}
}

func TestAllocations(t *testing.T) {
	if race.Enabled {
		t.Skip("the race detector allocates")
	}
	s, err := New(Config{Quota: perCustomer(t, 1e6), Observer: spillway.ObserverFunc(func(spillway.Event) {})})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	ctx := context.Background()
	past := time.Now().Add(-time.Hour)
	if n := testing.AllocsPerRun(1000, func() {
		p, _ := s.Enter(ctx, spillway.Call{Customer: "c"}, ratelimit.Caller{})
		p.Done(spillway.OutcomeServed)
	}); n != 0 {
		t.Errorf("%v allocations to admit", n)
	}
	if n := testing.AllocsPerRun(1000, func() {
		s.Enter(ctx, spillway.Call{Customer: "c", Deadline: past}, ratelimit.Caller{})
	}); n != 0 {
		t.Errorf("%v allocations to reject", n)
	}
	if n := testing.AllocsPerRun(1000, func() { s.Reject(spillway.Call{Deadline: past}, ratelimit.Caller{}) }); n != 0 {
		t.Errorf("%v allocations to reject early", n)
	}
	work := func(context.Context) error { return nil }
	if n := testing.AllocsPerRun(1000, func() { _, _ = s.Do(ctx, spillway.Call{Deadline: past}, work) }); n != 0 {
		t.Errorf("%v allocations to reject work", n)
	}
}

func TestWords(t *testing.T) {
	got := []string{Edge.String(), Internal.String(), Boundary(9).String()}
	want := []string{"edge", "internal", "Boundary(9)"}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("%q", got)
	}
}

// Goroutines that are ready to run show in the state of the process.
func TestRunnableGoroutines(t *testing.T) {
	s := must(t, Config{})
	var spinning sync.WaitGroup
	var stop atomic.Bool
	for range 8 * runtime.GOMAXPROCS(0) {
		spinning.Go(func() {
			for !stop.Load() {
				runtime.Gosched()
			}
		})
	}
	defer spinning.Wait()
	defer stop.Store(true)
	for deadline := time.Now().Add(time.Minute); s.process(time.Now()).Runnable == 0; runtime.Gosched() {
		if time.Now().After(deadline) {
			t.Fatal("many goroutines are ready to run, and it does not show")
		}
	}
}

// TestWork: requests that begin are counted, however they are admitted, while the shedder enforces.
func TestWork(t *testing.T) {
	for mode, want := range map[spillway.Mode]uint64{spillway.ModeEnforce: 3, spillway.ModeObserve: 0, spillway.ModeOff: 0} {
		s := must(t, Config{ShedMode: mode})
		for range 3 {
			p, r := enter(s, spillway.Call{})
			if r.Rejected() {
				t.Fatal(r)
			}
			p.Done(spillway.OutcomeServed)
		}
		if begun, cpu := s.Work(time.Now()); begun != want || cpu < 0 || want == 0 && cpu != 0 {
			t.Errorf("%v: %d have begun, with %v of the processors; want %d", mode, begun, cpu, want)
		}
	}
}
