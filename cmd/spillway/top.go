package main

import (
	"context"
	"errors"

	"github.com/seed90641741/spillway/cmd/spillway/internal/gateway/top/live"
)

// topCommand has the flags of "spillway top".
type topCommand struct{ live.Config }

// Run shows pages until it has shown enough, or is interrupted.
func (c *topCommand) Run(ctx context.Context, w streams) error {
	answered, interrupted, err := c.Config.Run(ctx, w.stdout)
	if _, wrong := errors.AsType[live.UsageError](err); wrong {
		return usage{err}
	}
	if err != nil {
		return err
	}
	return outcome(interrupted, answered)
}
