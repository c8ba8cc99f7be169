package ingress

import (
	"context"
	"errors"
	"math/rand/v2"
	"reflect"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seed90641741/spillway"
	"github.com/seed90641741/spillway/attempts"
	"github.com/seed90641741/spillway/quota"
	"github.com/seed90641741/spillway/ratelimit"
	"github.com/seed90641741/spillway/shed"
)

// must returns a Server of an idle process with one processor.
func must(tb testing.TB, c Config) *Server {
	tb.Helper()
	s, err := New(c)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() {
		if err := s.Close(); err != nil {
			tb.Error(err)
		}
	})
	s.state = func(time.Time) shed.State { return shed.State{Processors: 1} }
	return s
}

// occupy makes s serve one request, and its one processor busy for good, in a
// bubble.
func occupy(t *testing.T, s *Server) *Passage {
	t.Helper()
	p, r := enter(s, spillway.Call{Key: "occupies"})
	if r.Refused() {
		t.Fatalf("%+v", r)
	}
	s.state = func(time.Time) shed.State { return shed.State{Processors: 1, Runnable: 5} }
	s.dispatcher.idle.close()
	s.dispatcher.idle = nap{}
	return &p
}

// nap is idle every millisecond, in a bubble.
type nap struct{}

func (nap) wait()        { time.Sleep(time.Millisecond) }
func (nap) close() error { return nil }

// log is an Observer.
type log struct {
	mu     sync.Mutex
	events []spillway.Event
}

func (l *log) Observe(e spillway.Event) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.events = append(l.events, e)
}

// take returns what was observed, in short, and forgets it.
func (l *log) take() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	var all []string
	for _, e := range l.events {
		word := e.Outcome.String()
		if e.Refused {
			word = "refused"
		}
		if e.Mode == spillway.Observe {
			word += " (observe)"
		}
		all = append(all, e.Policy+" "+word)
	}
	l.events = nil
	return strings.Join(all, ", ")
}

func perCustomer(tb testing.TB, rate float64) quota.Config {
	tb.Helper()
	local, err := quota.NewLocal(quota.LocalConfig{Stranger: quota.Limit{Rate: rate}})
	if err != nil {
		tb.Fatal(err)
	}
	return quota.Config{Allocator: local}
}

func enter(s *Server, call spillway.Call) (Passage, Refusal) {
	return s.Enter(context.Background(), call, ratelimit.Caller{})
}

func TestConfigNamesTheBadField(t *testing.T) {
	for _, row := range []struct {
		config Config
		want   string
	}{
		{Config{ShedMode: 7}, "ingress: ShedMode is 7, must be Enforce, Observe or Off"},
		{Config{RetryAfter: -1}, "ingress: RetryAfter is -1ns, must be 1ms to 1h"},
		{Config{InFlightMode: 7}, "ingress: InFlightMode is 7, must be Enforce, Observe or Off"},
		{Config{MaxInFlight: 1 << 40}, "ingress: MaxInFlight is 1099511627776, must be at most 2147483647"},
		{Config{Trust: Trust{Boundary: 9}}, "ingress: Trust.Boundary is 9, must be Edge or Internal"},
		{Config{Trust: Trust{MaxTimeout: -1}}, "ingress: Trust.MaxTimeout is -1ns, must be 1ms to 24h"},
		{Config{Trust: Trust{Highest: map[string]spillway.Criticality{"x": 9}}}, `ingress: Trust.Highest["x"] is Criticality(9), must be one of the four`},
		{Config{Shed: shed.Config{MaxWait: -1}}, "ingress: Shed: shed: MaxWait is -1ns, must be 1ms to 10s"},
		{Config{RateLimit: ratelimit.Config{Rate: 1, QueueDepth: -1}}, "ingress: RateLimit: ratelimit: QueueDepth is -1"},
		{Config{Attempts: attempts.Config{Share: 2}}, "ingress: Attempts: attempts: Share is 2"},
	} {
		if _, err := New(row.config); err == nil || !strings.HasPrefix(err.Error(), row.want) {
			t.Errorf("New = %v, want %s", err, row.want)
		}
	}
}

func TestAdmission(t *testing.T) {
	var seen log
	s := must(t, Config{Observer: &seen, Quota: perCustomer(t, 100)})
	p, r := enter(s, spillway.Call{Key: "/", Criticality: spillway.Sheddable})
	if r.Refused() || r != (Refusal{}) || p.Call().Key != "/" {
		t.Fatalf("%+v", r)
	}
	if n := s.Stats(time.Now()).Shed.InFlight; n != 1 {
		t.Errorf("%d in flight", n)
	}
	p.Done(spillway.Served)
	p.Done(spillway.Failed)
	if got := seen.take(); got != "quota served, shed served" {
		t.Errorf("events: %s", got)
	}
	if n := s.Stats(time.Now()).Shed.InFlight; n != 0 {
		t.Errorf("%d in flight after Done", n)
	}
}

func TestGatesRefuse(t *testing.T) {
	for _, row := range []struct {
		name   string
		config Config
		reason Reason
		after  time.Duration // base of the hint; 0: do not compare
		events string
	}{
		{
			"ratelimit", Config{RateLimit: ratelimit.Config{Rate: 1}}, Overloaded, 0,
			"ratelimit refused",
		},
		{
			"quota", Config{Quota: perCustomer(t, 1)}, OverQuota, 0,
			"quota refused",
		},
		{
			"shed", Config{
				Quota: perCustomer(t, 1000), RetryAfter: 2 * time.Second,
				Rand: func() float64 { return 0.75 },
			}, Overloaded, 2500 * time.Millisecond,
			"shed refused, quota abandoned",
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
			var r Refusal
			for range 5 {
				seen.take()
				var p Passage
				if p, r = enter(s, call); r.Refused() {
					break
				}
				p.Done(spillway.Served)
			}
			if r.Reason != row.reason || !errors.Is(r.Err, spillway.ErrRejected) || r.RetryAfter <= 0 || r.DontRetry {
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

// A limit in flight holds whatever the shedder thinks, counts what waits, and is
// changed without losing the count.
func TestMaxInFlight(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var seen log
		config := Config{MaxInFlight: 3, Observer: &seen, Quota: perCustomer(t, 1e6), Shed: shed.Config{MaxWait: time.Second}}
		s := must(t, config)
		first := occupy(t, s)
		start := time.Now()
		s.state = func(now time.Time) shed.State {
			if now.Sub(start) < 50*time.Millisecond {
				return shed.State{Processors: 1, Runnable: 5}
			}
			return shed.State{Processors: 1}
		}
		entered := make(chan *Passage, 2)
		for range 2 {
			go func() { // and wait
				p, r := enter(s, spillway.Call{Criticality: spillway.CriticalPlus})
				if r.Refused() {
					t.Errorf("%+v", r)
				}
				entered <- &p
			}()
		}
		synctest.Wait()
		seen.take()
		refused := func(want bool) {
			t.Helper()
			p, r := enter(s, spillway.Call{Criticality: spillway.CriticalPlus, Customer: "c"})
			p.Done(spillway.Served)
			events := seen.take()
			early := s.Refuse(spillway.Call{})
			seen.take()
			if r.Refused() != want || early.Refused() != want || want && events != "inflight refused, quota abandoned" {
				t.Errorf("%+v, early %+v, %s; want refused %v", r, early, events, want)
			}
			if want && (r.Reason != Overloaded || r.RetryAfter <= 0 || !strings.Contains(r.Err.Error(), "MaxInFlight")) {
				t.Errorf("%+v", r)
			}
		}
		refused(true)
		if st := s.Stats(time.Now()); st.InFlight.InFlight != 3 || st.RefusedTotal != [Reasons]uint64{Overloaded: 2} {
			t.Errorf("%+v, %v refused", st.InFlight, st.RefusedTotal)
		}
		second, third := <-entered, <-entered // once the processor is idle
		first.Done(spillway.Served)
		refused(false)
		config.MaxInFlight = 2
		if err := s.Update(config); err != nil {
			t.Fatal(err)
		}
		refused(true)
		second.Done(spillway.Failed)
		third.Done(spillway.Abandoned)
		refused(false)
		config.MaxInFlight = 0
		if err := s.Update(config); err != nil {
			t.Fatal(err)
		}
		for range 2000 {
			if p, r := enter(s, spillway.Call{}); r.Refused() {
				t.Fatalf("%+v without a limit", r)
			} else {
				p.Done(spillway.Served)
			}
		}
		if n := s.Stats(time.Now()).InFlight.InFlight; n != 0 {
			t.Errorf("%d left in flight", n)
		}
	})
}

// What the shedder refuses costs the customer nothing.
func TestQuotaIsGivenBack(t *testing.T) {
	s := must(t, Config{Quota: perCustomer(t, 1)})
	late := spillway.Call{Customer: "c", Deadline: time.Now().Add(-time.Second)}
	for i := range 10 {
		if _, r := enter(s, late); r.Reason != Overloaded {
			t.Fatalf("request %d: %+v", i, r)
		}
	}
	if _, r := enter(s, spillway.Call{Customer: "c"}); r.Refused() {
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
		if r.Refused() || s.Refuse(call).Refused() {
			t.Fatalf("%+v", r)
		}
		p.Done(spillway.Served)
	}
	if got := seen.take(); got != "" {
		t.Errorf("events: %s", got)
	}
}

func TestModes(t *testing.T) {
	past := time.Now().Add(-time.Second)
	for _, row := range []struct {
		limit, shed spillway.Mode
		refused     bool
		events      string
	}{
		{spillway.Enforce, spillway.Enforce, true, "ratelimit refused"},
		{spillway.Off, spillway.Enforce, true, "shed refused"},
		{spillway.Off, spillway.Off, false, ""},
		{spillway.Observe, spillway.Observe, false, "ratelimit refused (observe)"},
		{spillway.Observe, spillway.Enforce, true, "ratelimit refused (observe), shed refused"},
		{spillway.Off, spillway.Observe, false, "shed refused (observe)"},
	} {
		var seen log
		s := must(t, Config{
			RateLimit: ratelimit.Config{Rate: 0.001, BurstSeconds: 1000}, Observer: &seen,
			RateLimitMode: row.limit, ShedMode: row.shed,
		})
		if row.limit != spillway.Off {
			p, _ := enter(s, spillway.Call{})
			p.Done(spillway.Served)
		}
		seen.take()
		p, r := enter(s, spillway.Call{Deadline: past})
		p.Done(spillway.Served)
		if got := seen.take(); got != row.events || r.Refused() != row.refused {
			t.Errorf("%v, %v: %s, refused %v; want %s, %v", row.limit, row.shed, got, r.Refused(), row.events, row.refused)
		}
		if early := s.Refuse(spillway.Call{Deadline: past}).Refused(); early != (row.shed == spillway.Enforce) {
			t.Errorf("%v: early refusal %v", row.shed, early)
		}
	}
}

// A processor becomes free for one request at a time.
func TestWaitersRunByCriticality(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var seen log
		s := must(t, Config{Observer: &seen})
		first := occupy(t, s)
		var free atomic.Bool
		s.state = func(time.Time) shed.State {
			if free.Swap(false) {
				return shed.State{Processors: 1}
			}
			return shed.State{Processors: 1, Runnable: 5}
		}
		var refused sync.WaitGroup // only where somebody is do waiters run by criticality
		for range 8 {
			refused.Go(func() {
				if _, r := enter(s, spillway.Call{Criticality: spillway.Sheddable}); !r.Refused() {
					t.Error("ran on a busy processor")
				}
			})
		}
		refused.Wait()
		seen.take()
		var mu sync.Mutex
		var order []spillway.Criticality
		for _, c := range []spillway.Criticality{-2, 1, -1, 0} {
			go func() {
				p, r := enter(s, spillway.Call{Criticality: c})
				if r.Refused() {
					t.Errorf("%v: %+v", c, r)
				}
				mu.Lock()
				order = append(order, c)
				mu.Unlock()
				p.Done(spillway.Served)
			}()
		}
		time.Sleep(time.Millisecond)
		for i := range 4 {
			free.Store(true)
			time.Sleep(3 * time.Millisecond)
			synctest.Wait()
			if mu.Lock(); len(order) != i+1 {
				t.Errorf("%d run, want %d", len(order), i+1)
			}
			mu.Unlock()
		}
		first.Done(spillway.Served)
		if want := []spillway.Criticality{1, 0, -1, -2}; !slices.Equal(order, want) {
			t.Errorf("ran in the order %v", order)
		}
		if st := s.Stats(time.Now()).Shed; st.InFlight != 0 || st.Waiting != 0 {
			t.Errorf("%+v", st)
		}
		if got := strings.Count(seen.take(), "shed served"); got != 5 {
			t.Errorf("%d events", got)
		}
	})
}

// The real dispatcher lets waiters in, one after the other has ended.
func TestDispatcher(t *testing.T) {
	s := must(t, Config{Shed: shed.Config{MaxWait: 10 * time.Second}})
	var inside atomic.Int64
	s.state = func(time.Time) shed.State { return shed.State{Processors: 1, Runnable: int(inside.Load())} }
	var all sync.WaitGroup
	for range 50 {
		all.Go(func() {
			p, r := enter(s, spillway.Call{})
			if r.Refused() {
				t.Errorf("%+v", r)
				return
			}
			inside.Add(1)
			for range 100 {
				runtime.Gosched()
			}
			inside.Add(-1)
			p.Done(spillway.Served)
		})
	}
	all.Wait()
	if n := s.Stats(time.Now()).Shed; n.InFlight != 0 || n.Waiting != 0 || n.Classes[2].AdmittedTotal != 50 {
		t.Errorf("%+v", n)
	}
}

func TestWaitHasAnEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var seen log
		s := must(t, Config{Observer: &seen})
		first := occupy(t, s)
		start := time.Now()
		_, r := enter(s, spillway.Call{})
		if r.Reason != Overloaded || time.Since(start) != 60*time.Millisecond {
			t.Errorf("%+v after %v", r, time.Since(start))
		}
		ctx, cancel := context.WithCancel(context.Background())
		go func() {
			time.Sleep(10 * time.Millisecond)
			cancel()
		}()
		start = time.Now()
		_, r = s.Enter(ctx, spillway.Call{}, ratelimit.Caller{})
		if r.Reason != Left || r.Err != context.Canceled || time.Since(start) != 10*time.Millisecond {
			t.Errorf("%+v after %v", r, time.Since(start))
		}
		first.Done(spillway.Served)
		want := "shed refused, shed abandoned, shed served"
		if got := seen.take(); got != want {
			t.Errorf("events: %s; want %s", got, want)
		}
		if st := s.Stats(time.Now()).Shed; st.Waiting != 0 || st.InFlight != 0 || st.ExpiredTotal != 1 {
			t.Errorf("%+v", st)
		}
	})
}

// A lower class that waits is told when it has to make place.
func TestEvictedWaiterIsTold(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := must(t, Config{Shed: shed.Config{MaxWait: 10 * time.Second}})
		defer occupy(t, s).Done(spillway.Served)
		var refused, left atomic.Int64
		start := func(c spillway.Criticality, n int) context.CancelFunc {
			ctx, cancel := context.WithCancel(context.Background())
			for range n {
				go func() {
					switch _, r := s.Enter(ctx, spillway.Call{Criticality: c}, ratelimit.Caller{}); r.Reason {
					case Overloaded:
						refused.Add(1)
					case Left:
						left.Add(1)
					}
				}()
			}
			time.Sleep(time.Millisecond)
			return cancel
		}
		const low, high = 40, 20
		cancel := start(spillway.Sheddable, low)
		if n := s.shed.Waiting(); n != low {
			t.Errorf("%d wait, want %d", n, low)
		}
		cancelHigh := start(spillway.CriticalPlus, high)
		evicted := refused.Load()
		if n := s.shed.Waiting(); evicted < high/2 || n != low+high-int(evicted) {
			t.Errorf("of %d waiters %d were evicted, and %d wait", low, evicted, n)
		}
		cancel()
		if time.Sleep(time.Millisecond); s.shed.Waiting() != high {
			t.Errorf("%d wait, want the %d that matter more", s.shed.Waiting(), high)
		}
		cancelHigh()
		time.Sleep(time.Millisecond)
		if n := left.Load(); n != low+high-evicted || s.shed.Waiting() != 0 {
			t.Errorf("%d left", n)
		}
	})
}

func TestRateLimitQueue(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := must(t, Config{RateLimit: ratelimit.Config{Rate: 10, BurstSeconds: 0.1, QueueDepth: 2}})
		var mu sync.Mutex
		var waits []time.Duration
		start := time.Now()
		for range 4 {
			go func() {
				p, r := enter(s, spillway.Call{})
				p.Done(spillway.Served)
				mu.Lock()
				defer mu.Unlock()
				if !r.Refused() {
					waits = append(waits, time.Since(start).Round(time.Millisecond))
				}
			}()
		}
		time.Sleep(time.Second)
		synctest.Wait()
		if want := []time.Duration{0, 100 * time.Millisecond, 200 * time.Millisecond}; !slices.Equal(waits, want) {
			t.Errorf("admitted after %v, want %v", waits, want)
		}
		// Who leaves gives the token back.
		p, _ := enter(s, spillway.Call{})
		p.Done(spillway.Served)
		ctx, cancel := context.WithCancel(context.Background())
		time.AfterFunc(20*time.Millisecond, cancel)
		if _, r := s.Enter(ctx, spillway.Call{}, ratelimit.Caller{}); r.Reason != Left {
			t.Errorf("%+v", r)
		}
		if st := s.Stats(time.Now()).RateLimit; st.GaveUp != 1 || st.Waiting != 0 {
			t.Errorf("%+v", st)
		}
	})
}

// A request that would have to wait for a token until after its deadline is refused
// at once, and takes none.
func TestRateLimitQueueAndDeadline(t *testing.T) {
	for _, row := range []struct {
		mode    spillway.Mode
		refused bool
		want    string
	}{
		{spillway.Enforce, true, "ratelimit refused"},
		{spillway.Observe, false, "ratelimit refused (observe)"},
	} {
		synctest.Test(t, func(t *testing.T) {
			var seen log
			s := must(t, Config{
				RateLimit: ratelimit.Config{Rate: 10, BurstSeconds: 0.1, QueueDepth: 2}, RateLimitMode: row.mode,
				ShedMode: spillway.Off, Observer: &seen,
			})
			first, _ := enter(s, spillway.Call{})
			first.Done(spillway.Served)
			seen.take()
			start := time.Now()
			p, r := enter(s, spillway.Call{Deadline: start.Add(50 * time.Millisecond)})
			p.Done(spillway.Served)
			if got := seen.take(); got != row.want || r.Refused() != row.refused || row.refused && r.RetryAfter <= 0 {
				t.Errorf("%v: %s, %+v; want %s", row.mode, got, r, row.want)
			}
			if took := time.Since(start); took != 0 {
				t.Errorf("%v: answered after %v", row.mode, took)
			}
			if st := s.Stats(start).RateLimit; st.Waiting != 0 || st.Tokens != 0 {
				t.Errorf("%v: %+v", row.mode, st)
			}
		})
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
		var r Refusal
		for i := range 200 {
			_, r = enter(s, spillway.Call{Customer: row.customer, Attempt: int32(i % 2), Deadline: past})
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
		if _, r := enter(s, spillway.Call{Customer: "c"}); r.Refused() {
			t.Fatalf("%+v", r)
		}
	}
	if err := s.Update(Config{RateLimit: ratelimit.Config{Rate: 1}, RetryAfter: -1}); err == nil {
		t.Error("a bad Update is taken")
	}
	if err := s.Update(Config{Quota: perCustomer(t, 1), Trust: Trust{Boundary: Internal}}); err != nil {
		t.Fatal(err)
	}
	p.Done(spillway.Served)
	refused := 0
	for range 3 {
		if _, r := enter(s, spillway.Call{Customer: "c"}); r.Reason == OverQuota {
			refused++
		}
	}
	if refused == 0 || s.Trust().Boundary != Internal {
		t.Errorf("%d refused after an Update", refused)
	}
	if st := s.Stats(time.Now()); st.Shed.Classes[2].AdmittedTotal != uint64(4+3-refused) || len(st.Quota) == 0 {
		t.Errorf("what was known is lost: %+v", st)
	}
	if err := s.Update(Config{}); err != nil || s.Stats(time.Now()).Quota != nil {
		t.Errorf("the quota does not go: %v", err)
	}
}

// Requests come, wait, are refused and leave in all ways at once, while the
// configuration changes: then nothing is left.
func TestNothingIsLeft(t *testing.T) {
	var events atomic.Int64
	observer := spillway.ObserverFunc(func(spillway.Event) { events.Add(1) })
	config := Config{Observer: observer, Shed: shed.Config{MaxWait: time.Millisecond}}
	s := must(t, config)
	var turn atomic.Int64
	s.state = func(time.Time) shed.State {
		return shed.State{Processors: 1, Runnable: int(turn.Add(1) % 4 / 2)}
	}
	var all sync.WaitGroup
	for i := range 8 {
		all.Go(func() {
			r := rand.New(rand.NewPCG(uint64(i), 1))
			for range 300 {
				ctx, cancel := context.WithTimeout(context.Background(), time.Duration(r.IntN(1000))*time.Microsecond)
				call := spillway.Call{Criticality: spillway.Criticality(r.IntN(4)) - 2}
				if !s.Refuse(call).Refused() {
					p, _ := s.Enter(ctx, call, ratelimit.Caller{})
					p.Done(spillway.Served)
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
	if raceEnabled {
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
		p.Done(spillway.Served)
	}); n != 0 {
		t.Errorf("%v allocations to admit", n)
	}
	if n := testing.AllocsPerRun(1000, func() {
		s.Enter(ctx, spillway.Call{Customer: "c", Deadline: past}, ratelimit.Caller{})
	}); n != 0 {
		t.Errorf("%v allocations to refuse", n)
	}
	if n := testing.AllocsPerRun(1000, func() { s.Refuse(spillway.Call{Deadline: past}) }); n != 0 {
		t.Errorf("%v allocations to refuse early", n)
	}
}

func TestWords(t *testing.T) {
	got := []string{Reason(0).String(), Overloaded.String(), OverQuota.String(), Left.String(), Reason(9).String(), Edge.String(), Internal.String(), Boundary(9).String()}
	want := []string{"admitted", "overloaded", "over quota", "left", "invalid", "edge", "internal", "Boundary(9)"}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("%q", got)
	}
}

func BenchmarkAdmit(b *testing.B) {
	s, err := New(Config{})
	if err != nil {
		b.Fatal(err)
	}
	defer s.Close()
	ctx := context.Background()
	b.ReportAllocs()
	for b.Loop() {
		p, _ := s.Enter(ctx, spillway.Call{}, ratelimit.Caller{})
		p.Done(spillway.Served)
	}
}

func BenchmarkRefuse(b *testing.B) {
	s, err := New(Config{})
	if err != nil {
		b.Fatal(err)
	}
	defer s.Close()
	past := time.Now().Add(-time.Hour)
	b.ReportAllocs()
	for b.Loop() {
		s.Refuse(spillway.Call{Deadline: past})
	}
}

// A process that only forwards is not busy because many goroutines are ready to run.
func TestForwards(t *testing.T) {
	plain, forwards := must(t, Config{}), must(t, Config{Forwards: true})
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
	busy := func(s *Server) bool { return s.process(time.Now()).Runnable > 0 }
	for deadline := time.Now().Add(10 * time.Second); !busy(plain); runtime.Gosched() {
		if time.Now().After(deadline) {
			t.Fatal("many goroutines are ready to run, and it does not show")
		}
	}
	for range 100 {
		if busy(forwards) {
			t.Fatal("the run queue counts")
		}
	}
}
