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

	err error
}

func (f *failing) Sync(context.Context, fleet.Said) (fleet.Heard, error) { return fleet.Heard{}, f.err }

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
