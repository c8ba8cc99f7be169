// Package drill overloads a real HTTP backend, once without Spillway and once with it, and
// compares the two runs.
//
// # Method
//
// The backend is a child process with one processor and a plain net/http handler
// that does the same amount of work for each call. How much that is follows from what calls cost on this machine: generator,
// callers and rejections need at most a third of the callers' processors and a twentieth of the backend's. With one
// processor for all, a call holds a slot in place of a processor. The capacity C is measured in a
// closed loop. Then the offered load is 0.5 C, 10 C in the step, and 0.5 C again, in an
// open loop: calls are sent at the times of a Poisson process made from a seed, whether
// or not earlier calls were answered, and latency counts from the intended send time.
// Both runs get the same arrival times and classes, a new backend that does the same
// work, and the same transport. The speed of a machine changes, so goodput is compared with the
// capacity as measured right before and right after the protected run.
//
// If a check fails and the machine was disturbed, the protected run and the capacity after it are
// measured once more. The machine was disturbed if something took the backend's processor, if that became
// slower, if the capacity changed, or if calls were sent late.
//
// The protected part in the protected run can be selected. With the callers alone, their
// in-flight limit bounds the queue at the backend. With the server alone, it rejects the
// excess load, and the callers are the same as in the other run. With both, the server
// bounds its queue, and the callers throttle themselves by its rejections. With a proxy,
// neither uses Spillway: "spillway proxy" runs between them, as a separate process on the
// processors of the callers. Its cost shows as late calls, and the backend keeps the
// processor with which its capacity was measured.
//
// A retry storm is another scenario: the offered load is 0.8 C, and instead of the step
// the backend stops for a moment. Without protection it may never recover: calls that time
// out are retried, so the load stays above the capacity while calls time out.
//
// In the degradation scenario, which is a step of load too, the protected server asks
// for the level of degradation of each request, and answers with a third of the work
// while there is one. The capacity is that of full answers.
//
// # What counts
//
// A call is good if it was answered 2xx within the deadline. Goodput during the step is the
// number of good calls whose intended send lies in the step, divided by its length. A call
// that the generator could not send before its deadline is dropped and counts as offered,
// so a slow generator makes the result worse, never better.
package drill

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"runtime"
	"runtime/debug"
	"slices"
	"sync"
	"time"

	"github.com/seed90641741/spillway"
	"github.com/seed90641741/spillway/cmd/spillway/internal/lab/process"
)

// A drill is one drill while it runs.
type drill struct {
	config   Config
	rounds   int // work of one call at the backend; 0: not calibrated yet
	cpus     process.CPUs
	result   *Result
	progress io.Writer
}

// Run runs the drill and writes lines of progress. If ctx ends, it returns the measurements
// so far, marked as interrupted. The error is a [*process.UsageError] for an invalid c, and another
// error for a problem of this machine. No process is left behind.
func (c Config) Run(ctx context.Context, progress io.Writer) (*Result, error) {
	if err := c.Validate(); err != nil {
		return nil, err
	}
	c = c.withDefaults()
	defer debug.SetGCPercent(debug.SetGCPercent(process.GCPercent))
	if c.Backend == backendAuto {
		c.Backend = backendFor(runtime.NumCPU())
	}
	// One processor is reserved for the backend: callers on the same processor would
	// compete with it.
	callers := max(1, runtime.NumCPU()-1)
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(callers))

	cpus := process.Separate()
	defer cpus.End()

	d := &drill{config: c, progress: progress, cpus: cpus, result: &Result{
		Started:  time.Now(),
		Machine:  Machine{runtime.Version(), runtime.GOOS, runtime.GOARCH, runtime.NumCPU(), callers},
		Settings: c.settings(),
	}}
	err := d.run(ctx)
	if err != nil && ctx.Err() == nil {
		return nil, err
	}
	d.result.Interrupted = err != nil
	d.result.conclude()
	return d.result, nil
}

func (d *drill) run(ctx context.Context) error {
	if err := d.size(ctx); err != nil {
		return err
	}
	if err := d.capacity(ctx); err != nil {
		return err
	}
	r := d.result
	calls := schedule(d.config.Seed, r.Settings.Phases, d.config.Mix, d.config.Clients)
	var err error
	if r.Without, err = d.offerTo(ctx, side{"[1/2] without", ProtectNone}, calls); err != nil {
		return err
	}
	if r.CapacityBeforeRPS, r.WorkBefore, err = d.measure(ctx); err != nil {
		return err
	}
	if err = d.protected(ctx, "[2/2] with   ", calls); err != nil || r.Inconclusive == "" {
		return err
	}
	r.Repeated, r.CapacityBeforeRPS, r.WorkBefore = r.Inconclusive, r.CapacityAfterRPS, r.WorkAfter
	fmt.Fprintf(d.progress, "the run with Spillway is repeated: %s\n", r.Repeated)
	return d.protected(ctx, "[2/2] again  ", calls)
}

// protected makes the run with Spillway, measures the capacity after it, and judges the run.
func (d *drill) protected(ctx context.Context, name string, calls []arrival) (err error) {
	r := d.result
	if r.With, err = d.offerTo(ctx, side{name, d.config.Protect}, calls); err != nil {
		return err
	}
	if r.CapacityAfterRPS, r.WorkAfter, err = d.measure(ctx); err != nil {
		return err
	}
	r.CapacityRPS = (r.CapacityBeforeRPS + r.CapacityAfterRPS) / 2
	for _, run := range []*Run{r.Without, r.With} {
		run.GoodputRatio = run.GoodputRPS / r.CapacityRPS
	}
	r.conclude()
	return nil
}

// capacity measures the backend and derives the offered load from it.
func (d *drill) capacity(ctx context.Context) error {
	fmt.Fprintf(d.progress, "measuring the capacity of the backend; a call %s\n", d.result.Settings.Work())
	c, slowdown, err := d.measure(ctx)
	if err != nil {
		return err
	}
	d.result.CapacityRPS, d.result.CapacityBeforeRPS, d.result.WorkBefore = c, c, slowdown
	s := &d.result.Settings
	s.Phases = d.config.phases(c)
	s.MaxInFlight, s.MaxInFlightRule = d.config.inFlightLimit(c)
	s.Connections = d.config.Clients * share(connections(c, d.config.Deadline), d.config.Clients)
	return nil
}

// measure measures the capacity of the backend, and how long the work of a call took meanwhile. It is called more than once
// because the speed of a machine changes.
func (d *drill) measure(ctx context.Context) (capacity, slowdown float64, err error) {
	p, err := d.start(ctx, false)
	if err != nil {
		return 0, 0, err
	}
	defer p.Stop()
	ctx, unwatch := p.Watch(ctx)
	defer unwatch()
	d.rounds = p.Rounds
	found, err := measureCapacity(ctx, p, d.config.wire())
	if err != nil {
		return 0, 0, err
	}
	fmt.Fprintf(d.progress, "capacity %.0f/s\n", found.answered)
	return found.answered, found.work, nil
}

func (d *drill) start(ctx context.Context, protect bool) (*process.Process, error) {
	return process.StartBackend(ctx, &d.cpus, process.Backend{
		Port: d.config.Port, Kind: d.config.Backend, Protect: protect, Degrade: protect && d.config.Scenario == ScenarioDegradation,
		Service: d.config.Service, Rounds: d.rounds, ShedOff: d.config.Off == offShed,
	})
}

// A side is one of the two runs: its name in the lines of progress, and who uses
// Spillway in it.
type side struct{ name, protect string }

// offerTo makes one run with a fresh backend. Unlike elsewhere, there may be both a
// Run and an error: ctx ended.
func (d *drill) offerTo(ctx context.Context, s side, calls []arrival) (*Run, error) {
	_, server := Protects(s.protect)
	p, err := d.start(ctx, server)
	if err != nil {
		return nil, err
	}
	defer p.Stop()
	ctx, unwatch := p.Watch(ctx)
	defer unwatch()
	if s.protect != ProtectProxy {
		return d.offerBy(ctx, s, calls, p, p)
	}
	front, err := process.StartProxy(ctx, p, false)
	if err != nil {
		return nil, err
	}
	defer front.Stop()
	ctx, unwatchFront := front.Watch(ctx)
	defer unwatchFront()
	return d.offerBy(ctx, s, calls, front, p)
}

// offerBy sends the load of a run to front, which is the backend p or a proxy in front
// of it.
func (d *drill) offerBy(ctx context.Context, s side, calls []arrival, front, p *process.Process) (*Run, error) {
	c := &d.config
	if _, err := closedLoop(ctx, front, c.wire(), warmUp); err != nil {
		return nil, err
	}
	below := transportsOf(c.wire(), c.Clients, d.result.Settings.Connections)
	defer below.close()
	probe := newProbe(below, c.length())
	callers, err := d.callers(s, front.URL, probe)
	if err != nil {
		return nil, err
	}
	longest := time.Duration(c.Retries+1) * c.Deadline
	return d.offer(ctx, s.name, newGenerator(callers, c.Deadline, longest, calls), probe, front, p)
}

// callers makes a caller of url for each client, which send through p.
func (d *drill) callers(s side, url string, p *probe) ([]caller, error) {
	c := &d.config
	e := endpoint{&http.Client{Transport: p}, c.wire(), url, c.Deadline}
	if callers, _ := Protects(s.protect); !callers {
		return slices.Repeat([]caller{e.naive(c.Retries)}, c.Clients), nil
	}
	throttle := spillway.ModeEnforce
	if c.Off == offThrottle {
		throttle = spillway.ModeOff
	}
	all, looks := make([]caller, c.Clients), make([]func() float64, c.Clients)
	for i := range all {
		transport, look, err := protect(p, share(d.result.Settings.MaxInFlight, c.Clients), throttle)
		if err != nil {
			return nil, err
		}
		e.client = &http.Client{Transport: transport}
		all[i], looks[i] = e.call, look
	}
	p.look = func() (mean float64) {
		for _, look := range looks {
			mean += look() / float64(len(looks))
		}
		return mean
	}
	return all, nil
}

func (d *drill) offer(ctx context.Context, name string, g *generator, p *probe, front, b *process.Process) (*Run, error) {
	start := time.Now()
	p.start = start
	watching, stop := context.WithCancel(ctx)
	var watchers sync.WaitGroup
	var seen watch
	var page *Page
	processes := []*process.Process{b}
	if front != b && d.cpus == (process.CPUs{}) { // a proxy runs where the callers do
		processes = append(processes, front)
	}
	watchers.Go(func() { p.sample(watching) })
	watchers.Go(func() { d.tell(watching, name, g, start) })
	watchers.Go(func() { seen = d.watch(watching, start, processes...) })
	watchers.Go(func() { page = d.readPage(watching, b, start) })
	watchers.Go(func() { d.disturb(watching, b, start) })
	records := g.run(ctx, start)
	length := d.config.length()
	if ctx.Err() != nil {
		length = min(time.Since(start), length)
	}
	stop()
	watchers.Wait()
	if err := context.Cause(ctx); err != nil && !errors.Is(err, context.Canceled) {
		return nil, err // the backend died
	}
	run := summary(records, p, &d.result.Settings, d.result.CapacityRPS, length)
	run.Taken, run.TakenWorst, run.Page = seen.step, seen.worst, page
	return run, context.Cause(ctx)
}

// disturb makes the outage of a retry storm, in a run that began at start.
func (d *drill) disturb(ctx context.Context, b *process.Process, start time.Time) {
	if d.config.Scenario == ScenarioStorm && sleepUntil(ctx, start.Add(d.config.Calm)) {
		_ = b.Outage(d.config.Step) // fails only if the backend is gone, which is noticed elsewhere
	}
}

// tellEvery is the interval of progress lines.
const tellEvery = 2 * time.Second

// tell writes the progress of g, which began at start, until ctx ends.
func (d *drill) tell(ctx context.Context, name string, g *generator, start time.Time) {
	var offered, answered int64
	for at := tellEvery; at <= d.config.length() && sleepUntil(ctx, start.Add(at)); at += tellEvery {
		o, a := g.reached.Load(), g.answered.Load()
		fmt.Fprintf(d.progress, "%s %3.0f s  %-8s  offered %6.0f/s  answered in time %5.0f/s\n", name, at.Seconds(),
			d.phaseAt(at), float64(o-offered)/tellEvery.Seconds(), float64(a-answered)/tellEvery.Seconds())
		offered, answered = o, a
	}
}

// phaseAt names the phase that at ends or is in.
func (d *drill) phaseAt(at time.Duration) string {
	for _, p := range d.result.Settings.Phases {
		if at <= seconds(p.End) {
			return p.Name
		}
	}
	return ""
}
