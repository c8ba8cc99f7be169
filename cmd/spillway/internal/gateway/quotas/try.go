package quotas

import (
	"context"
	"crypto/rand"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/seed90641741/spillway/cmd/spillway/internal/gateway/config"
	"github.com/seed90641741/spillway/cmd/spillway/internal/policyconf"
	"github.com/seed90641741/spillway/quota/fleet"
)

// Files returns an error for each engine whose files cannot be used.
func Files(c *config.Config) []error {
	return each(c, func(e *policyconf.Engine) error {
		opened, err := Open(e)
		if err != nil {
			return err
		}
		return opened.Close()
	})
}

// Try returns an error for each engine that cannot be used, and says what to do.
func Try(ctx context.Context, c *config.Config) []error {
	return each(c, func(e *policyconf.Engine) error { return TryEngine(ctx, e) })
}

// TryEngine returns an error if an engine cannot be used, and says what to do.
func TryEngine(ctx context.Context, e *policyconf.Engine) error {
	err := tryOne(ctx, e)
	if err == nil {
		return nil
	}
	if hint := diagnosis(err, false); hint != "" {
		return fmt.Errorf("%w: %s", err, hint)
	}
	return err
}

// each returns the errors of engines by name.
func each(c *config.Config, try func(*policyconf.Engine) error) (errs []error) {
	for _, name := range slices.Sorted(maps.Keys(c.Quotas)) {
		e := c.Quotas[name]
		if err := try(&e); err != nil {
			errs = append(errs, fmt.Errorf("quotas %s: %w", name, err))
		}
	}
	return errs
}

// tryFor is how long an engine may take to answer.
const tryFor = 3 * time.Second

// tryOne does once what a task does, under a new domain that the servers soon forget.
func tryOne(ctx context.Context, e *policyconf.Engine) error {
	ctx, cancel := context.WithTimeout(ctx, tryFor)
	defer cancel()
	opened, err := Open(e)
	if err != nil {
		return err
	}
	defer func() { _ = opened.Close() }() // nothing depends on it
	b, err := opened.Board("check-" + rand.Text())
	if err != nil {
		return err
	}
	const task = "check"
	heard, err := b.Sync(ctx, fleet.Said{Task: task, Report: []byte(task), Lease: tryFor, Keep: 2 * tryFor})
	if err != nil {
		return err
	}
	err = b.Publish(ctx, fleet.Publication{
		Task: task, Version: fleet.Version{Epoch: heard.Epoch, Seq: 1}, Levels: []byte(task), Keep: 2 * tryFor,
	})
	if err != nil {
		return err
	}
	return b.Leave(ctx, task)
}
