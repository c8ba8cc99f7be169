package spillgrpc

import (
	"context"
	"slices"
	"testing"

	"google.golang.org/grpc/codes"

	"github.com/seed90641741/spillway"
	"github.com/seed90641741/spillway/internal/serving"
)

// The codes that package serving knows are those of gRPC.
func TestCodes(t *testing.T) {
	failed := []codes.Code{codes.Unknown, codes.DeadlineExceeded, codes.Internal, codes.Unavailable, codes.DataLoss}
	repeated := append(slices.Clone(failed), codes.ResourceExhausted, codes.Aborted)
	for c := codes.OK; c <= codes.Unauthenticated; c++ {
		want := spillway.OutcomeServed
		if slices.Contains(failed, c) {
			want = spillway.OutcomeFailed
		}
		if got := serving.OutcomeOf(context.Background(), c); got != want || serving.Repeatable(c) != slices.Contains(repeated, c) {
			t.Errorf("%v: %v, repeatable %v; want %v", c, got, serving.Repeatable(c), want)
		}
	}
}
