package sim

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"math"
	"math/rand/v2"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/seed90641741/spillway"
	"github.com/seed90641741/spillway/concurrency"
	"github.com/seed90641741/spillway/egress"
	"github.com/seed90641741/spillway/ingress"
	"github.com/seed90641741/spillway/internal/race"
	"github.com/seed90641741/spillway/internal/thorough"
	"github.com/seed90641741/spillway/quota"
	"github.com/seed90641741/spillway/ratelimit"
	"github.com/seed90641741/spillway/retry"
	"github.com/seed90641741/spillway/throttle"
)

const ms = time.Millisecond

func run(t testing.TB, c Config) *Result {
	t.Helper()
	race.SkipOneGoroutine(t)
	s, err := New(c)
	if err != nil {
		t.Fatal(err)
	}
	r, err := s.Run(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	check(t, s, r)
	return r
}

// check expects every call and every request to be accounted for.
func check(t testing.TB, s *Sim, r *Result) {
	t.Helper()
	for _, g := range r.Clients {
		for i, w := range g.Windows {
			if w.Unfinished < 0 || w.Good+w.Late+w.RejectedThrottle+w.RejectedInFlight+w.RejectedByBackend+w.TimedOut+w.Failed+w.Unfinished != w.Offered {
				t.Errorf("%s, window %d: %+v", g.Name, i, w.Counts)
			}
		}
	}
	free := map[*request]bool{}
	for _, q := range s.freeRequests {
		free[q] = true
	}
	for _, q := range s.requests {
		if free[q] != (q.task == nil) {
			t.Errorf("request %d of task %v is free: %v", q.id, q.task, free[q])
		}
	}
	if len(free) != len(s.freeRequests) {
		t.Errorf("%d requests are free, %d of them twice", len(free), len(s.freeRequests)-len(free))
	}
	for _, k := range s.tasks {
		if k.working < 0 || k.working > k.config.Processors || k.holding < 0 || k.present < 0 {
			t.Errorf("%s: %d working, %d holding, %d present", k.name, k.working, k.holding, k.present)
		}
	}
}

// server is one backend of 1000 requests per second, and 100 clients.
func server(rate float64) Config {
	return Config{
		Seed: 1, Duration: 20 * time.Second,
		Clients: []Clients{{Name: "web", Count: 100, Rate: rate, Deadline: time.Second, Call: Edge{
			To: "db", Latency: Constant(ms), Retry: Retry{Budgeted: retry.BudgetedConfig{MaxAttempts: 1}},
		}}},
		Services: []Service{{Name: "db", CPU: Constant(ms)}},
	}
}

// everything uses all there is.
func everything() Config {
	edge := Edge{
		To: "front", Latency: LogNormal(2*ms, 0.5), Loss: 0.001, Balance: LeastBusy, Subset: 3, Retarget: true, Leave: true, Timeout: 300 * ms,
		Connections: 20, Egress: egress.Config{MaxInFlight: 50, Throttle: throttle.Config{K: 1.5, Window: 10 * time.Second}},
	}
	standard, overload := edge, edge
	standard.Retry.Strategy, standard.Balance = AWSStandard, RoundRobin
	overload.Retry.Strategy, overload.Balance, overload.Subset = MongoDB, Random, 0
	limits := &quota.LocalConfig{Capacity: 300, Customers: map[string]quota.Limit{"a": {Weight: 2}, "b": {Rate: 100}}}
	return Config{
		Seed: 7, Duration: 12 * time.Second, Step: 100 * ms, Windows: []Window{{"early", 0, 5 * time.Second}, {"all", 0, 0}},
		Clients: []Clients{
			{Name: "a", Count: 30, Rate: 300, Rates: []Rate{{4 * time.Second, 900}, {8 * time.Second, 200}}, Deadline: time.Second, Customer: "a", Classes: [4]float64{1, 2, 3, 1}, Call: edge},
			{Name: "b", Count: 200, Loop: true, Think: Exponential(700 * ms), Deadline: time.Second, Customer: "b", Call: standard},
			{Name: "c", Trace: []time.Duration{ms, 2 * ms, 2 * ms, time.Second}, Call: overload},
		},
		Services: []Service{
			{
				Name: "front", Tasks: 5, Processors: 2, CPU: Exponential(3 * ms), Connect: ms, Hints: true, Customers: limits,
				Ingress: &ingress.Config{RateLimit: ratelimit.Config{Rate: 200, QueueDepth: 5}, RetryAfter: 20 * ms},
				Calls:   []Edge{{To: "db", Latency: Pareto(ms, 2.5)}, {To: "blob", Retry: Retry{Unlimited: true}}},
			},
			{Name: "db", Tasks: 2, CPU: Bimodal(ms, 20*ms, 0.05), Discipline: Priority, Queue: 30, Rejection: 100 * time.Microsecond, Memory: Memory{Limit: 40, PerRequest: 1, Restart: time.Second}},
			{Name: "blob", Wait: Uniform(10*ms, 20*ms), Slots: 8, Discipline: LIFO, Ingress: &ingress.Config{}},
		},
		Faults: []Fault{
			{Kind: Outage, Service: "front", Tasks: 1, At: time.Second, For: time.Second},
			{Kind: Hang, Service: "db", Tasks: 1, At: 2 * time.Second, For: 500 * ms},
			{Kind: Drop, Service: "blob", At: 3 * time.Second, For: 100 * ms},
			{Kind: Reject, Service: "db", At: 5 * time.Second, For: time.Second},
			{Kind: Slow, Service: "front", Tasks: 2, Factor: 3, At: 6 * time.Second, For: time.Second},
			{Kind: Lose, Service: "front", Tasks: 2, At: 7 * time.Second, For: time.Second},
			{Kind: Expensive, Service: "db", Cost: time.Second, At: 9 * time.Second},
			{Kind: Herd, Clients: "b", At: 10 * time.Second},
		},
	}
}

func digest(t testing.TB, r *Result) string {
	t.Helper()
	text, err := json.Marshal(r)
	if err != nil {
		t.Fatal(err)
	}
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:8])
}

// The digest is the same on all machines. It changes when the simulator or a policy
// decides otherwise than before.
func TestSameSeedSameBytes(t *testing.T) {
	const want = "a8a07db2a97a41f5"
	got := digest(t, run(t, everything()))
	if got != want {
		t.Errorf("digest %s, want %s: if a policy or the simulator was to change, write down the new one; if not, see who decides otherwise", got, want)
	}
	if again := digest(t, run(t, everything())); again != got {
		t.Errorf("two runs differ: %s, %s", got, again)
	}
	c := everything()
	c.Seed = 8
	if other := digest(t, run(t, c)); other == got {
		t.Error("the seed has no effect")
	}
}

// Callers who leave after an answer was lost take no request of others with them.
func TestLeavingConcernsNobodyElse(t *testing.T) {
	c := server(300)
	c.Clients[0].Call.Egress = egress.Config{ThrottleMode: spillway.ModeOff, InFlightMode: spillway.ModeOff}
	patient := c.Clients[0]
	patient.Name = "patient"
	c.Clients = append(c.Clients, patient)
	c.Clients[0].Call.Loss, c.Clients[0].Call.Timeout, c.Clients[0].Call.Leave = 0.5, 20*ms, true
	if w := run(t, c).Clients[1].Windows[0]; w.Success < 0.999 || w.TimedOut > 0 {
		t.Errorf("%+v", w.Counts)
	}
}

// Time passes for clients in a loop whose calls take none.
func TestLoopWithoutTime(t *testing.T) {
	c := server(0)
	c.Duration = 2 * time.Second
	c.Clients[0].Loop = true
	c.Clients[0].Call.Retry.Budgeted.MaxAttempts = 1
	c.Faults = []Fault{{Kind: Reject, Service: "db", At: time.Second}}
	run(t, c) // ends
}

func TestMemoryRunsOut(t *testing.T) {
	c := server(5000)
	c.Duration = 10 * time.Second
	c.Clients[0].Call.Egress.ThrottleMode = spillway.ModeOff
	c.Services[0].Memory = Memory{Limit: 100, Base: 10, PerRequest: 1, Restart: time.Second}
	r := run(t, c)
	if n := r.Services[0].Crashes; n < 5 || n > 10 {
		t.Errorf("%d crashes in ten seconds", n)
	}
	if lost := r.Services[0].Windows[0].Lost; lost < 50*r.Services[0].Crashes {
		t.Errorf("%d requests lost", lost)
	}
	c.Services[0].Ingress = &ingress.Config{}
	if r := run(t, c); r.Services[0].Crashes > 0 {
		t.Errorf("%d crashes although the server rejects what it has no memory for", r.Services[0].Crashes)
	}
}

func TestDisciplines(t *testing.T) {
	success := func(d Discipline) *CallsSummary {
		c := server(1500)
		c.Clients[0].Deadline = 50 * ms
		c.Clients[0].Classes = [4]float64{1, 0, 0, 1}
		c.Clients[0].Call.Egress = egress.Config{ThrottleMode: spillway.ModeOff, InFlightMode: spillway.ModeOff}
		c.Services[0].Discipline = d
		return &run(t, c).Clients[0].Windows[0]
	}
	fifo, lifo, priority := success(FIFO), success(LIFO), success(Priority)
	if fifo.Success > 0.05 || lifo.Success < 0.5 || priority.Success < 0.45 {
		t.Errorf("fifo %v, lifo %v, priority %v", fifo.Success, lifo.Success, priority.Success)
	}
	if high := priority.Classes[0].Success; high < 0.99 {
		t.Errorf("the highest class: %v", high)
	}
}

func TestSlotsBoundWhoWaits(t *testing.T) {
	c := server(1000)
	c.Services[0] = Service{Name: "db", Wait: Constant(20 * ms), Slots: 8}
	c.Clients[0].Call.Egress.ThrottleMode = spillway.ModeOff
	r := run(t, c)
	if v := r.Services[0]; v.CapacityRPS != 400 || math.Abs(v.Windows[0].GoodputRatio-1) > 0.01 {
		t.Errorf("capacity %v, %+v", v.CapacityRPS, v.Windows[0])
	}
}

// Closed loops have as many calls under way as there are clients, at most.
func TestClosedLoop(t *testing.T) {
	c := server(0)
	c.Clients[0].Loop, c.Clients[0].Count = true, 10
	v := run(t, c).Services[0].Windows[0]
	if v.Present > 10 || math.Abs(v.GoodputRatio-1) > 0.01 {
		t.Errorf("%+v", v)
	}
}

func TestConnectionsBoundWhatIsOnTheWay(t *testing.T) {
	c := server(2000)
	c.Clients[0].Count, c.Clients[0].Call.Connections = 1, 7
	c.Clients[0].Call.Egress = egress.Config{ThrottleMode: spillway.ModeOff, InFlightMode: spillway.ModeOff}
	c.Clients[0].Deadline = 0
	v := run(t, c).Services[0].Windows[0]
	if v.Present < 5 || v.Present > 7 || v.GoodputRatio < 0.98 {
		t.Errorf("%+v", v)
	}
}

// Clients with little state use little memory: an idle client has no policies, and one that
// calls rarely has no throttle.
func TestIdleClientsAreSmall(t *testing.T) {
	const clients = 200_000
	if race.Enabled {
		t.Skip("the race detector takes memory of its own")
	}
	var before, after runtime.MemStats
	c := server(200)
	c.Clients[0].Count, c.Duration = clients, 300*time.Second
	runtime.GC()
	runtime.GC() // what pools held is now gone, too
	runtime.ReadMemStats(&before)
	s, err := New(c)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.Run(t.Context()); err != nil {
		t.Fatal(err)
	}
	runtime.GC()
	runtime.ReadMemStats(&after)
	each := float64(after.HeapAlloc-before.HeapAlloc) / clients
	if each > 300 {
		t.Errorf("%.0f bytes for each client", each)
	}
	t.Logf("%.0f bytes for each of %d clients", each, clients)
	runtime.KeepAlive(s)
}

func TestFairness(t *testing.T) {
	c := server(500)
	c.Duration = 200 * time.Second
	if f := run(t, c).Clients[0].Fairness; f < 0.99 {
		t.Errorf("a server with room to spare is unfair: %v", f)
	}
}

func TestRunEndsWithItsContext(t *testing.T) {
	s, err := New(everything())
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(nil)
	if r, err := s.Run(ctx); r != nil || !errors.Is(err, context.Canceled) {
		t.Errorf("%v, %v", r, err)
	}
}

func TestProgressIsTold(t *testing.T) {
	c := server(10)
	var told []time.Duration
	c.Progress = func(at time.Duration) { told = append(told, at) }
	run(t, c)
	if len(told) != 20 || told[19] != c.Duration || !slices.IsSorted(told) {
		t.Errorf("%v", told)
	}
}

// Systems made at random neither panic nor lose a call or a request.
func TestRandomSystems(t *testing.T) {
	for seed := range thorough.Seeds(15, 60) {
		r := rand.New(rand.NewPCG(seed, 5))
		c := everything()
		c.Seed, c.Duration = seed, time.Duration(1+r.IntN(6))*time.Second
		c.Windows = nil
		for i := range c.Clients[:2] {
			c.Clients[i].Count = 1 + r.IntN(300)
			c.Clients[i].Call.Connections = r.IntN(10)
			c.Clients[i].Call.Leave = r.IntN(2) == 0
			c.Clients[i].Call.Loss = r.Float64() * 0.2
			c.Clients[i].Deadline = time.Duration(r.IntN(500)) * ms
		}
		c.Clients[0].Rates[0].At = time.Second
		for i := range c.Faults {
			c.Faults[i].At = time.Duration(r.Int64N(int64(c.Duration)))
			c.Faults[i].For = time.Duration(r.Int64N(int64(2 * time.Second)))
		}
		for i := range c.Services {
			if r.IntN(3) == 0 {
				c.Services[i].Ingress, c.Services[i].Customers = nil, nil
			}
			c.Services[i].Memory = Memory{Limit: float64(r.IntN(2) * (10 + r.IntN(100))), PerRequest: 1, Restart: 300 * ms}
		}
		run(t, c)
	}
}

func TestFieldErrors(t *testing.T) {
	set := func(change func(c *Config)) Config {
		c := everything()
		change(&c)
		return c
	}
	for want, c := range map[string]Config{
		"Duration is 0s, must be 1ms to a year":                          set(func(c *Config) { c.Duration = 0 }),
		"Step is 1ns, must be 1ms":                                       set(func(c *Config) { c.Step = 1 }),
		"Step is 1ms, must be so long":                                   set(func(c *Config) { c.Step, c.Duration = ms, time.Hour }),
		"Clients is 0, must be 1 to 200":                                 set(func(c *Config) { c.Clients = nil }),
		"Clients is 20000000, must be at most 10000000 together":         set(func(c *Config) { c.Clients[0].Count, c.Clients[1].Count = 1e7-1, 1e7 }),
		"Clients[0].Count is -1":                                         set(func(c *Config) { c.Clients[0].Count = -1 }),
		"Clients[0].Rate is NaN":                                         set(func(c *Config) { c.Clients[0].Rate = math.NaN() }),
		"Clients[0].Rates[1].At is 1s":                                   set(func(c *Config) { c.Clients[0].Rates[1].At = time.Second }),
		"Clients[1].Loop is true, must be false":                         set(func(c *Config) { c.Clients[1].Rate = 1 }),
		"Clients[2].Trace[1] is 0s":                                      set(func(c *Config) { c.Clients[2].Trace = []time.Duration{1, 0} }),
		"Clients[2].Trace is [":                                          set(func(c *Config) { c.Clients[2].Rate = 1 }),
		"Clients[0].Call.To is \"x\", must be the name of a service":     set(func(c *Config) { c.Clients[0].Call.To = "x" }),
		"Clients[0].Call.Loss is 2":                                      set(func(c *Config) { c.Clients[0].Call.Loss = 2 }),
		"Clients[0].Call.Subset is 6":                                    set(func(c *Config) { c.Clients[0].Call.Subset = 6 }),
		"Clients[0].Call.Subset is 70, must be at most 64":               set(func(c *Config) { c.Services[0].Tasks, c.Clients[0].Call.Subset = 80, 70 }),
		"Clients[0].Call.Egress.Throttle.K is 1":                         set(func(c *Config) { c.Clients[0].Call.Egress.Throttle.K = 1 }),
		"Clients[0].Call.Egress.Throttle.Rand is set, must be nil":       set(func(c *Config) { c.Clients[0].Call.Egress.Throttle.Rand = rand.Float64 }),
		"Clients[0].Call.Egress.ThrottleMode is Mode(9)":                 set(func(c *Config) { c.Clients[0].Call.Egress.ThrottleMode = 9 }),
		"Clients[0].Call.Egress.MaxInFlight is ":                         set(func(c *Config) { c.Clients[0].Call.Egress.MaxInFlight = math.MaxInt }),
		"Clients[0].Call.Egress.Hedge is set, must be zero":              set(func(c *Config) { c.Clients[0].Call.Egress.Hedge.Delay = time.Second }),
		"Clients[0].Call.Retry.Budgeted.MaxAttempts is -1":               set(func(c *Config) { c.Clients[0].Call.Retry.Budgeted.MaxAttempts = -1 }),
		"Clients[0].Call.Retry.Strategy is \"x\"":                        set(func(c *Config) { c.Clients[0].Call.Retry.Strategy = "x" }),
		"Clients[0].Call.Latency is uniform 1s 1ms, must be of a second": set(func(c *Config) { c.Clients[0].Call.Latency = Uniform(time.Second, ms) }),
		"Services[0].Ingress.RateLimit.Rate is 1e+09":                    set(func(c *Config) { c.Services[0].Ingress = &ingress.Config{RateLimit: ratelimit.Config{Rate: 1e9}} }),
		"Services[0].Ingress.RateLimitMode is Mode(9)":                   set(func(c *Config) { c.Services[0].Ingress = &ingress.Config{RateLimitMode: 9} }),
		"Services[0].Ingress.InFlightMode is observe":                    set(func(c *Config) { c.Services[0].Ingress = &ingress.Config{InFlightMode: spillway.ModeObserve} }),
		"Services[0].Ingress.Concurrency.MinInFlight is -1": set(func(c *Config) {
			c.Services[0].Ingress = &ingress.Config{Concurrency: concurrency.Config{MinInFlight: -1}}
		}),
		"Services[0].Ingress.Rand is set, must be nil":  set(func(c *Config) { c.Services[0].Ingress = &ingress.Config{Rand: rand.Float64} }),
		"Services[0].Queue is 1, must be 0 where there": set(func(c *Config) { c.Services[0].Queue = 1 }),
		"Services[1].Customers is set":                  set(func(c *Config) { c.Services[1].Customers = new(quota.LocalConfig) }),
		"Services[1].Discipline is \"x\"":               set(func(c *Config) { c.Services[1].Discipline = "x" }),
		"Services[2].Name is \"db\", must be different": set(func(c *Config) { c.Services[2].Name = "db" }),
		"Services[2].Name is \"a.b\"":                   set(func(c *Config) { c.Services[2].Name = "a.b" }),
		"Services[2].Calls[0].To is \"front\", must be a service that does not call this one: front → blob → f": set(func(c *Config) { c.Services[2].Calls = []Edge{{To: "front"}} }),
		"Windows[0].To is 1h0m0s":                         set(func(c *Config) { c.Windows[0].To = time.Hour }),
		"Windows[1].Name is \"early\"":                    set(func(c *Config) { c.Windows[1].Name = "early" }),
		"Faults[0].Kind is \"x\"":                         set(func(c *Config) { c.Faults[0].Kind = "x" }),
		"Faults[0].Service is \"x\"":                      set(func(c *Config) { c.Faults[0].Service = "x" }),
		"Faults[0].Tasks is 6":                            set(func(c *Config) { c.Faults[0].Tasks = 6 }),
		"Faults[4].Factor is 0":                           set(func(c *Config) { c.Faults[4].Factor = 0 }),
		"Faults[0].Factor is 2, must be 0 where Kind is":  set(func(c *Config) { c.Faults[0].Factor = 2 }),
		"Faults[0].Cost is 1s, must be 0 where Kind is":   set(func(c *Config) { c.Faults[0].Cost = time.Second }),
		"Faults[0].Calls is 5, must be 0 where Kind is":   set(func(c *Config) { c.Faults[0].Calls = 5 }),
		"Faults[0].Clients is \"x\", must be empty where": set(func(c *Config) { c.Faults[0].Clients = "x" }),
		"Faults[7].Service is \"x\", must be empty where": set(func(c *Config) { c.Faults[7].Service = "x" }),
		"Clients[0].Rate is 1e+08, must be 0 to 1e7":      set(func(c *Config) { c.Clients[0].Rate = 1e8 }),
		"Faults[7].Clients is \"x\"":                      set(func(c *Config) { c.Faults[7].Clients = "x" }),
	} {
		s, err := New(c)
		if _, ok := errors.AsType[*spillway.FieldError](err); s != nil || !ok || !strings.HasPrefix(err.Error(), "sim: "+want) {
			t.Errorf("New: %v, want %s", err, want)
		}
	}
}

// A call that is made after its deadline is not sent: it ends at once, and time does
// not go back to when it should have.
func TestCallsAfterTheirDeadline(t *testing.T) {
	c := server(0)
	c.Clients[0].Deadline, c.Clients[0].Trace = 45*ms, make([]time.Duration, 20) // all at once
	c.Clients[0].Call.Latency = Dist{}
	c.Services[0].CPU, c.Services[0].Calls = Constant(10*ms), []Edge{{To: "disk"}}
	c.Services = append(c.Services, Service{Name: "disk", CPU: Constant(ms)})
	s, err := New(c)
	if err != nil {
		t.Fatal(err)
	}
	last := int64(0)
	s.witness.replied = func(*request) {
		if s.now < last {
			t.Errorf("%v comes after %v", time.Duration(s.now), time.Duration(last))
		}
		last = s.now
	}
	r, err := s.Run(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if n := r.Services[1].Windows[0].Arrived; n != 4 {
		t.Errorf("%d calls were sent on, of which 4 had time left", n)
	}
	if last != int64(200*ms) {
		t.Errorf("the last answer came after %v, want 200ms", time.Duration(last))
	}
}

// Processor time counts when it passes, so that nothing is used more than wholly.
func TestProcessorTimeCountsWhenItPasses(t *testing.T) {
	c := server(0)
	c.Duration, c.Clients[0].Deadline, c.Clients[0].Call.Latency = 10*time.Second, 0, Dist{}
	c.Clients[0].Trace = []time.Duration{500 * ms, 9500 * ms}
	c.Windows = []Window{{"early", 0, 2 * time.Second}, {"late", 2 * time.Second, 0}}
	c.Services[0].CPU = Constant(3 * time.Second)
	v := run(t, c).Services[0]
	if want := []float64{0.5, 1, 1, 0.5, 0, 0, 0, 0, 0, 0.5}; !slices.Equal(v.Series.Utilization, want) {
		t.Errorf("the processor was used %v, want %v", v.Series.Utilization, want)
	}
	if early, late := v.Windows[0].Utilization, v.Windows[1].Utilization; early != 0.75 || late != 0.25 {
		t.Errorf("and %v and %v in the windows", early, late)
	}
}

// A task at half of its capacity is not above a target of its use of the processor,
// however long each request computes.
func TestUseOfProcessorsIsAShare(t *testing.T) {
	c := server(0)
	for at := time.Duration(0); at < 20*time.Second; at += 2 * time.Second {
		c.Clients[0].Trace = append(c.Clients[0].Trace, at, at+900*ms, at+1010*ms) // the third one comes when the first is just done
	}
	c.Clients[0].Deadline = 0
	c.Clients[0].Call.Egress.ThrottleMode = spillway.ModeOff
	c.Services[0].Processors = 4
	c.Services[0].CPU, c.Services[0].Ingress = Constant(time.Second), new(ingress.Config)
	c.Services[0].Ingress.Load.Targets.CPU = 0.9
	if w := run(t, c).Clients[0].Windows[0]; w.RejectedByBackend > 0 {
		t.Errorf("%+v", w.Counts)
	}
}
