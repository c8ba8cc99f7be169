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
	"time"

	"github.com/seed90641741/spillway/tune"
)

// A Limit is the limit that a [Tuner] adjusts. Its methods are called by one goroutine.
type Limit interface {
	// Read puts the values of the signals into values, NaN where one is not known,
	// and returns how much of the limit is used, as [tune.Tuner.Read] takes them. All
	// of it is of the time since the last call, which ends at now.
	Read(ctx context.Context, now time.Time, values []float64) (used float64)
	// Set puts the limit in force.
	Set(ctx context.Context, limit float64) error
}

// Config is the configuration of a [Tuner].
type Config struct {
	Name   string // of the limit, for the log
	Tune   tune.Config
	Limit  Limit
	Logger *slog.Logger
}

// A Tuner adjusts a limit. It is safe for concurrent use; make one with [New].
type Tuner struct {
	config   Config
	tuner    *tune.Tuner
	interval time.Duration
	values   []float64
	set      float64   // what it was set to, successfully
	at       time.Time // when
	failing  bool
}

// New returns a Tuner, or an error if its configuration is invalid.
func New(c Config) (*Tuner, error) {
	engine, err := tune.New(c.Tune)
	if err != nil {
		return nil, err
	}
	reaction := cmp.Or(c.Tune.Reaction, 500*time.Millisecond)
	return &Tuner{
		config: c, tuner: engine, set: engine.Limit(),
		interval: max(reaction/2, time.Millisecond), values: make([]float64, len(c.Tune.Signals)),
	}, nil
}

// Run reads and adjusts the limit until ctx ends. Call it once.
func (t *Tuner) Run(ctx context.Context) {
	ticks := time.NewTicker(t.interval)
	defer ticks.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticks.C:
			t.step(ctx, time.Now())
		}
	}
}

// step reads the signals and adjusts the limit once.
func (t *Tuner) step(ctx context.Context, now time.Time) {
	used := t.config.Limit.Read(ctx, now, t.values)
	if ctx.Err() != nil {
		return
	}
	if m, ok := t.tuner.Read(now, used, t.values...); ok {
		t.tell(m)
	}
	s := t.tuner.Limit()
	if s != t.set || t.failing || !t.at.IsZero() && now.Sub(t.at) >= time.Minute {
		t.put(ctx, now, s)
	}
}

// put sets the limit.
func (t *Tuner) put(ctx context.Context, now time.Time, limit float64) {
	err := t.config.Limit.Set(ctx, limit)
	switch {
	case ctx.Err() != nil:
		return
	case err != nil:
		if !t.failing {
			t.config.Logger.Error("a limit cannot be set", "limit", t.config.Name, "to", limit, "error", err)
		}
	default:
		t.set, t.at = limit, now
		if t.failing {
			t.config.Logger.Info("a limit can be set again", "limit", t.config.Name, "to", limit)
		}
	}
	t.failing = err != nil
}

// tell logs a move.
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
func (t *Tuner) Stats() tune.Stats { return t.tuner.Stats(time.Now()) }
