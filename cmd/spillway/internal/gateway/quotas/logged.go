package quotas

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"

	"github.com/seed90641741/spillway/internal/outage"
	"github.com/seed90641741/spillway/quota/fleet"
)

// Logged returns a board that logs when its servers stop answering a quota, when they answer again,
// and when another task leads.
func Logged(b fleet.Board, name string, logger *slog.Logger) *Watched {
	return &Watched{Board: b, logger: logger.With("quota", name)}
}

// Watched is a board that knows whether its servers answer, and whether a leader sends levels.
type Watched struct {
	fleet.Board

	logger *slog.Logger
	watch  outage.Watch
	leader outage.Turn

	mu     sync.Mutex
	answer bool      // the last round trip had an answer
	since  time.Time // the servers answered first, or levels came last
}

// Sync implements [fleet.Board].
func (b *Watched) Sync(ctx context.Context, s fleet.Said) (fleet.Heard, error) {
	heard, err := b.Board.Sync(ctx, s)
	now := time.Now()
	b.heard(now, err == nil, heard.Levels != nil)
	switch {
	case err == nil:
		if after, ended := b.watch.Answered(now); ended {
			b.logger.Info("the servers of the quota answer again", "after", after.Round(time.Millisecond))
		}
		if b.leader.Changed(now, heard.Task) {
			b.logger.Info("a leader of the quota was elected", "this_task", heard.Leader)
		}
	case !errors.Is(err, context.Canceled):
		if due, answered := b.watch.Failed(now); due {
			b.logger.Warn("the servers of the quota do not answer: customers keep their last share, and later get their limit divided by tasks",
				"error", err, "diagnosis", diagnosis(err, answered))
		}
	}
	return heard, err
}

// Publish implements [fleet.Board].
func (b *Watched) Publish(ctx context.Context, p fleet.Publication) error {
	err := b.Board.Publish(ctx, p)
	if err == nil {
		b.heard(time.Now(), true, true)
	}
	return err
}

// heard takes note of a round trip, and of levels that came or went with it.
func (b *Watched) heard(now time.Time, answered, levels bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if levels || answered && !b.answer {
		b.since = now
	}
	b.answer = answered
}

// LeaderLost reports whether the servers answer, but no levels have come for a time.
func (b *Watched) LeaderLost(now time.Time, grace time.Duration) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.answer && now.Sub(b.since) > grace
}
