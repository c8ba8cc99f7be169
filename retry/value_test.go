package retry_test

import (
	"context"
	"errors"
	"io"
	"net"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seed90641741/spillway"
	"github.com/seed90641741/spillway/retry"
)

// The result is that of the attempt that succeeded. How often a call is tried depends on what
// its error proves.
func TestDoValue(t *testing.T) {
	rejected := &net.OpError{Op: "dial", Err: syscall.ECONNREFUSED}
	for _, row := range []struct {
		name     string
		call     spillway.Call
		err      error
		attempts int
	}{
		{"write, not sent", spillway.Call{Kind: spillway.KindWrite}, rejected, 3},
		{"write, perhaps processed", spillway.Call{Kind: spillway.KindWrite}, io.ErrUnexpectedEOF, 1},
		{"idempotent write, perhaps processed", spillway.Call{Kind: spillway.KindWrite, Idempotent: true}, io.ErrUnexpectedEOF, 3},
		{"read", spillway.Call{Kind: spillway.KindRead}, io.ErrUnexpectedEOF, 3},
		{"rejected here", spillway.Call{Kind: spillway.KindRead}, &spillway.RejectedError{}, 1},
		{"canceled", spillway.Call{Kind: spillway.KindRead}, context.Canceled, 1},
	} {
		synctest.Test(t, func(t *testing.T) {
			s, err := retry.NewBudgeted(retry.BudgetedConfig{})
			if err != nil {
				t.Fatal(err)
			}
			attempts := 0
			v, err := retry.DoValue(t.Context(), s, row.call, func(_ context.Context, a *retry.Attempt) (string, error) {
				attempts++
				return "of a failed attempt", row.err
			})
			if attempts != row.attempts || v != "" || !errors.Is(err, row.err) {
				t.Errorf("%s: %d attempts, %q, %v; want %d", row.name, attempts, v, err, row.attempts)
			}
			v, err = retry.DoValue(t.Context(), s, row.call, func(_ context.Context, a *retry.Attempt) (string, error) {
				if a.Number == 0 && row.attempts > 1 {
					return "first", row.err
				}
				return "second", nil
			})
			if v != "second" || err != nil {
				t.Errorf("%s: %q, %v", row.name, v, err)
			}
		})
	}
}

// Without a strategy there is one that waits between attempts, makes three of them, and keeps
// retries to a tenth of the calls however many callers there are.
func TestDoValueDefault(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const calls = 1000
		sent, longest := 0, time.Duration(0)
		for range calls {
			start, attempts := time.Now(), 0
			_, err := retry.DoValue(t.Context(), nil, spillway.Call{Kind: spillway.KindRead}, func(context.Context, *retry.Attempt) (int, error) {
				sent++
				attempts++
				return 0, io.EOF
			})
			if !errors.Is(err, io.EOF) {
				t.Fatal(err)
			}
			if attempts > 3 {
				t.Fatalf("%d attempts", attempts)
			}
			longest = max(longest, time.Since(start))
		}
		if longest == 0 || longest > 300*time.Millisecond {
			t.Errorf("the longest waits of a call are %v, want more than 0 and at most 300ms", longest)
		}
		if sent > calls*11/10 || sent <= calls {
			t.Errorf("%d calls that all fail sent %d, want at most 10%% more", calls, sent)
		}
	})
}
