package spillslog

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"net"
	"strings"
	"time"

	"github.com/seed90641741/spillway/internal/outage"
	"github.com/seed90641741/spillway/quota/fleet"
)

// Board returns b, with a line at level Warn when it stops answering a shared quota, again each
// minute, and one at level Info when it answers again. An outage must last for a second. Another
// line says that another task leads than before, once a minute at most. The quota is named in each line; the fleet does not
// wait for the log. The package comment has the fields. Sync must be called by the returned board only, as [fleet.Run] does:
//
//	fleet.Run(ctx, f, log.Board(b, "mail"))
func (o *Observer) Board(b fleet.Board, quota string) fleet.Board {
	return &board{Board: b, observer: o, quota: quota}
}

type board struct {
	fleet.Board

	observer *Observer
	quota    string
	watch    outage.Watch
	leader   outage.Turn
}

// Sync implements [fleet.Board].
func (b *board) Sync(ctx context.Context, s fleet.Said) (fleet.Heard, error) {
	heard, err := b.Board.Sync(ctx, s)
	now := time.Now()
	switch {
	case err == nil:
		if after, ended := b.watch.Answered(now); ended {
			b.write(slog.LevelInfo, "quota board answers again", slog.Duration("after", after.Round(time.Millisecond)))
		}
		if b.leader.Changed(now, heard.Task) {
			b.write(slog.LevelInfo, "a leader of the quota was elected", slog.Bool("this_task", heard.Leader))
		}
	case !errors.Is(err, context.Canceled):
		if due, answered := b.watch.Failed(now); due {
			b.write(slog.LevelWarn, "quota board does not answer", slog.String("error", boardError(err)), slog.Bool("timeout", isTimeout(err)),
				slog.Bool("answered_before", answered), slog.String("do", boardAdvice))
		}
	}
	return heard, err
}

// isTimeout reports whether there was no answer in time, as from a server that hangs.
func isTimeout(err error) bool {
	timeout, ok := errors.AsType[net.Error](err)
	return ok && timeout.Timeout()
}

// boardError returns the part of an error that cannot contain a password: that of the network, or the
// code of an answer of Redis, such as NOAUTH. It returns "other" for all else.
func boardError(err error) string {
	if network, ok := errors.AsType[*net.OpError](err); ok {
		return cut(network.Error(), maxValue)
	}
	if isTimeout(err) {
		return "no answer in time"
	}
	if reply, ok := errors.AsType[interface {
		error
		RedisError()
	}](err); ok {
		code, _, _ := strings.Cut(reply.Error(), " ")
		return cut(code, maxValue)
	}
	if errors.Is(err, io.EOF) {
		return "connection closed"
	}
	return "other"
}

const boardAdvice = "find out why its servers cannot be reached; customers keep their last share, and later get their limit divided by tasks"

// write queues a line.
func (b *board) write(level slog.Level, text string, attrs ...slog.Attr) {
	if b.observer.config.Interval >= 0 {
		b.observer.add(line{level: level, text: text, attrs: append([]slog.Attr{slog.String("quota", cut(b.quota, maxValue))}, attrs...)}, nil)
	}
}
