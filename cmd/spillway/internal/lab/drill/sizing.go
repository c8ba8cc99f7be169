package drill

import (
	"cmp"
	"context"
	"fmt"
	"net/http"
	"time"

	"github.com/seed90641741/spillway"
	"github.com/seed90641741/spillway/cmd/spillway/internal/lab/process"
)

// The shares of the processors that may be spent on everything but the work of the backend, in the protected run.
const (
	// callerShare is of the processors of the generator and the callers, and of that of a backend that does not burn its
	// own. The idle part absorbs what the machine does for others.
	callerShare = 1.0 / 3
	// backendShare is of the processor of a backend that burns it: what rejections take is missing in the goodput.
	backendShare = 1.0 / 20
)

// mostSpacing bounds the time between two calls at the capacity: with more, a window of the recovery has too few calls to be judged.
const mostSpacing = 8 * time.Millisecond

// leastSpacing is the other bound. It is longer where the backend burns processor time, which interrupts and the other
// work of a call take away.
func (c Config) leastSpacing() time.Duration {
	if c.Backend == process.KindBlocking {
		return 2 * time.Millisecond
	}
	return 3 * time.Millisecond
}

// backlog is the default deadline in spacings: how many calls an in-time backlog has.
const backlog = 100

// costs are what calls cost on this machine, without the work of the backend.
type costs struct {
	offered   time.Duration // a call from the generator that its caller rejects
	rejection time.Duration // a call that is sent and rejected, where callers and backend do nothing else
}

// spacing returns the least time between two calls at the capacity for which the costs of the protected run fit into their
// shares of the processors. Callers and backend may have one processor together.
func (x costs) spacing(c Config, callers int, shared bool) time.Duration {
	callerSide := c.Overload*float64(x.offered) + c.sent()*float64(x.rejection)
	backendSide := (c.sent() - 1) * float64(x.rejection)
	share := backendShare
	if c.Backend == process.KindBlocking {
		share = callerShare
	}
	if shared {
		return time.Duration((callerSide + backendSide) / share)
	}
	return time.Duration(max(callerSide/callerShare/float64(callers), backendSide/share))
}

// sent returns how many calls the callers of the protected run send for each that the backend can answer.
func (c Config) sent() float64 {
	if callers, _ := Protects(c.Protect); callers {
		return min(c.Overload, promiseSent)
	}
	return c.Overload
}

// sized returns c with the work of a call and the deadline where they are not set.
func (c Config) sized(spacing time.Duration) Config {
	c.Service = cmp.Or(c.Service, spacing*time.Duration(c.parallel()))
	c.Deadline = cmp.Or(c.Deadline, backlog*c.Service/time.Duration(c.parallel()))
	return c
}

// parallel returns how many calls the backend works on at once.
func (c Config) parallel() int {
	if c.Backend == process.KindBlocking {
		return process.Slots
	}
	return 1
}

const (
	offeredCalls = 2000 // less than maxOpenCalls: they are sent at once
	rejectedFor  = 400 * time.Millisecond
)

// size measures what calls cost on this machine, and chooses the work of a call by it where the flags do not.
func (d *drill) size(ctx context.Context) error {
	var x costs
	if d.config.Service == 0 {
		fmt.Fprintln(d.progress, "measuring what a call costs on this machine")
		var err error
		if x.offered, err = d.offeredCost(ctx); err != nil {
			return err
		}
		if x.rejection, err = d.rejectionCost(ctx); err != nil {
			return err
		}
	}
	m := &d.result.Machine
	spacing := x.spacing(d.config, m.CallerCPUs, m.CPUs == 1)
	d.config = d.config.sized(min(max(spacing, d.config.leastSpacing()), mostSpacing))
	s := d.config.settings()
	s.OfferedUS, s.RejectionUS = 1000*milliseconds(x.offered), 1000*milliseconds(x.rejection)
	s.Saturated = spacing > mostSpacing
	d.result.Settings = s
	return d.config.Validate()
}

// offeredCost measures the generator, with callers that reject all.
func (d *drill) offeredCost(ctx context.Context) (time.Duration, error) {
	rejects := tripAs(func(*http.Request) (*http.Response, error) { return nil, spillway.ErrRejected })
	probe := newProbe(rejects, d.config.length())
	callers, err := d.callers(side{protect: d.config.Protect}, "http://127.0.0.1/", probe)
	if err != nil {
		return 0, err
	}
	calls := make([]arrival, offeredCalls)
	for i := range calls {
		calls[i].client = i % len(callers)
	}
	start := time.Now()
	probe.start = start
	newGenerator(callers, time.Minute, time.Minute, calls).run(ctx, start)
	return time.Since(start) / offeredCalls, context.Cause(ctx)
}

// rejectionCost measures a backend, or a proxy, that rejects all.
func (d *drill) rejectionCost(ctx context.Context) (time.Duration, error) {
	b := process.Backend{Port: d.config.Port, Protect: true, Reject: true, Rounds: 1, Service: time.Millisecond}
	p, err := process.StartBackend(ctx, &d.cpus, b)
	if err != nil {
		return 0, err
	}
	defer p.Stop()
	if d.config.Protect == ProtectProxy {
		front, err := process.StartProxy(ctx, p, true)
		if err != nil {
			return 0, err
		}
		defer front.Stop()
		p = front
	}
	loop, err := closedLoop(ctx, p, d.config.wire(), rejectedFor)
	if err != nil {
		return 0, err
	}
	return time.Duration(float64(time.Second) / loop.ended), nil
}

// tripAs is a func as an [http.RoundTripper].
type tripAs func(*http.Request) (*http.Response, error)

func (t tripAs) RoundTrip(r *http.Request) (*http.Response, error) { return t(r) }
