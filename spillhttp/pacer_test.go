package spillhttp

import (
	"testing"
	"time"
)

// TestPacer steps the clock back, too: that must not stop it for longer than an interval.
func TestPacer(t *testing.T) {
	p := pacer{interval: 100 * time.Millisecond}
	noon := time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)
	for _, row := range []struct {
		at   time.Duration
		want bool
	}{
		{0, true},
		{0, false},
		{99 * time.Millisecond, false},
		{100 * time.Millisecond, true},
		{-time.Hour, true}, // a step back
		{-time.Hour + 50*time.Millisecond, false},
		{-time.Hour + 100*time.Millisecond, true},
		{time.Hour, true}, // and forward
		{time.Hour + time.Millisecond, false},
	} {
		now := noon.Add(row.at)
		if got := p.take(now); got != row.want {
			t.Errorf("at %v: %v, want %v", row.at, got, row.want)
		}
	}
	var off pacer
	if off.take(noon) {
		t.Error("without an interval it never happens")
	}
}
