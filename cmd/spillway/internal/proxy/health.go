package proxy

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	"github.com/seed90641741/spillway/cmd/spillway/internal/config"
)

// Endpoints that fail their checks get nothing as long as there are others. When all
// do, it is more likely that the checks are wrong, or that all are short of time, than
// that nobody is there: then all get their share as if there were no checks, which
// Envoy calls panic mode. The first check of an endpoint decides at once, the later
// ones after as many of a kind in a row as their threshold says. Checks of many proxies
// do not stay in step: each wait is longer or shorter by a random part.
//
// A check has a connection of its own, which is closed after it, so that it takes no
// place of a request and notices when no more connections are accepted.

// Health is what checks say of an endpoint.
type Health uint8

// The values of Health.
const (
	Unchecked Health = iota // there are no checks, or none has ended yet
	Healthy
	Unhealthy
)

// String returns the name of h in small letters.
func (h Health) String() string {
	switch h {
	case Unchecked:
		return "unchecked"
	case Healthy:
		return "healthy"
	case Unhealthy:
		return "unhealthy"
	}
	return "invalid"
}

// health is what is known of one endpoint by its checks.
type health struct {
	state  atomic.Uint32 // a Health
	checks atomic.Uint64 // that have ended
	bad    atomic.Uint64 // of those
	reason atomic.Pointer[string]
	row    int // of checks that contradict the state; of its checker alone
}

// is returns what the checks say.
func (h *health) is() Health { return Health(h.state.Load()) }

// take takes in how a check has ended, and reports whether that changed something.
func (h *health) take(c *config.Health, err error) (changed bool) {
	h.checks.Add(1)
	found, threshold := Healthy, c.HealthyThreshold
	if err != nil {
		found, threshold = Unhealthy, c.UnhealthyThreshold
		h.bad.Add(1)
		h.reason.Store(new(err.Error()))
	}
	switch was := h.is(); {
	case was == found:
		h.row = 0
		return false
	case was == Unchecked:
	default:
		if h.row++; h.row < threshold {
			return false
		}
	}
	h.row = 0
	h.state.Store(uint32(found))
	return true
}

// A checker checks the endpoints of a cluster until it is stopped.
type checker struct {
	config  *config.Health
	cluster string
	logger  *slog.Logger
	probe   func(ctx context.Context, address string) error
	cancel  context.CancelFunc
	running sync.WaitGroup
}

func newChecker(x *config.Cluster, secured *tls.Config) *checker {
	return &checker{config: x.Health, cluster: x.Name, probe: newProbe(x, secured), cancel: func() {}}
}

// start begins to check all of them.
func (c *checker) start(ctx context.Context, logger *slog.Logger, all []*endpoint) {
	c.logger = logger
	ctx, c.cancel = context.WithCancel(ctx)
	for _, x := range all {
		c.running.Go(func() { c.follow(ctx, x) })
	}
}

func (c *checker) stop() {
	c.cancel()
	c.running.Wait()
}

// follow checks one endpoint.
func (c *checker) follow(ctx context.Context, x *endpoint) {
	wait := time.NewTimer(0)
	defer wait.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-wait.C:
		}
		err := c.check(ctx, x.address)
		if ctx.Err() != nil {
			return
		}
		if x.health.take(c.config, err) {
			c.tell(x, err)
		}
		wait.Reset(jittered(c.config.Interval, c.config.Jitter))
	}
}

// jittered returns d, more or less by a random part that is at most share.
func jittered(d time.Duration, share float64) time.Duration {
	return d + time.Duration(float64(d)*max(0, share)*(2*rand.Float64()-1))
}

func (c *checker) check(ctx context.Context, address string) error {
	ctx, cancel := context.WithTimeout(ctx, c.config.Timeout)
	defer cancel()
	err := c.probe(ctx, address)
	if errors.Is(err, context.DeadlineExceeded) {
		return fmt.Errorf("no answer within %v", c.config.Timeout)
	}
	return err
}

func (c *checker) tell(x *endpoint, err error) {
	if err != nil {
		c.logger.Warn("an endpoint is unhealthy", "cluster", c.cluster, "endpoint", x.address, "error", err)
		return
	}
	c.logger.Info("an endpoint is healthy", "cluster", c.cluster, "endpoint", x.address)
}
