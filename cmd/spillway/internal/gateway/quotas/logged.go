package quotas

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"

	"github.com/seed90641741/spillway/quota/fleet"
)

// logPause is the shortest time between two warnings about one board.
const logPause = time.Minute

// Logged returns a board that logs when its servers stop answering a quota, and when they answer again.
func Logged(b fleet.Board, name string, logger *slog.Logger) fleet.Board {
	return &logged{Board: b, logger: logger.With("quota", name)}
}

type logged struct {
	fleet.Board

	logger *slog.Logger

	mu     sync.Mutex
	failed bool      // the last warning was followed by no success
	warned time.Time // the last warning
}

// Sync implements [fleet.Board].
func (b *logged) Sync(ctx context.Context, s fleet.Said) (fleet.Heard, error) {
	heard, err := b.Board.Sync(ctx, s)
	switch now := time.Now(); {
	case err == nil && b.recovers():
		b.logger.Info("the servers of the quota answer again")
	case err != nil && !errors.Is(err, context.Canceled) && b.warns(now):
		b.logger.Warn("the servers of the quota do not answer: customers keep their last share, and later get their limit divided by tasks",
			"error", err, "diagnosis", diagnosis(err))
	}
	return heard, err
}

// recovers reports whether a success follows a warning.
func (b *logged) recovers() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	was := b.failed
	b.failed = false
	return was
}

// warns reports whether a failure at now has a warning.
func (b *logged) warns(now time.Time) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if !b.warned.IsZero() && now.Sub(b.warned) < logPause {
		return false
	}
	b.warned, b.failed = now, true
	return true
}
