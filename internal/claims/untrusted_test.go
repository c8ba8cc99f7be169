package claims

import (
	"context"
	"testing"
	"time"
)

func TestUntrustedExpired(t *testing.T) {
	now := time.Now()
	until := func(ctx context.Context, d time.Duration) context.Context {
		ctx, cancel := context.WithDeadline(ctx, now.Add(d))
		t.Cleanup(cancel)
		return ctx
	}
	claimed := until(context.WithValue(until(t.Context(), time.Minute), DeadlineKey{}, now.Add(time.Minute)), time.Hour) // later is no other
	for _, row := range []struct {
		name string
		ctx  context.Context
		took time.Duration
		want bool
	}{
		{"none", t.Context(), time.Minute, false},
		{"its own", until(t.Context(), time.Minute), time.Minute, false},
		{"claimed", claimed, time.Minute, true},
		{"claimed, and who was called gave up", claimed, 59 * time.Second, true},
		{"claimed, and far away", claimed, 30 * time.Second, false},
		{"claimed, and one's own is sooner", until(claimed, time.Second), time.Second, false},
		{"claimed, and left behind", context.WithoutCancel(claimed), time.Minute, false},
	} {
		if got := UntrustedExpired(row.ctx, now, now.Add(row.took)); got != row.want {
			t.Errorf("%s: %v", row.name, got)
		}
	}
}
