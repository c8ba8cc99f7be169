package quotas

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seed90641741/spillway/quota/fleet"
)

// failing is a board that fails with err.
type failing struct {
	fleet.Board

	err    error
	levels bool // answers have new levels
}

func (f *failing) Sync(context.Context, fleet.Said) (fleet.Heard, error) {
	h := fleet.Heard{}
	if f.levels {
		h.Levels = []byte("levels")
	}
	return h, f.err
}

func (f *failing) Publish(context.Context, fleet.Publication) error { return f.err }

// TestLeaderLost: a quota has lost its leader when its servers answer for longer than the grace without
// levels, whether they come or this task publishes them. Without an answer that is not known.
func TestLeaderLost(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		inner := new(failing)
		b := Logged(inner, "shared", slog.New(slog.DiscardHandler))
		const grace = 10 * time.Second
		during := func(d time.Duration) bool {
			for end := time.Now().Add(d); time.Now().Before(end); time.Sleep(200 * time.Millisecond) {
				_, _ = b.Sync(t.Context(), fleet.Said{})
			}
			return b.LeaderLost(time.Now(), grace)
		}
		for i, row := range []struct {
			d      time.Duration
			err    error
			levels bool
			lost   bool
		}{
			{5 * time.Second, nil, false, false},
			{time.Minute, nil, true, false},
			{9 * time.Second, nil, false, false},
			{2 * time.Second, nil, false, true},
			{time.Minute, errors.New("away"), false, false},
			{9 * time.Second, nil, false, false}, // it counts from the first answer
			{2 * time.Second, nil, false, true},
			{time.Second, nil, true, false},
		} {
			inner.err, inner.levels = row.err, row.levels
			if got := during(row.d); got != row.lost {
				t.Errorf("row %d: lost %v", i, got)
			}
		}
		inner.levels = false
		if !during(11 * time.Second) {
			t.Error("not lost")
		}
		_ = b.Publish(t.Context(), fleet.Publication{})
		if b.LeaderLost(time.Now(), grace) {
			t.Error("lost, although this task leads")
		}
	})
}

// TestLogged: each outage has a warning that says what to do, again each minute, and its end has a line.
func TestLogged(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var lines bytes.Buffer
		inner := new(failing)
		b := Logged(inner, "shared", slog.New(slog.NewTextHandler(&lines, nil)))
		during := func(d time.Duration, err error) (warnings, infos int) {
			lines.Reset()
			inner.err = err
			for end := time.Now().Add(d); time.Now().Before(end); time.Sleep(200 * time.Millisecond) {
				if _, got := b.Sync(t.Context(), fleet.Said{}); !errors.Is(got, err) {
					t.Fatalf("got the error %v", got)
				}
			}
			return strings.Count(lines.String(), "level=WARN"), strings.Count(lines.String(), "level=INFO")
		}
		away := errors.New("dial tcp 127.0.0.1:6379: connect: connection refused")
		for _, row := range []struct {
			d               time.Duration
			err             error
			warnings, infos int
		}{
			{time.Second, nil, 0, 0},
			{150 * time.Second, away, 3, 0}, // after 1 s, 61 s and 121 s
			{10 * time.Second, nil, 0, 1},
			{10 * time.Second, away, 1, 0},
			{10 * time.Second, nil, 0, 1},
			{800 * time.Millisecond, away, 0, 0}, // too short
			{time.Second, nil, 0, 0},
			{time.Minute, context.Canceled, 0, 0}, // the proxy ends
			{2 * time.Second, away, 1, 0},
			{200 * time.Millisecond, nil, 0, 1},
			{2 * time.Second, away, 0, 0}, // within 5 s of the last one
			{200 * time.Millisecond, nil, 0, 0},
			{4 * time.Second, away, 1, 0},
		} {
			if warnings, infos := during(row.d, row.err); warnings != row.warnings || infos != row.infos {
				t.Errorf("%v of %v: %d warnings and %d other lines, want %d and %d", row.d, row.err, warnings, infos, row.warnings, row.infos)
			}
		}
		if !strings.Contains(lines.String(), "quota=shared") || !strings.Contains(lines.String(), "the server was stopped") {
			t.Error(lines.String())
		}
	})
}
