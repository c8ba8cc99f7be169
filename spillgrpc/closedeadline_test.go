package spillgrpc

import (
	"context"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/seed90641741/spillway"
	"github.com/seed90641741/spillway/egress"
	"github.com/seed90641741/spillway/ingress"
	"github.com/seed90641741/spillway/internal/claims"
	"github.com/seed90641741/spillway/retry"
)

// A service inside rejects a call whose deadline is closer than its fastest recent response, and says so: what an untrusted client
// has set must neither have the calls of others throttled nor the endpoint left out. Where the server tells no reasons, it counts.
func TestCloseDeadlineOfAnUntrustedClient(t *testing.T) {
	for _, row := range []struct {
		untrusted bool
		reasons   ingress.Reasons
		counts    bool
	}{
		{true, ingress.ReasonsByBoundary, false},
		{true, ingress.ReasonsNone, true},
		{false, ingress.ReasonsByBoundary, true},
	} {
		inBubble(t, func(t *testing.T) {
			trust := internal.Trust
			trust.Reasons = row.reasons
			s := mustServer(t, ingress.Config{Trust: trust}, ServerConfig{})
			site := open(t, &service{unary: func(ctx context.Context) error {
				select {
				case <-ctx.Done():
				case <-time.After(50 * time.Millisecond):
				}
				return ctx.Err()
			}}, s.Options()...)
			once := must(retry.NewBudgeted(retry.BudgetedConfig{MaxAttempts: 1}))
			client := mustClient(t, ClientConfig{Egress: egress.Config{Retry: once, ThrottleMode: spillway.ModeObserve}})
			cc := site.dial(client.DialOptions()...)
			send := func(timeout time.Duration) error {
				ctx, cancel := context.WithTimeout(t.Context(), timeout)
				defer cancel()
				if d, _ := ctx.Deadline(); row.untrusted {
					ctx = context.WithValue(ctx, claims.DeadlineKey{}, d)
				}
				return call(ctx, cc)
			}
			for range 10 {
				if err := send(time.Minute); err != nil {
					t.Fatal(err)
				}
			}
			_ = send(20 * time.Millisecond) // the service learns that such calls come
			before, rejected := rejections(client), 0.0
			for range 20 {
				if status.Code(send(20*time.Millisecond)) == codes.Unavailable {
					rejected++
				}
			}
			if rejected < 10 {
				t.Fatalf("%+v: the service rejects %v calls", row, rejected)
			}
			if n := rejections(client) - before; (n > 0) != row.counts {
				t.Errorf("%+v: the throttle knows of %v rejections", row, n)
			}
		})
	}
}

// rejections returns how many calls the backend has not accepted, as the throttle knows.
func rejections(c *Client) float64 {
	x := throttled(c)
	return x.Requests - x.Accepts
}
