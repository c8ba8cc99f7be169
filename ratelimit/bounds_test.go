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
		{2 * time.Millisecond, 8 * time.Millisecond}, {2*time.Millisecond + 1, 8 * time.Millisecond}, {6*time.Millisecond - 1, 8 * time.Millisecond}, {6 * time.Millisecond, 4 * time.Millisecond},
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

// A call is rejected unless its token is due before its deadline. The level is the share of the
// wait that is left until then.
func TestDeadlineAtItsBound(t *testing.T) {
	for _, row := range []struct {
		left  time.Duration // from the request to the deadline
		level float64       // of the rejection; negative: none
	}{
		{-time.Second, 0}, {0, 0}, {500 * time.Millisecond, 25}, {2 * time.Second, 100}, {2*time.Second + 1, -1}, {time.Hour, -1},
	} {
		l, err := ratelimit.New(ratelimit.Config{Rate: 0.5, QueueDepth: 1})
		if err != nil {
			t.Fatal(err)
		}
		start := time.Unix(1e9, 0)
		if r, err := l.ReserveBy(start, start.Add(row.left)); err != nil || r.Wait != 0 {
			t.Errorf("%v left and a token: wait %v, %v", row.left, r.Wait, err)
		}
		r, err := l.ReserveBy(start, start.Add(row.left))
		if row.level < 0 {
			if err != nil || r.Wait != 2*time.Second {
				t.Errorf("%v left: wait %v, %v, want 2s", row.left, r.Wait, err)
			}
			continue
		}
		rejected, ok := errors.AsType[*spillway.RejectedError](err)
		if !ok || rejected.Reason != spillway.ReasonDeadline || rejected.Level != row.level {
			t.Errorf("%v left: %v, want a rejection for the deadline at %v %%", row.left, err, row.level)
		}
		if s := l.Stats(start); s.RejectedTotal != 1 || s.QueuedTotal != 0 || s.Tokens != 0 {
			t.Errorf("%v left: %+v, want one rejected and no token taken", row.left, s)
		}
	}
}
