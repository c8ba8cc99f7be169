package loglimit

import (
	"bytes"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// TestRate: a flood gets its burst and then the rate, however the logger was derived, and each
// line says how many were left out.
func TestRate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var text bytes.Buffer
		all, err := New(slog.New(slog.NewTextHandler(&text, nil)), 10)
		if err != nil {
			t.Fatal(err)
		}
		derived := []*slog.Logger{all, all.With("listener", "a"), all.WithGroup("g")}
		for i := range 5000 {
			derived[i%3].Warn("closed")
			time.Sleep(time.Millisecond)
		}
		lines := strings.Split(strings.TrimSpace(text.String()), "\n")
		if len(lines) < 55 || len(lines) > 61 {
			t.Errorf("%d lines in 5 s, want 10 and then 10 per second", len(lines))
		}
		if !strings.Contains(lines[0], "left_out=0") || !strings.Contains(lines[len(lines)-1], "left_out=99") && !strings.Contains(lines[len(lines)-1], "left_out=100") {
			t.Errorf("left out: %s ... %s", lines[0], lines[len(lines)-1])
		}
		if !strings.Contains(text.String(), "listener=a") {
			t.Error("attributes are lost")
		}
	})
}

// TestSeldom: a rate below one per second allows one line at once.
func TestSeldom(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var text bytes.Buffer
		l, err := New(slog.New(slog.NewTextHandler(&text, nil)), 1.0/60)
		if err != nil {
			t.Fatal(err)
		}
		for range 130 {
			l.Info("x")
			time.Sleep(time.Second)
		}
		if n := strings.Count(text.String(), "\n"); n != 3 {
			t.Errorf("%d lines in 130 s, want 3", n)
		}
	})
}

func TestBadRate(t *testing.T) {
	if _, err := New(slog.New(slog.DiscardHandler), 0); err == nil {
		t.Error("a rate of 0 is accepted")
	}
}
