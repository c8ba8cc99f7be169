package mongotune

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"slices"
	"time"

	"github.com/seed90641741/spillway/internal/invalid"
	"github.com/seed90641741/spillway/tune"
)

// A Controller moves the ingress limits of one server until its context ends, and then
// restores what it found. Make one with [NewController], and call [Controller.Run]
// once.
type Controller struct {
	config  ControllerConfig
	signals []signal
	limits  []*controlled
	exempt  exemption
	failing bool
}

// controlled is one limit and what moves it.
type controlled struct {
	server *Server
	name   string
	tuner  *tune.Tuner
	found  Settings // what to restore
	wrote  float64  // 0: nothing was set
	again  bool     // the limit has to be set
	// restarted says that the server may have been restarted, and what it has now is not known yet.
	restarted bool
}

// NewController looks whether the server has the limiters and reports the signals, and
// returns a Controller. It changes nothing. The error is [ErrUnsupported] for a server
// without the limiters, or names the field of c that is wrong.
func NewController(ctx context.Context, c ControllerConfig) (*Controller, error) {
	if c.Reaction == 0 {
		c.Reaction = 500 * time.Millisecond
	}
	if c.Logger == nil {
		c.Logger = slog.Default()
	}
	k := &Controller{config: c, signals: c.Targets.signals()}
	switch {
	case c.Requests == nil && c.Connections == nil:
		return nil, invalid.Field("mongotune", "Requests", nil, "set where Connections is nil")
	case len(k.signals) == 0:
		return nil, invalid.Field("mongotune", "Targets", c.Targets, "above 0 in at least one field")
	case c.Reaction < 100*time.Millisecond || c.Reaction > time.Hour:
		return nil, invalid.Field("mongotune", "Reaction", c.Reaction, "100ms to 1h")
	}
	for _, l := range []struct {
		limit  Limit
		name   string
		bounds *Bounds
		zero   Bounds
	}{
		{Requests, "requests", c.Requests, Bounds{10_000, 10, 1e6}},
		{Connections, "connections", c.Connections, Bounds{1000, 5, 1e5}},
	} {
		if l.bounds == nil {
			continue
		}
		one, err := k.control(ctx, l.limit, *l.bounds, l.zero)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", l.name, err)
		}
		one.name = l.name
		k.limits = append(k.limits, one)
	}
	return k, k.reported(ctx)
}

// control makes what moves one limit.
func (k *Controller) control(ctx context.Context, limit Limit, b, zero Bounds) (*controlled, error) {
	s, err := New(ctx, Config{Client: k.config.Client, Limit: limit, Enable: true, BurstSeconds: k.config.BurstSeconds})
	if err != nil {
		return nil, err
	}
	one := &controlled{server: s}
	if one.found, err = s.Settings(ctx); err != nil {
		return nil, err
	}
	if b.Start == 0 && one.found.Enabled && one.found.Rate < 1e6 {
		b.Start = one.found.Rate
	}
	for _, f := range []struct{ to, from *float64 }{{&b.Start, &zero.Start}, {&b.Min, &zero.Min}, {&b.Max, &zero.Max}} {
		if *f.to == 0 {
			*f.to = *f.from
		}
	}
	t := tune.Config{
		Limit: b.Start, Min: min(b.Min, b.Start), Max: max(b.Max, b.Start),
		Reaction: k.config.Reaction, Stale: max(30*time.Second, 10*k.config.Reaction), Enforce: k.config.Enforce,
	}
	for _, s := range k.signals {
		t.Signals = append(t.Signals, s.Signal)
	}
	one.tuner, err = tune.New(t)
	return one, err
}

// reported checks that the server reports each signal. What is counted over time needs
// two readings.
func (k *Controller) reported(ctx context.Context) error {
	s := k.limits[0].server
	if _, err := s.Read(ctx, time.Now()); err != nil {
		return err
	}
	select {
	case <-time.After(50 * time.Millisecond):
	case <-ctx.Done():
		return ctx.Err()
	}
	r, err := s.Read(ctx, time.Now())
	if err != nil {
		return err
	}
	for _, signal := range k.signals {
		if math.IsNaN(signal.of(&r)) {
			return fmt.Errorf("mongotune: the server does not report %s: use other targets", signal.Name)
		}
	}
	return nil
}

// restoreTime is how long a server that is down may take to come back, so that what was
// found can be restored.
const restoreTime = 10 * time.Second

// Run moves the limits until ctx ends, and then restores what it found. The error says
// why the limits cannot be set at all, or what could not be restored.
func (k *Controller) Run(ctx context.Context) error {
	if k.config.Enforce {
		if err := k.begin(ctx); err != nil {
			if ctx.Err() != nil {
				err = nil // it ends before all limits were set, which are restored as ever
			}
			return errors.Join(err, k.restore())
		}
	}
	ticks := time.NewTicker(k.config.Reaction / 2)
	defer ticks.Stop()
	for {
		select {
		case <-ctx.Done():
			return k.restore()
		case now := <-ticks.C:
			k.step(ctx, now)
		}
	}
}

// begin sets the limits for the first time, so that parameters that cannot be set are
// an error and not a surprise under overload.
func (k *Controller) begin(ctx context.Context) error {
	if err := k.exempt.begin(ctx, k.config); err != nil {
		k.config.Logger.Warn("cannot exempt the tuner from the limiter of requests", "app_name", k.config.AppName, "error", err)
	}
	for _, l := range k.limits {
		if err := l.set(ctx); err != nil {
			return fmt.Errorf("mongotune: the limit of %s cannot be set: %w", l.name, err)
		}
		k.config.Logger.Info("limit taken over", "limit", l.name, "from", l.found.String(), "to", l.tuner.Limit())
	}
	return nil
}

// step reads once for each limit, and moves what has to be moved.
func (k *Controller) step(ctx context.Context, now time.Time) {
	ask, cancel := context.WithTimeout(ctx, k.config.Reaction)
	defer cancel()
	for _, l := range k.limits {
		r, err := l.server.Read(ask, now)
		if ctx.Err() != nil {
			return
		}
		k.report(err)
		used, values := k.values(l, &r, err)
		m, moved := l.tuner.Read(now, used, values...)
		if moved {
			k.config.Logger.Info(m.String(), "limit", l.name, "from", m.From, "to", m.To, "rule", m.Rule.String(),
				"signal", m.Signal.Name, "applied", m.Applied)
		}
		if err != nil || !k.config.Enforce {
			continue
		}
		l.restarted = l.restarted || r.Restarted
		if l.restarted && !k.restarted(ask, l) {
			continue
		}
		if moved && m.Applied || l.again {
			l.again = k.put(ask, l) != nil
		}
	}
}

// ofConnections is the least share of new connections in the work of the server for the
// limit of connections to be lowered. Below it, connections are not what overloads the
// server: one costs about the same as a few operations.
const ofConnections = 0.1

// values returns the arguments of a tuner: the use of its limit, and the signals.
func (k *Controller) values(l *controlled, r *Reading, err error) (used float64, values []float64) {
	values = make([]float64, len(k.signals))
	overloaded := false
	for i, s := range k.signals {
		if values[i] = s.of(r); err != nil {
			values[i] = math.NaN()
		}
		overloaded = overloaded || values[i] > s.Target
	}
	switch {
	case err != nil:
		return math.NaN(), values
	case overloaded && l.server.config.Limit == Requests: // what it can do is what it completes
		return math.Max(r.Used, r.Completed), values
	case overloaded && r.Used < ofConnections*(r.Used+r.Completed):
		for i, s := range k.signals {
			values[i] = s.Target // others are at fault
		}
	}
	return r.Used, values
}

// restarted takes note of what a server was started with, before the limit is set again. It reports whether that
// is known: a server that has just been started may reject the question.
func (k *Controller) restarted(ctx context.Context, l *controlled) (known bool) {
	found, err := l.server.Settings(ctx)
	if err != nil {
		k.config.Logger.Warn("the server may have been restarted, and does not say with which limit; it is asked again", "limit", l.name, "error", err)
		return false
	}
	l.restarted, l.again = false, true
	if found.Rate == l.wrote && found.Enabled { // ours: it was not restarted
		return true
	}
	l.found, l.wrote = found, 0
	k.config.Logger.Warn("the server was restarted, its limit is set again", "limit", l.name, "found", found.String(), "to", l.tuner.Limit())
	if err := k.exempt.begin(ctx, k.config); err != nil {
		k.config.Logger.Warn("cannot exempt the tuner from the limiter of requests", "app_name", k.config.AppName, "error", err)
	}
	return true
}

// report logs that the server cannot be asked, and that it can be again.
func (k *Controller) report(err error) {
	switch failing := err != nil; {
	case failing && !k.failing:
		k.config.Logger.Error("the server cannot be asked, limits stay", "error", err)
		k.failing = true
	case !failing && k.failing:
		k.config.Logger.Info("the server answers again")
		k.failing = false
	}
}

func (k *Controller) put(ctx context.Context, l *controlled) error {
	err := l.set(ctx)
	if err != nil {
		k.config.Logger.Error("the limit cannot be set, it is tried again", "limit", l.name, "to", l.tuner.Limit(), "error", err)
	}
	return err
}

func (l *controlled) set(ctx context.Context) error {
	l.wrote = math.Round(l.tuner.Limit()) // also if no answer comes: it may have been done
	return l.server.Set(ctx, l.tuner.Limit())
}

// restore sets what was found; a server that is down has the time of a restart.
func (k *Controller) restore() error {
	ctx, cancel := context.WithTimeout(context.Background(), restoreTime)
	defer cancel()
	var all error
	for _, l := range slices.Backward(k.limits) {
		if l.wrote == 0 {
			continue
		}
		err := untilDone(ctx, func(ctx context.Context) error { return l.server.Restore(ctx, l.found) })
		if err != nil {
			all = errors.Join(all, fmt.Errorf("mongotune: %s could not be restored to %s, set it by hand: %w", l.name, l.found.String(), err))
			continue
		}
		k.config.Logger.Info("limit restored", "limit", l.name, "to", l.found.String())
	}
	if err := untilDone(ctx, k.exempt.end); err != nil {
		all = errors.Join(all, fmt.Errorf("mongotune: %s could not be restored: %w", exemptions, err))
	}
	return all
}

// untilDone calls f until it succeeds or ctx ends: a server that rejects it may be
// overloaded.
func untilDone(ctx context.Context, f func(context.Context) error) error {
	for {
		once, cancel := context.WithTimeout(ctx, 2*time.Second)
		err := f(once)
		cancel()
		if err == nil {
			return nil
		}
		select {
		case <-ctx.Done():
			return err
		case <-time.After(200 * time.Millisecond):
		}
	}
}
