package quotas

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"

	"github.com/seed90641741/spillway/quota/fleet"
)

const (
	// leastOutage is how long a board that has answered must fail before it is worth a line: what
	// is shorter changes no share, and a board that fails now and then must not fill the log.
	leastOutage = time.Second
	// outagePause is the shortest time between the first warnings of two outages.
	outagePause = 5 * time.Second
	// repeatPause is the time between two warnings of one outage.
	repeatPause = time.Minute
)

// Logged returns a board that logs when its servers stop answering a quota, and when they answer again.
func Logged(b fleet.Board, name string, logger *slog.Logger) fleet.Board {
	return &logged{Board: b, logger: logger.With("quota", name)}
}

type logged struct {
	fleet.Board

	logger *slog.Logger

	mu       sync.Mutex
	answered bool      // once
	since    time.Time // when the outage began; zero: there is none
	logged   bool      // the outage has had a warning
	warned   time.Time // the last warning
}

// Sync implements [fleet.Board].
func (b *logged) Sync(ctx context.Context, s fleet.Said) (fleet.Heard, error) {
	heard, err := b.Board.Sync(ctx, s)
	switch {
	case err == nil:
		b.succeeded(time.Now())
	case !errors.Is(err, context.Canceled):
		b.failed(time.Now(), err)
	}
	return heard, err
}

// succeeded ends an outage, if there is one.
func (b *logged) succeeded(now time.Time) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.logged {
		b.logger.Info("the servers of the quota answer again", "after", now.Sub(b.since).Round(time.Millisecond))
	}
	b.answered, b.since, b.logged = true, time.Time{}, false
}

// failed begins or continues an outage.
func (b *logged) failed(now time.Time, err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.since.IsZero() {
		b.since = now
	}
	pause := outagePause
	if b.logged {
		pause = repeatPause
	}
	if b.answered && now.Sub(b.since) < leastOutage || !b.warned.IsZero() && now.Sub(b.warned) < pause {
		return
	}
	b.warned, b.logged = now, true
	b.logger.Warn("the servers of the quota do not answer: customers keep their last share, and later get their limit divided by tasks",
		"error", err, "diagnosis", diagnosis(err, b.answered))
}
