package load

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net"
	"net/http"
	"sync"
	"time"

	"golang.org/x/time/rate"

	"github.com/seed90641741/spillway"
	"github.com/seed90641741/spillway/cmd/spillway/internal/lab/process"
)

// A Service is a service of the user's own, and the load that it gets. The tags are for the command line, which has the defaults.
type Service struct {
	Target         string        `placeholder:"URL" help:"Send load to a service of your own in place of a backend of the drill. It must have a loopback address, unless --i-own-this-target is set."`
	IOwnThisTarget bool          `name:"i-own-this-target" help:"The target is yours, or you may load it: allow addresses that are not loopback."`
	Rate           float64       `default:"100" placeholder:"N" help:"Maximum requests per second, up to 10000 (default ${default})."`
	Duration       time.Duration `default:"10s" placeholder:"DURATION" help:"Duration of the load, up to 60s (default ${default})."`
	Workers        int           `default:"16" placeholder:"N" help:"Maximum requests in flight, up to 1000: each worker waits for its answer (default ${default})."`
	Timeout        time.Duration `default:"1s" placeholder:"DURATION" help:"Timeout of a request, up to 60s (default ${default})."`
}

// Bounds of the load on a Service.
const (
	maxRate     = 10_000
	maxDuration = time.Minute
	maxWorkers  = 1000
)

func wrongf(flag, format string, args ...any) error {
	return &process.UsageError{Flag: flag, Problem: fmt.Sprintf(format, args...)}
}

func (c *Service) check() error {
	switch {
	case !(c.Rate > 0 && c.Rate <= maxRate): // also finds NaN
		return wrongf("rate", "is %v, must be above 0 and at most %d", c.Rate, maxRate)
	case c.Duration < time.Millisecond || c.Duration > maxDuration:
		return wrongf("duration", "is %v, must be 1ms to %v", c.Duration, maxDuration)
	case c.Workers < 1 || c.Workers > maxWorkers:
		return wrongf("workers", "is %d, must be 1 to %d", c.Workers, maxWorkers)
	case c.Timeout < time.Millisecond || c.Timeout > maxDuration:
		return wrongf("timeout", "is %v, must be 1ms to %v", c.Timeout, maxDuration)
	}
	return nil
}

// Run sends the load until the duration is over or ctx ends, and returns what was answered.
// The error is a [*process.UsageError] if the load is not allowed. Shares of the four classes follow
// from mix, from the lowest class on.
func (c *Service) Run(ctx context.Context, mix []float64) (*Result, error) {
	if err := c.check(); err != nil {
		return nil, err
	}
	g, err := c.resolve(ctx, net.DefaultResolver.LookupNetIP)
	if err != nil {
		return nil, err
	}
	t := g.transport(c.Workers)
	defer t.CloseIdleConnections()
	return c.drive(ctx, g.url.String(), t, mix), nil
}

// drive runs the workers. Each waits for its answer before it sends again: a closed loop
// cannot pile up requests at a target that is slow.
func (c *Service) drive(ctx context.Context, url string, t http.RoundTripper, mix []float64) *Result {
	user := ctx
	ctx, cancel := context.WithTimeout(ctx, c.Duration)
	defer cancel()
	start := time.Now()
	pace := rate.NewLimiter(rate.Limit(c.Rate), 1)
	r := &Result{Target: url, Rate: c.Rate, Workers: c.Workers, Classes: make([]Class, spillway.Criticalities)}
	for i := range r.Classes {
		r.Classes[i].Class = (spillway.Sheddable + spillway.Criticality(i)).String()
	}
	var wg sync.WaitGroup
	for range c.Workers {
		wg.Go(func() {
			for pace.Wait(ctx) == nil {
				r.countSent()
				class := ClassOf(mix, rand.Float64())
				before := time.Now()
				answer, why := c.call(ctx, t, url, class)
				if ctx.Err() != nil {
					return // cut off by the end, and no fault of the target
				}
				r.add(class, answer, time.Since(before), why)
			}
		})
	}
	wg.Wait()
	r.Interrupted = user.Err() != nil
	r.finish(time.Since(start))
	return r
}
