package main

import (
	"cmp"
	"errors"
	"io"
	"log/slog"
	"math"

	"github.com/seed90641741/spillway/cmd/spillway/internal/gateway/config"
	"github.com/seed90641741/spillway/cmd/spillway/internal/gateway/logs"
	"github.com/seed90641741/spillway/cmd/spillway/internal/strict"
)

// logging is a log whose format and level can be changed while it is written.
type logging struct {
	format     string        // that is not the file's to say; empty: it is
	lines      *logs.Queue   // requests write lines, and must not wait for who reads them
	text, json slog.LevelVar // of the handlers: one has the level of the log, and the other is silent
}

// silent is a level that no line has.
const silent = slog.Level(math.MaxInt)

// newLogging returns a log with the level info, and its logger. A format overrides the configuration
// file. The log must be closed.
func newLogging(w io.Writer, format string) (*logging, *slog.Logger) {
	l := &logging{format: format, lines: logs.NewQueue(func(line []byte) error {
		_, err := w.Write(line)
		return err
	}, nil)}
	l.set(new(config.Config))
	to := logs.Writer{Queue: l.lines}
	return l, slog.New(slog.NewMultiHandler(
		slog.NewTextHandler(to, &slog.HandlerOptions{Level: &l.text}),
		slog.NewJSONHandler(to, &slog.HandlerOptions{Level: &l.json})))
}

// close writes what is left, for two seconds at most.
func (l *logging) close() { l.lines.Close() }

func (l *logging) set(c *config.Config) {
	d := c.Defaulted().Log
	var level slog.Level
	_ = level.UnmarshalText([]byte(d.Level)) // as Check has found it good
	used, unused := &l.text, &l.json
	if cmp.Or(l.format, d.Format) == "json" {
		used, unused = unused, used
	}
	used.Set(level)
	unused.Set(silent)
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
