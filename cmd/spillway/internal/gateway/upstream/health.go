package upstream

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"sync/atomic"
	"time"

	"github.com/seed90641741/spillway/cmd/spillway/internal/gateway/config"
)

// Endpoints that fail their checks get no requests while there are others. If all fail, the
// checks are ignored (panic mode in Envoy), as it is more likely that the checks are wrong, or
// that all endpoints are overloaded, than that all are down. The first check of an endpoint
// decides at once, later checks after as many equal results in a row as their threshold says.
// The intervals are jittered, so that many proxies do not check at the same time.
//
// An endpoint that has served requests since the last check is not checked, as the requests
// show that it is healthy. A healthy endpoint without requests is checked once per
// no_traffic_interval, or less often if there are many endpoints. Checks have one connection
// to each endpoint. It does not count against the connection limit, and is kept from one check
// to the next, but not over a no_traffic_interval.

// Health is the health of an endpoint by its checks.
type Health uint8

// The values of Health.
const (
	Unchecked Health = iota // there are no checks, or none has ended yet
	Healthy
	Unhealthy
)

// String returns the name of h in small letters.
func (h Health) String() string {
	return [...]string{"unchecked", "healthy", "unhealthy"}[h]
}

// health is the state of the checks of one endpoint.
type health struct {
	state   atomic.Uint32 // a Health
	checks  atomic.Uint64 // that have ended
	skipped atomic.Uint64 // that were not made, as requests were served
	reason  atomic.Pointer[string]
	rare    atomic.Bool   // the checker waits long, as there are no requests
	wake    chan struct{} // ends that
	row     int           // of checks that contradict the state; of its checker alone
}

// is returns the health by the checks.
func (h *health) is() Health { return Health(h.state.Load()) }

// take records the result of a check, and reports whether the health has changed.
func (h *health) take(c *config.Health, err error) (changed bool) {
	h.checks.Add(1)
	found, threshold := Healthy, c.HealthyThreshold
	if err != nil {
		found, threshold = Unhealthy, c.UnhealthyThreshold
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

// A checker checks the endpoints of a cluster.
type checker struct {
	endpoints *endpoints
	config    *config.Health
	probe     func(ctx context.Context, address string) error
}

func newChecker(e *endpoints, x *config.Cluster, secured *tls.Config) *checker {
	e.checks = newCheckTransport(secured, x.Health.Type == "grpc" || x.Protocol == "http2", x.Health.Interval)
	c := &checker{endpoints: e, config: x.Health}
	switch x.Health.Type {
	case "tcp":
		c.probe = connects
	case "grpc":
		c.probe = c.grpc
	default:
		c.probe = c.http
	}
	return c
}

// follow is a [watch]: it checks an endpoint repeatedly.
func (c *checker) follow(ctx context.Context, logger *slog.Logger, x *endpoint) {
	wait := time.NewTimer(0)
	defer wait.Stop()
	last := int64(0) // when the last wait began, since the start of the set
	for first := true; ; {
		select {
		case <-ctx.Done():
			return
		case <-x.health.wake: // it gets requests again
			wait.Reset(jittered(c.config.Interval, c.config.Jitter))
			continue
		case <-wait.C:
		}
		if x.health.is() == Healthy && x.served.Load() > last {
			x.health.skipped.Add(1)
		} else if !c.judge(ctx, logger, x) {
			return
		}
		last = int64(time.Since(c.endpoints.set.Start()))
		d := c.interval(x, last)
		if first { // endpoints that were there from the start are not checked all at once again
			d = time.Duration(rand.Float64() * float64(d))
		}
		first = false
		wait.Reset(jittered(d, c.config.Jitter))
	}
}

// judge checks an endpoint once, and reports whether the check was completed.
func (c *checker) judge(ctx context.Context, logger *slog.Logger, x *endpoint) bool {
	err := c.check(ctx, x.address)
	if ctx.Err() != nil {
		return false
	}
	if !x.health.take(c.config, err) {
		return true
	}
	c.endpoints.set.SetHealthy(time.Now(), x.Endpoint, err == nil)
	if err != nil {
		logger.Warn("an endpoint is unhealthy", "error", err)
	} else {
		logger.Info("an endpoint is healthy")
	}
	return true
}

// idleChecks is the maximum number of checks per second of a cluster for endpoints without
// requests. A check opens a connection, which takes about a millisecond of a processor.
const idleChecks = 5

// interval returns how long to wait until the next check. An endpoint that gets no
// requests is checked rarely if it is healthy, or if its cluster gets none either.
func (c *checker) interval(x *endpoint, at int64) time.Duration {
	rare := max(c.config.Interval, c.config.NoTrafficInterval, time.Duration(len(c.endpoints.all))*time.Second/idleChecks)
	idle := func(last int64) bool { return last == 0 || at-last > int64(rare) }
	settled := x.health.row == 0 // no check contradicts the state
	is := settled && idle(x.asked.Load()) && (x.health.is() == Healthy || idle(c.endpoints.requested()))
	if x.health.rare.Store(is); is {
		return rare
	}
	return c.config.Interval
}

// rouse ends a wait that is long because there were no requests.
func (h *health) rouse() {
	if h.rare.Load() && h.rare.CompareAndSwap(true, false) {
		select {
		case h.wake <- struct{}{}:
		default: // there is a message already
		}
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
