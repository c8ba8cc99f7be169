// Package loglimit bounds the rate of a log that clients or broken peers can fill.
package loglimit

import (
	"context"
	"log/slog"
	"sync/atomic"

	"github.com/seed90641741/spillway"
	"github.com/seed90641741/spillway/ratelimit"
)

// New returns a logger that writes to next at most the given number of lines per second, each
// with the number of lines that were left out since the last one, as left_out. A burst has one
// second's worth, and at least one line. Loggers that are derived from it share the rate. A
// negative rate is no bound, and 0 is an error.
func New(next *slog.Logger, perSecond float64) (*slog.Logger, error) {
	lines, err := ratelimit.New(ratelimit.Config{Rate: perSecond, BurstSeconds: max(1, 1/perSecond)})
	if err != nil {
		return nil, err
	}
	return slog.New(handler{next.Handler(), lines, new(atomic.Int64)}), nil
}

// handler passes on records at a bounded rate, by their times.
type handler struct {
	slog.Handler

	lines   *ratelimit.Limiter
	leftOut *atomic.Int64
}

// Handle implements [slog.Handler].
func (h handler) Handle(ctx context.Context, r slog.Record) error {
	if _, err := h.lines.Admit(r.Time, spillway.Call{}); err != nil {
		h.leftOut.Add(1)
		return nil //nolint:nilerr // the line is left out, which is no failure
	}
	r.AddAttrs(slog.Int64("left_out", h.leftOut.Swap(0)))
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
