package shed_test

import (
	"errors"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/seed90641741/spillway"
	"github.com/seed90641741/spillway/concurrency"
	"github.com/seed90641741/spillway/internal/race"
	"github.com/seed90641741/spillway/shed"
)

var t0 = time.Unix(1e9, 0)

func at(ms float64) time.Time { return t0.Add(time.Duration(ms * float64(time.Millisecond))) }

func must(tb testing.TB, c shed.Config) *shed.Shedder {
	tb.Helper()
	if c.Rand == nil {
		c.Rand = func() float64 { return 0.5 }
	}
	s, err := shed.New(c)
	if err != nil {
		tb.Fatal(err)
	}
	return s
}

// limited returns a Shedder in front of a limit.
func limited(tb testing.TB, c concurrency.Config) *shed.Shedder {
	tb.Helper()
	return must(tb, shed.Config{Limit: limiter(tb, c)})
}

var (
	idle = shed.State{Processors: 1}
	busy = shed.State{Processors: 1, Runnable: 5}
)

// pastBurst lets waiters in for longer than a burst, until t0, and another one always waits.
func pastBurst(s *shed.Shedder) *shed.Shedder {
	_, last := arrive(s, at(-201), spillway.Critical, busy)
	for ms := -200.0; ms <= 0; ms += 5 {
		_, last = arrive(s, at(ms), spillway.Critical, busy)
		w, _ := s.Next(at(ms), idle)
		w.Ticket.Settle(at(ms), spillway.OutcomeServed)
	}
	s.Withdraw(last)
	return s
}

// A request is one of a test; its class is its name.
func arrive(s *shed.Shedder, now time.Time, c spillway.Criticality, st shed.State) (shed.Decision, *shed.Waiter) {
	w := &shed.Waiter{Owner: c}
	return s.Arrive(now, &spillway.Call{Criticality: c}, &st, w), w
}

func TestConfigNamesTheBadField(t *testing.T) {
	for _, row := range []struct {
		config shed.Config
		want   string
	}{
		{shed.Config{MaxWait: -1}, "shed: MaxWait is -1ns, must be 1ms to 10s"},
		{shed.Config{MaxWait: time.Minute}, "shed: MaxWait is 1m0s, must be 1ms to 10s"},
		{shed.Config{Thresholds: [4]float64{0.5, 0.5, 0.9, 1}}, "shed: Thresholds[1] is 0.5, must be at least 0.05 above that of the class below (0.5)"},
		{shed.Config{Thresholds: [4]float64{-0.5, 0.5, 0.9, 1}}, "shed: Thresholds[0] is -0.5, must be above 0.05 and at most 100"},
	} {
		if _, err := shed.New(row.config); err == nil || err.Error() != row.want {
			t.Errorf("New(%+v) = %v, want %s", row.config, err, row.want)
		}
	}
	s := must(t, shed.Config{})
	if err := s.Update(shed.Config{MaxWait: -1}); err == nil {
		t.Error("Update took what New rejects")
	}
	if d, _ := arrive(pastBurst(s), t0, spillway.Critical, busy); d.MaxWait != 60*time.Millisecond {
		t.Errorf("after a failed Update a request may wait %v", d.MaxWait)
	}
}

func TestIdleExecutorRunsAtOnce(t *testing.T) {
	s := limited(t, concurrency.Config{})
	for i := range 100 {
		d, _ := arrive(s, at(float64(i)), spillway.Sheddable, idle)
		if d.Verdict != shed.Run || d.Ticket.By == nil || d.Err != nil {
			t.Fatalf("request %d: %+v", i, d)
		}
		d.Ticket.Settle(at(float64(i)+0.5), spillway.OutcomeServed)
		d.Ticket.Settle(at(float64(i)+0.5), spillway.OutcomeServed)
	}
	if st := s.Stats(time.Time{}); st.InFlight != 0 || st.RejectedRatio != 0 || st.Classes[0].AdmittedTotal != 100 {
		t.Errorf("%+v", st)
	}
}

// While nothing is rejected waiters leave by age; then by class, and within a class by
// age.
func TestOrderOfTheQueue(t *testing.T) {
	s := pastBurst(limited(t, concurrency.Config{}))
	testOrder(t, s, []int{0, 1, 2, 3, 4, 5})
	waiters := fill(t, s, spillway.Sheddable)
	for range 3 {
		if d, _ := arrive(s, t0, spillway.Sheddable, busy); d.Verdict != shed.Rejected {
			t.Fatal("a full queue has a place")
		}
	}
	for _, w := range waiters {
		s.Withdraw(w)
	}
	testOrder(t, s, []int{1, 5, 2, 4, 3, 0})
}

func testOrder(t *testing.T, s *shed.Shedder, order []int) {
	t.Helper()
	first, _ := arrive(s, t0, spillway.Critical, idle)
	var waiters []*shed.Waiter
	for i, c := range []spillway.Criticality{-2, 1, 0, -1, 0, 1} {
		d, w := arrive(s, at(float64(i)), c, busy)
		if d.Verdict != shed.Wait {
			t.Fatalf("request %d: %+v", i, d)
		}
		waiters = append(waiters, w)
	}
	if w, again := s.Next(at(10), busy); w != nil || !again {
		t.Fatalf("a busy executor: %v, ask again %v", w, again)
	}
	first.Ticket.Settle(at(10), spillway.OutcomeServed)
	for _, want := range order {
		w, _ := s.Next(at(10), idle)
		if w != waiters[want] || w.Ticket.By == nil || w.Err != nil {
			t.Fatalf("got the waiter of %v, want number %d", w.Owner, want)
		}
	}
	if w, again := s.Next(at(10), idle); w != nil || again {
		t.Errorf("an empty queue: %v, ask again %v", w, again)
	}
	if st := s.Stats(time.Time{}); st.InFlight != 6 || st.Waiting != 0 || s.Waiting() != 0 {
		t.Errorf("%+v", st)
	}
	for _, w := range waiters {
		w.Ticket.Settle(at(11), spillway.OutcomeServed)
	}
}

// Goroutines that are not requests keep the executor busy for good.
func TestBusyWithOtherThings(t *testing.T) {
	s := pastBurst(limited(t, concurrency.Config{}))
	done, _ := arrive(s, t0, spillway.Critical, idle)
	done.Ticket.Settle(t0, spillway.OutcomeServed)
	for range 3 {
		arrive(s, t0, spillway.Critical, busy)
	}
	if w, again := s.Next(at(5), busy); w != nil || !again {
		t.Error("a request runs at once")
	}
	w, _ := s.Next(at(10), busy)
	if w == nil {
		t.Fatal("nothing runs")
	}
	if again, ask := s.Next(at(30), busy); again != nil || !ask {
		t.Error("more runs than there are processors")
	}
	w.Ticket.Settle(at(30), spillway.OutcomeServed)
	if w, _ := s.Next(at(30), busy); w == nil {
		t.Error("nothing runs after the first has ended")
	}
}

// fill fills the queue with waiters of class c.
func fill(t *testing.T, s *shed.Shedder, c spillway.Criticality) (waiters []*shed.Waiter) {
	t.Helper()
	for range 1000 {
		d, w := arrive(s, t0, c, busy)
		if d.Verdict == shed.Rejected {
			return waiters
		}
		waiters = append(waiters, w)
	}
	t.Fatal("the queue is never full")
	return nil
}

func TestFullQueueRejectsTheLowest(t *testing.T) {
	s := pastBurst(must(t, shed.Config{}))
	low := fill(t, s, spillway.Sheddable)
	n := len(low)
	if n < 32 || n > 128 {
		t.Errorf("the queue holds %d for one processor", n)
	}
	// A higher class takes the place of the newest.
	for i := range 3 {
		d, _ := arrive(s, t0, spillway.Critical, busy)
		if d.Verdict != shed.Wait || d.Evicted != low[n-1-i] || !errors.Is(d.Evicted.Err, spillway.ErrRejected) {
			t.Fatalf("%+v, want the newest waiter evicted", d)
		}
	}
	if s.Waiting() != n {
		t.Errorf("%d wait after evictions, want %d", s.Waiting(), n)
	}
	// An equal or a lower one does not.
	d, _ := arrive(s, t0, spillway.Sheddable, busy)
	rejected, ok := errors.AsType[*spillway.RejectedError](d.Err)
	if d.Verdict != shed.Rejected || !ok || rejected.Policy != "shed" || rejected.Reason != spillway.ReasonQueueFull || rejected.Criticality != spillway.Sheddable {
		t.Errorf("%+v", d)
	}
	if st := s.Stats(time.Time{}); st.Classes[0].RejectedTotal != 5 {
		t.Errorf("%+v", st)
	}
}

// Once a class is rejected, so are all lower ones, also if a processor is idle at that moment, and
// for no longer than the class is.
func TestCascade(t *testing.T) {
	s := pastBurst(must(t, shed.Config{}))
	waiters := fill(t, s, spillway.Critical)
	for range 50 {
		arrive(s, t0, spillway.Critical, busy)
	}
	for _, w := range waiters {
		s.Withdraw(w)
	}
	if d, _ := arrive(s, t0, spillway.SheddablePlus, busy); d.Verdict != shed.Rejected {
		t.Errorf("a lower class: %+v", d)
	}
	if d, _ := arrive(s, t0, spillway.Sheddable, idle); d.Verdict != shed.Rejected {
		t.Errorf("the lowest class, while the executor is idle: %+v", d)
	}
	if d, _ := arrive(s, t0, spillway.SheddablePlus, idle); d.Verdict != shed.Rejected {
		t.Errorf("the next lower class, while the executor is idle: %+v", d)
	}
	if err := s.Reject(t0, &spillway.Call{Criticality: spillway.Sheddable}, 0, &idle); err == nil {
		t.Error("the lowest class would not be rejected")
	}
	for _, c := range []spillway.Criticality{spillway.Critical, spillway.CriticalPlus} {
		if d, _ := arrive(s, t0, c, idle); d.Verdict != shed.Run {
			t.Errorf("%v: %+v", c, d)
		}
	}
	if d, _ := arrive(s, at(1000), spillway.Sheddable, idle); d.Verdict != shed.Run {
		t.Errorf("the lowest class, a second later: %+v", d)
	}
}

func TestDeadline(t *testing.T) {
	s := limited(t, concurrency.Config{})
	for i := range 20 {
		d, _ := arrive(s, at(float64(30*i)), spillway.Critical, idle)
		d.Ticket.Settle(at(float64(30*i)+20), spillway.OutcomeServed)
	}
	_, last := arrive(s, at(700), spillway.Critical, busy)
	var running []*shed.Waiter
	for ms := 700.0; ms < 1000; ms += 5 { // longer than a burst
		_, last = arrive(s, at(ms), spillway.Critical, busy)
		w, _ := s.Next(at(ms), idle)
		if running = append(running, w); len(running) > 4 {
			running[0].Ticket.Settle(at(ms), spillway.OutcomeServed)
			running = running[1:]
		}
	}
	s.Withdraw(last)
	now := at(1000)
	for _, row := range []struct {
		left    time.Duration
		verdict shed.Verdict
		wait    time.Duration
	}{
		{-time.Second, shed.Rejected, 0},
		{10 * time.Millisecond, shed.Wait, 2500 * time.Microsecond}, // one in a second, to learn whether it would be quick
		{20 * time.Millisecond, shed.Rejected, 0},
		{40 * time.Millisecond, shed.Wait, 10 * time.Millisecond},
		{80 * time.Millisecond, shed.Wait, 30 * time.Millisecond},
		{time.Second, shed.Wait, 60 * time.Millisecond},
	} {
		call := spillway.Call{Deadline: now.Add(row.left)}
		if d := s.Arrive(now, &call, &busy, new(shed.Waiter)); d.Verdict != row.verdict || d.MaxWait != row.wait {
			t.Errorf("%v left: verdict %d, wait %v; want %d, %v", row.left, d.Verdict, d.MaxWait, row.verdict, row.wait)
		}
	}
	if f := s.Stats(now).RejectedRatio; f != 0 {
		t.Errorf("deadlines count as overload: rejected share %v", f)
	}
}

// Each class is rejected from its threshold on, over a ramp, and served again only
// when utilization is clearly below.
func TestThresholds(t *testing.T) {
	u := 0.5
	s := must(t, shed.Config{Rand: func() float64 { return u }})
	for i, row := range []struct {
		utilization, u float64
		want           string // who is served, from the lowest class up
	}{
		{0.79, 0, "yyyy"},
		{0.82, 0.3, "nyyy"},
		{0.82, 0.5, "yyyy"},
		{0.86, 0.99, "nyyy"},
		{0.80, 0.99, "nyyy"}, // falling: rejected until its threshold,
		{0.77, 0.3, "nyyy"},  // then less and less,
		{0.77, 0.5, "yyyy"},
		{0.75, 0, "yyyy"}, // and not at all
		{0.79, 0, "yyyy"},
		{0.93, 0.99, "nnyy"},
		{1.01, 0.99, "nnny"},
		{1.06, 0.99, "nnnn"},
		{9, 0.99, "nnnn"},
		{0, 0, "yyyy"},
	} {
		u = row.u
		got := ""
		for c := spillway.Sheddable; c <= spillway.CriticalPlus; c++ {
			st := shed.State{Processors: 1, Utilization: row.utilization}
			d, _ := arrive(s, at(float64(i)), c, st)
			if d.Verdict == shed.Run {
				got += "y"
				d.Ticket.Settle(at(float64(i)), spillway.OutcomeAbandoned)
			} else {
				got += "n"
			}
		}
		if got != row.want {
			t.Errorf("row %d: at %v with u = %v served %s, want %s", i, row.utilization, row.u, got, row.want)
		}
	}
}

func TestExpireAndWithdraw(t *testing.T) {
	s := pastBurst(limited(t, concurrency.Config{}))
	_, a := arrive(s, t0, spillway.Critical, busy)
	_, b := arrive(s, t0, spillway.Critical, busy)
	_, c := arrive(s, t0, spillway.Critical, busy)
	if !s.Expire(b) || b.Err == nil || s.Expire(b) || s.Withdraw(b) {
		t.Error("a waiter does not leave exactly once")
	}
	if !s.Withdraw(a) || s.Expire(a) {
		t.Error("a waiter does not withdraw exactly once")
	}
	if w, _ := s.Next(t0, idle); w != c || s.Expire(c) {
		t.Error("the third waiter is not left alone")
	}
	st := s.Stats(time.Time{})
	if st.Classes[2].RejectedTotal != 1 || st.Waiting != 0 || st.InFlight != 1 {
		t.Errorf("%+v", st)
	}
	// A Waiter can be used again.
	if d := s.Arrive(t0, &spillway.Call{}, &busy, b); d.Verdict != shed.Wait {
		t.Errorf("%+v", d)
	}
	if w, _ := s.Next(t0, idle); w != b || w.Err != nil {
		t.Errorf("got %v, with %v", w, w.Err)
	}
}

// Without a Waiter a request that would wait runs.
func TestWithoutWaiter(t *testing.T) {
	s := pastBurst(limited(t, concurrency.Config{}))
	if d := s.Arrive(t0, &spillway.Call{}, &busy, nil); d.Verdict != shed.Run || d.Ticket.By == nil {
		t.Errorf("%+v", d)
	}
	fill(t, s, spillway.Critical)
	if d := s.Arrive(t0, &spillway.Call{}, &busy, nil); d.Verdict != shed.Rejected {
		t.Errorf("a full queue: %+v", d)
	}
}

func TestTimeThatStepsBack(t *testing.T) {
	s := limited(t, concurrency.Config{})
	d, _ := arrive(s, at(100), spillway.Critical, idle)
	d.Ticket.Settle(at(50), spillway.OutcomeServed)
	d, _ = arrive(s, at(0), spillway.Critical, idle)
	d.Ticket.Settle(at(101), spillway.OutcomeServed)
	if st := s.Stats(time.Time{}); st.InFlight != 0 || st.Parked != 0 {
		t.Errorf("%+v", st)
	}
}

func TestRejectionsAreShared(t *testing.T) {
	s := pastBurst(must(t, shed.Config{}))
	fill(t, s, spillway.Critical)
	a, _ := arrive(s, t0, spillway.Critical, busy)
	b, _ := arrive(s, t0, spillway.Critical, busy)
	if a.Err != b.Err || !strings.HasPrefix(a.Err.Error(), "spillway: rejected locally by shed at 49 of 49 requests in the waiting queue: ") {
		t.Errorf("%v, %v", a.Err, b.Err)
	}
}

func TestAllocations(t *testing.T) {
	if race.Enabled {
		t.Skip("the race detector allocates")
	}
	s := pastBurst(limited(t, concurrency.Config{}))
	now := t0
	run := func() {
		now = now.Add(time.Millisecond)
		d := s.Arrive(now, &spillway.Call{}, &idle, nil)
		d.Ticket.Settle(now.Add(time.Microsecond), spillway.OutcomeServed)
	}
	w := new(shed.Waiter)
	wait := func() {
		now = now.Add(time.Millisecond)
		s.Arrive(now, &spillway.Call{}, &busy, w)
		got, _ := s.Next(now, idle)
		got.Ticket.Settle(now, spillway.OutcomeServed)
	}
	if n := testing.AllocsPerRun(1000, wait); n != 0 {
		t.Errorf("%v allocations to wait", n)
	}
	if n := testing.AllocsPerRun(1000, run); n != 0 {
		t.Errorf("%v allocations to run", n)
	}
	now = now.Add(time.Second)
	s.Arrive(now, &spillway.Call{}, &busy, new(shed.Waiter))
	for range 100 { // longer than a burst
		now = now.Add(5 * time.Millisecond)
		s.Arrive(now, &spillway.Call{}, &busy, new(shed.Waiter))
		got, _ := s.Next(now, idle)
		got.Ticket.Settle(now, spillway.OutcomeServed)
	}
	fill(t, s, spillway.Critical)
	if n := testing.AllocsPerRun(1000, func() { s.Reject(now, &spillway.Call{}, 0, &busy) }); n != 0 {
		t.Errorf("%v allocations to reject", n)
	}
}

// Of a server that does long work for some who do not say when they leave, others look
// things up, and wait for a second. However seldom they come, and whatever was asked
// for before they did, they are served.
func TestSeldomLookupsBesideLongWork(t *testing.T) {
	for _, every := range []time.Duration{15 * time.Second, 3 * time.Second, 50 * time.Millisecond} {
		s := limited(t, concurrency.Config{})
		const length, work, lookup = 2 * time.Minute, 3 * time.Second, 5 * time.Millisecond
		var export, look spillway.Ticket
		served, rejected := 0, 0
		for now := time.Duration(0); now < length; now += lookup {
			at := t0.Add(now)
			if look.By != nil {
				served++
			}
			look.Settle(at, spillway.OutcomeServed)
			if now%work == 0 {
				export.Settle(at, spillway.OutcomeServed)
				export = s.Arrive(at, &spillway.Call{}, &idle, new(shed.Waiter)).Ticket
			}
			if now < 30*time.Second || now%every != 0 {
				continue // it is early
			}
			call := spillway.Call{Deadline: at.Add(time.Second)}
			if s.Reject(at, &call, 0, &idle) != nil {
				rejected++
				continue
			}
			if d := s.Arrive(at, &call, &idle, new(shed.Waiter)); d.Verdict == shed.Run {
				look = d.Ticket
			} else {
				rejected++
			}
		}
		if rejected > 0 {
			t.Errorf("one lookup in %v: %d rejected and %d served by an idle server", every, rejected, served)
		}
	}
}

// TestShareIsRejectedOnce: who looks at requests before they arrive rejects no more of
// a class that is rejected in part.
func TestShareIsRejectedOnce(t *testing.T) {
	random := rand.New(rand.NewPCG(3, 4))
	s := must(t, shed.Config{Rand: random.Float64})
	half := shed.State{Processors: 1, Utilization: 0.975} // amid the ramp of CRITICAL
	const n = 10_000
	admitted := 0
	for i := range n {
		at := t0.Add(time.Duration(i) * time.Millisecond)
		if s.Reject(at, &spillway.Call{}, 0, &half) != nil {
			continue
		}
		if d := s.Arrive(at, &spillway.Call{}, &half, nil); d.Verdict == shed.Run {
			admitted++
			d.Ticket.Settle(at, spillway.OutcomeServed)
		}
	}
	if admitted < n*45/100 || admitted > n*55/100 {
		t.Errorf("%d of %d were let in, want half of them", admitted, n)
	}
}
