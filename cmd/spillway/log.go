package main

import (
	"cmp"
	"context"
	"errors"
	"io"
	"log/slog"
	"sync/atomic"

	"github.com/seed90641741/spillway/cmd/spillway/internal/gateway/config"
	"github.com/seed90641741/spillway/cmd/spillway/internal/gateway/lines"
	"github.com/seed90641741/spillway/cmd/spillway/internal/strict"
)

// logging is a log whose format and level can be changed while it is written.
type logging struct {
	format string // that is not the file's to say; empty: it is
	level  slog.LevelVar
	lines  *lines.Queue // requests write lines, and must not wait for who reads them
	json   atomic.Bool
}

// newLogging returns a log with the level info, and its logger. A format overrides the configuration
// file. The log must be closed.
func newLogging(w io.Writer, format string) (*logging, *slog.Logger) {
	l := &logging{format: format, lines: lines.New(func(line []byte) error {
		_, err := w.Write(line)
		return err
	}, nil)}
	l.set(new(config.Config))
	options, to := &slog.HandlerOptions{Level: &l.level}, lines.Writer{Queue: l.lines}
	return l, slog.New(&either{l, slog.NewTextHandler(to, options), slog.NewJSONHandler(to, options)})
}

// close writes what is left, for two seconds at most.
func (l *logging) close() { l.lines.Close() }

// set applies a configuration.
func (l *logging) set(c *config.Config) {
	d := c.Defaulted().Log
	l.json.Store(cmp.Or(l.format, d.Format) == "json")
	var level slog.Level
	if level.UnmarshalText([]byte(d.Level)) == nil { // as Check has found it good
		l.level.Set(level)
	}
}

// plainly returns an error without its excerpt of the file, which may contain secrets: the
// line is enough for a log.
func plainly(err error) error {
	all, ok := errors.AsType[strict.Errors](err)
	if !ok {
		return err
	}
	bare := make(strict.Errors, 0, len(all))
	for _, e := range all {
		own := *e
		own.Excerpt = ""
		bare = append(bare, &own)
	}
	return bare
}

// either has a text and a JSON handler, and writes with one of them at a time.
type either struct {
	*logging

	asText, asJSON slog.Handler
}

func (e *either) now() slog.Handler {
	if e.json.Load() {
		return e.asJSON
	}
	return e.asText
}

// Enabled implements [slog.Handler].
func (e *either) Enabled(ctx context.Context, level slog.Level) bool {
	return e.now().Enabled(ctx, level)
}

// Handle implements [slog.Handler].
func (e *either) Handle(ctx context.Context, r slog.Record) error { return e.now().Handle(ctx, r) }

// WithAttrs implements [slog.Handler].
func (e *either) WithAttrs(attrs []slog.Attr) slog.Handler {
	return &either{e.logging, e.asText.WithAttrs(attrs), e.asJSON.WithAttrs(attrs)}
}

// WithGroup implements [slog.Handler].
func (e *either) WithGroup(name string) slog.Handler {
	return &either{e.logging, e.asText.WithGroup(name), e.asJSON.WithGroup(name)}
}
