package sim

import (
	"math"
	"slices"
	"testing"
	"time"

	"github.com/seed90641741/spillway"
	"github.com/seed90641741/spillway/egress"
	"github.com/seed90641741/spillway/fault"
	"github.com/seed90641741/spillway/retry"
)

func TestFaultsAreFelt(t *testing.T) {
	for kind, row := range map[FaultKind]struct {
		fault Fault
		felt  func(before, during, after *CallsSummary) bool
	}{
		Outage:    {Fault{}, func(_, d, a *CallsSummary) bool { return d.Failed == d.Offered && a.Success == 1 }},
		Reject:    {Fault{}, func(_, d, a *CallsSummary) bool { return d.RejectedByBackend == d.Offered && a.Success == 1 }},
		Drop:      {Fault{}, func(_, d, a *CallsSummary) bool { return d.TimedOut == d.Offered && a.Success == 1 }},
		Hang:      {Fault{}, func(_, d, a *CallsSummary) bool { return d.TimedOut == d.Offered && a.Success == 1 }},
		Slow:      {Fault{Factor: 5}, func(b, d, _ *CallsSummary) bool { return *d.P50MS > 2**b.P50MS }},
		Lose:      {Fault{}, func(_, d, a *CallsSummary) bool { return d.Failed == d.Offered && a.Success == 1 }},
		Expensive: {Fault{Cost: time.Second}, func(b, d, _ *CallsSummary) bool { return *d.P99MS > 50**b.P99MS }},
		Herd:      {Fault{Clients: "web", Calls: 3000}, func(b, d, _ *CallsSummary) bool { return d.Offered > b.Offered+2500 }},
	} {
		t.Run(string(kind), func(t *testing.T) {
			c := server(100)
			c.Duration = 30 * time.Second
			c.Clients[0].Call.Egress = egress.Config{ThrottleMode: spillway.ModeOff, InFlightMode: spillway.ModeOff}
			c.Windows = []Window{{"before", 0, 8 * time.Second}, {"during", 10 * time.Second, 13 * time.Second}, {"after", 15 * time.Second, 29 * time.Second}}
			f := row.fault
			f.Kind, f.At, f.For = kind, 10*time.Second, 5*time.Second
			if kind != Herd {
				f.Service = "db"
			}
			c.Faults = []Fault{f}
			w := run(t, c).Clients[0].Windows
			if w[0].Success != 1 || !row.felt(&w[0], &w[1], &w[2]) {
				t.Errorf("before %+v\nduring %+v\nafter %+v", w[0].Counts, w[1].Counts, w[2].Counts)
			}
		})
	}
}

// Of faults that overlap, each lasts until its own end.
func TestSlowFaultsOverlap(t *testing.T) {
	c := server(10)
	c.Clients[0].Deadline = 0
	c.Services[0].CPU = Constant(ms)
	c.Windows = []Window{{"both", 4 * time.Second, 6 * time.Second}, {"one", 7 * time.Second, 9 * time.Second}, {"none", 11 * time.Second, 13 * time.Second}}
	c.Faults = []Fault{
		{Kind: Slow, Service: "db", Factor: 2, At: 3 * time.Second, For: 3 * time.Second},
		{Kind: Slow, Service: "db", Factor: 3, At: 3 * time.Second, For: 6 * time.Second},
	}
	for i, want := range []float64{6, 3, 1} {
		l := run(t, c).Services[0].Windows[i]
		if got := float64(l.BusyNS) / float64(l.Served) / float64(ms); math.Abs(got-want) > 0.1*want {
			t.Errorf("%s: a request took %v ms, want %v", c.Windows[i].Name, got, want)
		}
	}
}

// A herd of clients that call in a loop adds to their calls once.
func TestHerdOfALoop(t *testing.T) {
	c := server(0)
	c.Clients[0].Count, c.Clients[0].Loop, c.Clients[0].Think = 10, true, Constant(100*ms)
	c.Windows = []Window{{"before", 5 * time.Second, 10 * time.Second}, {"after", 11 * time.Second, 16 * time.Second}}
	c.Faults = []Fault{{Kind: Herd, Clients: "web", At: 10 * time.Second}}
	w := run(t, c).Clients[0].Windows
	if before, after := w[0].Offered, w[1].Offered; before == 0 || after > before+10 {
		t.Errorf("%d calls before the herd, %d after it", before, after)
	}
}

func TestLostTasksAreNotChosen(t *testing.T) {
	c := server(100)
	c.Services[0].Tasks = 4
	c.Faults = []Fault{{Kind: Lose, Service: "db", Tasks: 2, At: 5 * time.Second}}
	c.Windows = []Window{{"after", 6 * time.Second, 19 * time.Second}}
	if w := run(t, c).Clients[0].Windows[0]; w.Success != 1 {
		t.Errorf("%+v", w)
	}
}

// A task that comes back has to be connected to again by all who have tried it while
// it was away.
func TestConnectionsAreRefused(t *testing.T) {
	c := server(0)
	for at := ms; at < 12*time.Second; at += 100 * ms {
		c.Clients[0].Trace = append(c.Clients[0].Trace, at)
	}
	c.Clients[0].Count = 1
	c.Clients[0].Call.Egress.ThrottleMode = spillway.ModeOff
	c.Services[0].Connect = 50 * ms
	c.Faults = []Fault{{Kind: Outage, Service: "db", At: 2 * time.Second, For: 5 * time.Second}}
	l := run(t, c).Services[0].Windows[0]
	if want := int64(2*50*ms) + int64(l.Served)*int64(ms); l.BusyNS != want {
		t.Errorf("busy for %v, want %v: one connection before the outage, and one after it", time.Duration(l.BusyNS), time.Duration(want))
	}
}

// However few tasks are left, callers who know choose them.
func TestFewTasksAreLeft(t *testing.T) {
	for _, balance := range []Balance{Random, RoundRobin, LeastBusy} {
		c := server(100)
		c.Services[0].Tasks, c.Clients[0].Call.Balance = 40, balance
		c.Faults = []Fault{{Kind: Lose, Service: "db", Tasks: 39, At: 5 * time.Second}}
		c.Windows = []Window{{"after", 6 * time.Second, 19 * time.Second}}
		if w := run(t, c).Clients[0].Windows[0]; w.Success != 1 {
			t.Errorf("%s: %+v", balance, w.Counts)
		}
	}
}

// A task that hangs answers no requests: neither the ones in service, nor the ones beyond its
// queue capacity.
func TestHangingTasksSayNothing(t *testing.T) {
	c := server(200)
	c.Clients[0].Call.Egress.ThrottleMode = spillway.ModeOff
	c.Services[0] = Service{Name: "db", CPU: Constant(ms), Wait: Constant(500 * ms), Queue: 150, Calls: []Edge{{To: "disk", Latency: Constant(50 * ms)}}}
	c.Services = append(c.Services, Service{Name: "disk"})
	c.Faults = []Fault{{Kind: Hang, Service: "db", At: 10 * time.Second, For: 5 * time.Second}}
	s, err := New(c)
	if err != nil {
		t.Fatal(err)
	}
	answers := 0
	s.witness.replied = func(r *request) {
		if r.task.config.Name == "db" && s.now >= int64(10*time.Second) && s.now < int64(15*time.Second) {
			answers++
		}
	}
	r, err := s.Run(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if answers > 0 {
		t.Errorf("%d answers", answers)
	}
	if w := r.Clients[0].Windows[0]; w.Success < 0.6 {
		t.Errorf("%+v", w.Counts)
	}
}

// A request that fails because a call for it has failed was not rejected.
func TestFailuresAreNoRejections(t *testing.T) {
	c := server(10)
	c.Services[0].Calls = []Edge{{To: "disk", Retry: Retry{Budgeted: retry.BudgetedConfig{MaxAttempts: 1}}}}
	c.Services = append(c.Services, Service{Name: "disk"})
	c.Faults = []Fault{{Kind: Outage, Service: "disk"}}
	c.Clients[0].Call.Egress.ThrottleMode, c.Services[0].Calls[0].Egress.ThrottleMode = spillway.ModeOff, spillway.ModeOff
	if l := run(t, c).Services[0].Windows[0].Load; l.Rejected > 0 || l.Arrived == 0 || l.Failed != l.Arrived {
		t.Errorf("%+v, want each to fail, and none rejected", l)
	}
}

// A process that dies makes no further attempts, and loses its state about the services that
// it calls.
func TestTheDeadDoNotRetry(t *testing.T) {
	c := server(0)
	c.Duration, c.Clients[0].Deadline, c.Clients[0].Trace = time.Minute, 0, make([]time.Duration, 100)
	c.Services[0].Calls = []Edge{{To: "disk", Egress: egress.Config{ThrottleMode: spillway.ModeObserve}, Retry: Retry{
		Unlimited: true, NoJitter: true, Budgeted: retry.BudgetedConfig{MaxAttempts: 50, Backoff: retry.Backoff{Base: time.Second, Max: time.Second}},
	}}}
	c.Services = append(c.Services, Service{Name: "disk"})
	c.Windows = []Window{{"alive", 0, 5 * time.Second}, {"dead", 5 * time.Second, 0}}
	c.Faults = []Fault{{Kind: Reject, Service: "disk"}, {Kind: Outage, Service: "db", At: 5 * time.Second, For: time.Second}}
	s, err := New(c)
	if err != nil {
		t.Fatal(err)
	}
	r, err := s.Run(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	check(t, s, r)
	if disk := r.Services[1].Windows; disk[0].Arrived < 100 || disk[1].Arrived > 0 {
		t.Errorf("%d attempts of the living, %d of the dead", disk[0].Arrived, disk[1].Arrived)
	}
	if a := s.edges[0].callers[0]; a.bucket != nil || a.active != nil && (a.active.throttle != nil || a.active.flying > 0) {
		t.Errorf("it remembers %+v", a)
	}
}

// A new process knows of no task that has asked the old one to stay away.
func TestTheDeadForgetWhoAskedThemToStayAway(t *testing.T) {
	c := server(0)
	c.Services[0].Calls = []Edge{{To: "disk"}}
	c.Services = append(c.Services, Service{Name: "disk", Tasks: 2})
	s, err := New(c)
	if err != nil {
		t.Fatal(err)
	}
	e, away := s.edges[0], &call{at: 1}
	chosen := func() bool {
		e.use(0)
		return slices.ContainsFunc(make([]int, 100), func(int) bool { return e.pick(away) == 1 })
	}
	e.use(0)
	e.eject(away, fault.Failure{Overload: true, Scope: fault.ScopeTask, RetryAfter: time.Second, HasRetryAfter: true})
	if chosen() {
		t.Error("a task that has asked to stay away was chosen")
	}
	s.tasks[0].kill()
	if !chosen() {
		t.Error("a new process does not choose it either")
	}
}

// The work that was in service when a task began to hang takes its normal time afterwards, and
// no longer.
func TestHangingTasksGoOn(t *testing.T) {
	c := server(0)
	c.Duration, c.Step, c.Clients[0].Deadline, c.Clients[0].Call.Latency = 10*time.Second, 100*ms, 0, Dist{}
	c.Clients[0].Trace = []time.Duration{time.Second}
	c.Services[0].CPU = Constant(2 * time.Second)
	c.Faults = []Fault{
		{Kind: Hang, Service: "db", At: 1500 * ms, For: 2 * time.Second},
		{Kind: Hang, Service: "db", At: 3 * time.Second, For: time.Second},
	}
	r := run(t, c)
	if took := *r.Clients[0].Windows[0].P50MS; math.Abs(took-4500) > 50 {
		t.Errorf("two seconds of work and 2.5 s of standing still took %v ms", took)
	}
	if busy := r.Services[0].Windows[0].BusyNS; busy != int64(2*time.Second) {
		t.Errorf("the processor was busy for %v", time.Duration(busy))
	}
}
