// Package loglimit bounds the rate of a log that clients or broken peers can fill.
package loglimit

import (
	"context"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/seed90641741/spillway"
	"github.com/seed90641741/spillway/ratelimit"
)

// A Rate bounds the lines of a log per second, and counts the lines that are left out. A caller asks it
// before it makes a line. It is safe for concurrent use; make one with [NewRate].
type Rate struct {
	lines   *ratelimit.Limiter
	leftOut atomic.Uint64
}

// NewRate returns a Rate of so many lines per second. A burst has one second's worth, and at least
// one line. A negative rate is no bound, and 0 is an error.
func NewRate(perSecond float64) (*Rate, error) {
	lines, err := ratelimit.New(config(perSecond))
	return &Rate{lines: lines}, err
}

// Update changes the rate.
func (r *Rate) Update(perSecond float64) error { return r.lines.Update(config(perSecond)) }

func config(perSecond float64) ratelimit.Config {
	return ratelimit.Config{Rate: perSecond, BurstSeconds: max(1, 1/perSecond)}
}

// Admit reports whether to write a line, and counts it if not.
func (r *Rate) Admit(now time.Time) bool {
	_, err := r.lines.Admit(now, spillway.Call{})
	if err != nil {
		r.leftOut.Add(1)
	}
	return err == nil
}

// Lose counts n lines that were admitted and not written.
func (r *Rate) Lose(n uint64) { r.leftOut.Add(n) }

// LeftOut returns the number of lines that were left out since the last call of Reset.
func (r *Rate) LeftOut() uint64 { return r.leftOut.Load() }

// Reset returns the number of lines that were left out since its last call. The next line has it.
func (r *Rate) Reset() uint64 { return r.leftOut.Swap(0) }

// New returns a logger that writes to next at most the given number of lines per second, as
// [NewRate] says, each with the number of lines that were left out since the last one, as left_out.
// Loggers that are derived from it share the rate.
func New(next *slog.Logger, perSecond float64) (*slog.Logger, error) {
	rate, err := NewRate(perSecond)
	if err != nil {
		return nil, err
	}
	return slog.New(handler{next.Handler(), rate}), nil
}

// handler passes on records at a bounded rate, by their times.
type handler struct {
	slog.Handler

	rate *Rate
}

// Handle implements [slog.Handler].
func (h handler) Handle(ctx context.Context, r slog.Record) error {
	if !h.rate.Admit(r.Time) {
		return nil
	}
	r.AddAttrs(slog.Uint64("left_out", h.rate.Reset()))
	return h.Handler.Handle(ctx, r)
}

// WithAttrs implements [slog.Handler].
func (h handler) WithAttrs(attrs []slog.Attr) slog.Handler {
	h.Handler = h.Handler.WithAttrs(attrs)
	return h
}

// WithGroup implements [slog.Handler].
func (h handler) WithGroup(name string) slog.Handler {
	h.Handler = h.Handler.WithGroup(name)
	return h
}
