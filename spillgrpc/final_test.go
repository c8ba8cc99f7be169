package spillgrpc

import (
	"context"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"github.com/seed90641741/spillway"
	"github.com/seed90641741/spillway/egress"
	"github.com/seed90641741/spillway/fault"
	"github.com/seed90641741/spillway/ingress"
	"github.com/seed90641741/spillway/retry"
)

// TestFinalAnswers: what a handler's error says to its caller, by whether a call for it was
// given up. What another server said of itself is not passed on.
func TestFinalAnswers(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		busy := mustServer(t, swamped, ServerConfig{})
		below := open(t, &service{}, busy.Options()...)
		for _, row := range []struct {
			name     string
			attempts int
			returns  func(error) error
			final    bool
		}{
			{"its error", 3, func(err error) error { return err }, true},
			{"its own", 3, func(error) error { return status.Error(codes.Internal, "sorry") }, true},
			{"an answer", 3, func(error) error { return status.Error(codes.NotFound, "no such thing") }, false},
			{"no error", 3, func(error) error { return nil }, false},
			{"its error, without retries", 1, func(err error) error { return err }, false},
		} {
			strategy := must(retry.NewBudgeted(retry.BudgetedConfig{MaxAttempts: row.attempts, Budget: retry.Unlimited{}}))
			client := mustClient(t, ClientConfig{Egress: egress.Config{ThrottleMode: spillway.ModeOff, Retry: strategy}, Classify: idempotent})
			cc := below.dial(client.DialOptions()...)
			_ = call(t.Context(), cc) // which may be let in
			server := mustServer(t, ingress.Config{Shed: patient}, ServerConfig{})
			front := open(t, &service{unary: func(ctx context.Context) error { return row.returns(call(ctx, cc)) }}, server.Options()...).dial()
			var trailer metadata.MD
			err := call(t.Context(), front, grpc.Trailer(&trailer))
			want := ""
			if row.final {
				want = "ErrorInfo spillway/OVERLOADED_DONT_RETRY"
			}
			if got := describe(status.Convert(err)); got != want || (len(trailer[keyPushback]) == 1) != row.final || len(trailer[keyScope]) > 0 {
				t.Errorf("%s: %v, details %q, trailer %v", row.name, err, got, trailer)
			}
			if f := fault.Of(judge(t.Context(), err, trailer, nil)); err != nil && f.DontRetry != row.final {
				t.Errorf("%s: a client takes it for %+v", row.name, f)
			}
		}
	})
}
