// Package tuner lets limits follow what is behind them: it looks at a [Limit] twice in
// each reaction time, asks package tune, sets what that says, and logs each move with
// its reason.
//
// A limit that could not be set is tried again in the next step. The limit is set again once a
// minute, in case another program has changed it or the server was restarted.
package tuner

import (
	"cmp"
	"context"
	"log/slog"
	"reflect"
	"sync"
	"time"

	"github.com/seed90641741/spillway/tune"
)

// A Limit is the limit that a [Tuner] adjusts. While its methods are called, the lock of the [Config]
// is held, and the Tuner has not been stopped.
type Limit interface {
	// Read puts the values of the signals into values, NaN where one is not known,
	// and returns how much of the limit is used, as [tune.Tuner.Read] takes them. All
	// of it is of the time since the last call, which ends at now.
	Read(now time.Time, values []float64) (used float64)
	// Set puts the limit in force.
	Set(limit float64) error
}

// Config is the configuration of a [Tuner].
type Config struct {
	Name   string // of the limit, for the log
	Tune   tune.Config
	Limit  Limit
	Lock   sync.Locker // of what the limit is part of
	Logger *slog.Logger
}

// A Tuner adjusts a limit. It is safe for concurrent use; make one with [Start].
type Tuner struct {
	config  Config
	tuner   *tune.Tuner
	cancel  context.CancelFunc
	values  []float64
	set     float64   // what it was set to, successfully
	at      time.Time // when
	failing bool
}

// Start returns a Tuner that adjusts its limit, in running, until ctx ends or it is stopped; or an error if
// its configuration is invalid.
func Start(ctx context.Context, running *sync.WaitGroup, c Config) (*Tuner, error) {
	engine, err := tune.New(c.Tune)
	if err != nil {
		return nil, err
	}
	reaction := cmp.Or(c.Tune.Reaction, 500*time.Millisecond)
	t := &Tuner{config: c, tuner: engine, set: engine.Limit(), values: make([]float64, len(c.Tune.Signals))}
	ctx, t.cancel = context.WithCancel(ctx)
	running.Go(func() { t.run(ctx, max(reaction/2, time.Millisecond)) })
	return t, nil
}

// Stop ends the Tuner. If the lock is held, the limit is neither read nor set any more.
func (t *Tuner) Stop() { t.cancel() }

// Follows reports whether the Tuner does what a configuration says.
func (t *Tuner) Follows(c tune.Config) bool { return reflect.DeepEqual(t.config.Tune, c) }

func (t *Tuner) run(ctx context.Context, interval time.Duration) {
	ticks := time.NewTicker(interval)
	defer ticks.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticks.C:
			t.step(ctx)
		}
	}
}

func (t *Tuner) step(ctx context.Context) {
	t.config.Lock.Lock()
	defer t.config.Lock.Unlock()
	if ctx.Err() != nil {
		return // what the limit was part of may be gone, and another one in its place
	}
	now := time.Now()
	used := t.config.Limit.Read(now, t.values)
	if m, ok := t.tuner.Read(now, used, t.values...); ok {
		t.tell(m)
	}
	s := t.tuner.Limit()
	if s != t.set || t.failing || !t.at.IsZero() && now.Sub(t.at) >= time.Minute {
		t.put(now, s)
	}
}

func (t *Tuner) put(now time.Time, limit float64) {
	err := t.config.Limit.Set(limit)
	if err == nil {
		t.set, t.at = limit, now
	}
	switch {
	case err != nil && !t.failing:
		t.config.Logger.Error("a limit cannot be set", "limit", t.config.Name, "to", limit, "error", err)
	case err == nil && t.failing:
		t.config.Logger.Info("a limit can be set again", "limit", t.config.Name, "to", limit)
	}
	t.failing = err != nil
}

func (t *Tuner) tell(m tune.Move) {
	text, level := "a limit was moved", slog.LevelInfo
	switch {
	case m.Rule == tune.Fallback:
		text, level = "a limit goes back to what is configured", slog.LevelWarn
	case m.Rule == tune.Resume:
		text = "a limit follows its signals again"
	case !m.Applied:
		text = "a limit would be moved"
	}
	t.config.Logger.Log(context.Background(), level, text,
		"limit", t.config.Name, "from", m.From, "to", m.To, "rule", m.Rule.String(), "reason", m.Reason())
}

// Limit returns the target value of the limit.
func (t *Tuner) Limit() float64 { return t.tuner.Limit() }

// Stats returns the limit, its reason and the last moves, as of the last step.
func (t *Tuner) Stats(now time.Time) tune.Stats { return t.tuner.Stats(now) }
