package loglimit

import (
	"bytes"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// TestOccasional: a line per second, with the number of those before it that are missing.
func TestOccasional(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var b bytes.Buffer
		o := NewOccasional(slog.New(slog.NewTextHandler(&b, nil)))
		for range 25 { // in 2.4 s
			o.Warn("failed", "cluster", "web")
			time.Sleep(100 * time.Millisecond)
		}
		lines := strings.Split(strings.TrimSpace(b.String()), "\n")
		if len(lines) != 3 || !strings.Contains(lines[0], "cluster=web more=0") || !strings.Contains(lines[1], "more=9") || !strings.Contains(lines[2], "more=9") {
			t.Errorf("%q", lines)
		}
	})
}
