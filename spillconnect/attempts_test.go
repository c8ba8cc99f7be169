package spillconnect

import (
	"context"
	"net/http"
	"testing"
	"time"

	"connectrpc.com/connect"

	"github.com/seed90641741/spillway"
	"github.com/seed90641741/spillway/ingress"
	"github.com/seed90641741/spillway/internal/serving"
)

// TestAttemptsAreClaims: at an edge only a customer that the service knows can say that its call is a retry.
func TestAttemptsAreClaims(t *testing.T) {
	for _, row := range []struct {
		boundary ingress.Boundary
		customer string
		want     int16
	}{
		{ingress.Edge, "", 0},
		{ingress.Edge, "shop", 3},
		{ingress.Internal, "", 3},
	} {
		classify := func(context.Context, connect.Spec, http.Header) spillway.Call {
			return spillway.Call{Customer: row.customer}
		}
		s := newServer(t, ServerConfig{Classify: classify}, ingress.Config{Trust: ingress.Trust{Boundary: row.boundary}})
		var a serving.Arrival
		s.judge(t.Context(), time.Now(), connect.Spec{Procedure: procedure}, connect.Peer{}, http.Header{headerAttempts: {"3"}}, &a)
		if a.Call.Attempt != row.want {
			t.Errorf("boundary %v, customer %q: attempt %d, want %d", row.boundary, row.customer, a.Call.Attempt, row.want)
		}
	}
}
