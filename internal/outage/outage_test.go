package outage

import (
	"fmt"
	"testing"
	"time"
)

// TestWatch: each outage has a line, again each minute, and its end has one.
func TestWatch(t *testing.T) {
	var w Watch
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	for i, row := range []struct {
		d            time.Duration
		fails        bool
		lines, ended int
	}{
		{time.Second, true, 1, 0}, // at once: it has never answered
		{time.Second, false, 0, 1},
		{10 * time.Second, false, 0, 0},
		{150 * time.Second, true, 3, 0}, // after 1 s, 61 s and 121 s
		{10 * time.Second, false, 0, 1},
		{800 * time.Millisecond, true, 0, 0}, // too short
		{time.Second, false, 0, 0},
		{2 * time.Second, true, 1, 0},
		{200 * time.Millisecond, false, 0, 1},
		{2 * time.Second, true, 0, 0}, // within 5 s of the last one
		{200 * time.Millisecond, false, 0, 0},
		{4 * time.Second, true, 1, 0},
	} {
		lines, ended := 0, 0
		for end := now.Add(row.d); now.Before(end); now = now.Add(200 * time.Millisecond) {
			if row.fails {
				if line, answered := w.Failed(now); line {
					lines++
					if answered != (i > 0) {
						t.Errorf("row %d: answered before: %v", i, answered)
					}
				}
			} else if _, over := w.Answered(now); over {
				ended++
			}
		}
		if lines != row.lines || ended != row.ended {
			t.Errorf("row %d: %d lines and %d ends, want %d and %d", i, lines, ended, row.lines, row.ended)
		}
	}
}

// TestTurn: another leader has a line, the first one and one that is elected again have not, and names that
// change without end have one each minute.
func TestTurn(t *testing.T) {
	var turn Turn
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	for i, row := range []struct {
		after  time.Duration
		leader string
		want   bool
	}{
		{0, "", false}, {0, "a", false}, {time.Second, "a", false}, {time.Second, "b", true}, {time.Second, "a", false},
		{time.Hour, "a", false}, {time.Second, "", false}, {time.Second, "a", false}, {time.Second, "b", true},
	} {
		if now = now.Add(row.after); turn.Changed(now, row.leader) != row.want {
			t.Errorf("row %d: want %v", i, row.want)
		}
	}
	lines := 0
	for n := range 6000 { // 10 minutes
		if now = now.Add(100 * time.Millisecond); turn.Changed(now, fmt.Sprint(n)) {
			lines++
		}
	}
	if lines < 9 || lines > 10 {
		t.Errorf("%d lines in 10 minutes", lines)
	}
}
