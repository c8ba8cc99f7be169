package claims

import (
	"context"
	"testing"
	"time"
)

func TestHurried(t *testing.T) {
	now := time.Now()
	until := func(ctx context.Context, d time.Duration) context.Context {
		ctx, cancel := context.WithDeadline(ctx, now.Add(d))
		t.Cleanup(cancel)
		return ctx
	}
	claimed := until(WithDeadline(until(t.Context(), time.Minute), now.Add(time.Minute)), time.Hour) // later is no other
	for _, row := range []struct {
		name string
		ctx  context.Context
		want bool
	}{
		{"none", t.Context(), false},
		{"its own", until(t.Context(), time.Minute), false},
		{"claimed", claimed, true},
		{"claimed, and one's own is sooner", until(claimed, time.Second), false},
		{"claimed, and left behind", context.WithoutCancel(claimed), false},
	} {
		if got := Hurried(row.ctx); got != row.want {
			t.Errorf("%s: %v", row.name, got)
		}
	}
}
