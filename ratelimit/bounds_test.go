package ratelimit_test

import (
	"errors"
	"testing"
	"time"

	"github.com/seed90641741/spillway"
	"github.com/seed90641741/spillway/ratelimit"
)

// A rejection asks for the least power of two milliseconds that is not shorter than the wait.
func TestHintAtItsSteps(t *testing.T) {
	for _, row := range []struct {
		used time.Duration // since the bucket was emptied
		want time.Duration
	}{
		{0, 16 * time.Millisecond}, {time.Millisecond, 16 * time.Millisecond}, {2*time.Millisecond - 1, 16 * time.Millisecond},
		{2 * time.Millisecond, 8 * time.Millisecond}, {6*time.Millisecond - 1, 8 * time.Millisecond}, {6 * time.Millisecond, 4 * time.Millisecond},
		{8 * time.Millisecond, 2 * time.Millisecond}, {9 * time.Millisecond, time.Millisecond}, {10*time.Millisecond - 1, time.Millisecond},
		{10 * time.Millisecond, 0},
	} {
		l, err := ratelimit.New(ratelimit.Config{Rate: 100, BurstSeconds: 0.01})
		if err != nil {
			t.Fatal(err)
		}
		start := time.Unix(1e9, 0)
		if _, err := l.Admit(start, spillway.Call{}); err != nil {
			t.Fatal(err)
		}
		var got time.Duration
		rejected, ok := errors.AsType[*spillway.RejectedError](l.Reject(start.Add(row.used), ratelimit.Caller{}))
		if ok {
			got = rejected.RetryAfter
		}
		if got != row.want {
			t.Errorf("%v after the token: a hint of %v, want %v", row.used, got, row.want)
		}
	}
}
