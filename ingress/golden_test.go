package ingress

import (
	"context"
	"flag"
	"fmt"
	"hash/fnv"
	"math"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seed90641741/spillway"
	"github.com/seed90641741/spillway/attempts"
	"github.com/seed90641741/spillway/ratelimit"
	"github.com/seed90641741/spillway/shed"
)

var update = flag.Bool("update", false, "write the golden files")

const goldenFile = "testdata/decisions.golden"

// goldenScenarios are configurations of all gates. In none has a request to wait in two queues:
// requests that leave the first at one moment reach the second in no order.
func goldenScenarios() []goldenScenario {
	base := Config{
		RateLimit: ratelimit.Config{Rate: 600, BurstSeconds: 0.02},
		Shed:      shed.Config{MaxWait: 30 * time.Millisecond},
		Attempts:  attempts.Config{Share: 0.52, MinRequests: 50},
		Trust:     Trust{Boundary: Internal},
	}
	observe, inFlight, mixed, updated, queue := base, base, base, base, base
	observe.RateLimitMode, observe.QuotaMode, observe.ShedMode = spillway.ModeObserve, spillway.ModeObserve, spillway.ModeObserve
	inFlight.MaxInFlight, inFlight.ShedMode = 5, spillway.ModeOff
	inFlight.QuotaMode = spillway.ModeObserve
	mixed.RateLimitMode = spillway.ModeObserve
	queue.RateLimit.QueueDepth, queue.QuotaMode, queue.ShedMode = 5, spillway.ModeOff, spillway.ModeOff
	updated.MaxInFlight, updated.RateLimitMode, updated.QuotaMode, updated.ShedMode = 3, spillway.ModeOff, spillway.ModeObserve, spillway.ModeOff
	return []goldenScenario{
		{name: "enforce", config: base},
		{name: "observe", config: observe},
		{name: "in flight", config: inFlight},
		{name: "mixed", config: mixed},
		{name: "rate limit queue", config: queue},
		{name: "early rejection", config: base, early: true},
		{name: "update", config: base, updates: map[int]Config{100: updated, 190: base}},
	}
}

type goldenScenario struct {
	name    string
	config  Config
	early   bool           // asks RejectAt first
	updates map[int]Config // before a visit
}

// goldenVisits returns requests of four classes. Some have a short deadline, and the clients of
// some leave. All have one customer: the hash of a caller is different in each process.
func goldenVisits() (all []goldenVisit) {
	r := rand.New(rand.NewPCG(5, 8))
	var at time.Duration
	for i := range 250 {
		rate := 400.0
		if i/50%2 == 1 {
			rate = 3000
		}
		at += time.Duration(r.ExpFloat64() / rate * float64(time.Second))
		v := goldenVisit{at: at, takes: time.Duration(r.ExpFloat64()*5e6) + 100*time.Microsecond}
		v.call = spillway.Call{
			Customer: "a", Criticality: spillway.Criticality(r.IntN(4)) - 2, Attempt: int16(r.IntN(2)),
		}
		switch r.IntN(10) {
		case 0:
			v.deadline = time.Duration(r.IntN(int(20 * time.Millisecond)))
		case 1:
			v.leaves = time.Duration(r.IntN(int(20*time.Millisecond))) + 1
		case 2:
			v.outcome = spillway.OutcomeFailed
		}
		all = append(all, v)
	}
	return all
}

type goldenVisit struct {
	at, takes, deadline, leaves time.Duration // the last two: 0 for none
	call                        spillway.Call
	outcome                     spillway.Outcome // 0: served
}

// state is the state of a process that is busy most of the time.
func goldenState(since time.Duration) shed.State {
	s := shed.State{Processors: 2, CPU: 0.9, Utilization: 0.6 + 0.3*math.Sin(since.Seconds()*9)}
	if math.Mod(since.Seconds(), 0.06) > 0.007 {
		s.Runnable = 5
	}
	return s
}

// play returns what the gates decided on each request, in order of time.
func (g goldenScenario) play(t *testing.T) (lines []string) {
	synctest.Test(t, func(t *testing.T) {
		trace := &goldenTrace{start: time.Now()}
		random := func() float64 { return math.Mod(float64(time.Now().UnixNano())*math.Phi, 1) }
		customers := perCustomer(t, 150)
		fix := func(c Config) Config {
			c.Quota, c.Observer, c.Rand = customers, spillway.ObserverFunc(trace.observe), random
			return c
		}
		s := must(t, fix(g.config))
		s.core.State = func(now time.Time) shed.State { return goldenState(now.Sub(trace.start)) }
		s.dispatcher.idle.close()
		s.dispatcher.idle = nap{}
		var all sync.WaitGroup
		for i, v := range goldenVisits() {
			time.Sleep(time.Until(trace.start.Add(v.at)))
			synctest.Wait()
			if c, ok := g.updates[i]; ok {
				if err := s.Update(fix(c)); err != nil {
					t.Fatal(err)
				}
			}
			all.Go(func() { trace.visit(s, v, g.early) })
		}
		all.Wait()
		lines = trace.lines()
	})
	return lines
}

// goldenTrace collects events and rejections.
type goldenTrace struct {
	start time.Time
	mu    sync.Mutex
	says  []goldenEvent
}

type goldenEvent struct {
	at          time.Duration
	short, long string
}

func (g *goldenTrace) add(at time.Time, short, long string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.says = append(g.says, goldenEvent{at.Sub(g.start), short, long})
}

func (g *goldenTrace) observe(e spillway.Event) {
	word := map[spillway.Outcome]string{spillway.OutcomeServed: "+", spillway.OutcomeFailed: "-", spillway.OutcomeAbandoned: "~", spillway.OutcomeNotStarted: "_"}[e.Outcome]
	if e.Rejected {
		word = ":" + e.Reason.String()
	}
	short := e.Policy[:1] + word
	if e.Mode == spillway.ModeObserve {
		short = "(" + short + ")"
	}
	g.add(e.Time, short, fmt.Sprint(short, e.Call.Customer, e.Call.Criticality, e.Latency, e.Reason))
}

// visit makes one request.
func (g *goldenTrace) visit(s *Server, v goldenVisit, early bool) {
	call, ctx := v.call, context.Background()
	if v.deadline > 0 {
		call.Deadline = time.Now().Add(v.deadline)
	}
	if v.leaves > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeoutCause(ctx, v.leaves, context.Canceled)
		defer cancel()
		ctx = noDeadline{ctx}
	}
	var rejection Rejection
	var p Slot
	if early {
		rejection = s.RejectAt(context.Background(), time.Now(), &call, &ratelimit.Caller{})
	}
	if !rejection.Rejected() {
		p, rejection = s.Enter(ctx, call, ratelimit.Caller{})
	}
	if rejection.Rejected() {
		short := fmt.Sprintf("[%v]", rejection.Outcome)
		if rejection.DontRetry {
			short += "!"
		}
		g.add(time.Now(), short, fmt.Sprint(short, call.Customer, rejection.RetryAfter, rejection.AcceptRatio, spillway.Rejection(rejection.Err).Reason))
		return
	}
	outcome := spillway.OutcomeServed
	if v.outcome != 0 {
		outcome = v.outcome
	}
	if pause(ctx, v.takes) != nil {
		outcome = spillway.OutcomeAbandoned
	}
	p.Done(outcome)
}

// noDeadline is a context that ends without an announcement.
type noDeadline struct{ context.Context }

func (noDeadline) Deadline() (time.Time, bool) { return time.Time{}, false }

// lines returns a line for each time at which something was decided, and a hash of all details.
func (g *goldenTrace) lines() (all []string) {
	slices.SortFunc(g.says, func(a, b goldenEvent) int {
		if a.at != b.at {
			return int(a.at - b.at)
		}
		return strings.Compare(a.long, b.long)
	})
	h := fnv.New64a()
	last := time.Duration(-1)
	for _, e := range g.says {
		fmt.Fprintln(h, e.at, e.long)
		if e.at != last {
			all = append(all, fmt.Sprintf("%.3f", e.at.Seconds()*1e3))
		}
		all[len(all)-1] += " " + e.short
		last = e.at
	}
	return append(all, fmt.Sprintf("hash %x", h.Sum64()))
}

// TestGoldenDecisions: on the same requests, the gates decide as they did when the golden file was
// written. Run it with -update after a change of the decisions that is intended.
func TestGoldenDecisions(t *testing.T) {
	var all []string
	for _, g := range goldenScenarios() {
		all = append(append(all, "# "+g.name), g.play(t)...)
	}
	text := strings.Join(all, "\n") + "\n"
	if *update {
		if err := os.WriteFile(goldenFile, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(goldenFile)
	if err != nil {
		t.Fatal(err)
	}
	for i, line := range strings.Split(strings.TrimSuffix(string(want), "\n"), "\n") {
		if i >= len(all) || all[i] != line {
			t.Fatalf("line %d: %s\nwant %s\n(%d lines, want %d)", i+1, strings.Join(all[i:min(i+1, len(all))], ""), line, len(all), strings.Count(string(want), "\n"))
		}
	}
}
