package upstream

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seed90641741/spillway/cmd/spillway/internal/gateway/config"
)

func TestThresholds(t *testing.T) {
	c := &config.Health{HealthyThreshold: 2, UnhealthyThreshold: 3}
	for _, row := range []struct{ checks, states string }{
		{"+", "H"},
		{"-", "U"},
		{"+--+--+---+-+-++", "HHHHHHHHHUUUUUUH"},
		{"--++--", "UUUHHH"},
	} {
		var h health
		states := ""
		for i, x := range row.checks {
			var err error
			if x == '-' {
				err = errors.New("no")
			}
			was := h.is()
			if changed := h.take(c, err); changed != (h.is() != was) {
				t.Errorf("%s: check %d says changed: %v", row.checks, i, changed)
			}
			states += strings.ToUpper(h.is().String()[:1])
		}
		if states != row.states {
			t.Errorf("%s: %s, want %s", row.checks, states, row.states)
		}
		if int(h.checks.Load()) != len(row.checks) {
			t.Errorf("%s: counted %d checks", row.checks, h.checks.Load())
		}
	}
}

// TestIntervals checks that the intervals of checks are right and jittered.
func TestIntervals(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		begun := time.Now()
		var at []time.Duration
		c := &checker{config: &config.Health{Interval: time.Second, Jitter: 0.2, Timeout: 100 * time.Millisecond, HealthyThreshold: 1, UnhealthyThreshold: 1}}
		c.probe = func(context.Context, string) error {
			at = append(at, time.Since(begun))
			return nil
		}
		c.endpoints = newEndpoints(&config.Cluster{Endpoints: []string{"x:1"}}, nil)
		u := &Version{Config: new(config.Cluster), endpoints: c.endpoints, watches: []watch{c.follow}}
		u.watch(t.Context(), slog.New(slog.DiscardHandler))
		time.Sleep(50 * time.Second)
		u.stop()
		steps := make(map[time.Duration]bool)
		for i := 2; i < len(at); i++ { // the first wait is shorter, so that endpoints do not stay in step
			step := at[i] - at[i-1]
			steps[step] = true
			if step < 800*time.Millisecond || step > 1200*time.Millisecond {
				t.Errorf("%v between two checks", step)
			}
		}
		if at[0] != 0 || len(at) < 42 || len(steps) < 40 {
			t.Errorf("%d checks at %d different intervals, the first after %v", len(at), len(steps), at[0])
		}
	})
}
