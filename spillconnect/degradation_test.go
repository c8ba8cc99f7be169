package spillconnect

import (
	"context"
	"testing"
	"time"

	"connectrpc.com/connect"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/seed90641741/spillway"
	"github.com/seed90641741/spillway/ingress"
	"github.com/seed90641741/spillway/load"
	"github.com/seed90641741/spillway/ratelimit"
)

// A handler gets the level of degradation of its call, whether that is a stream or not.
func TestDegradation(t *testing.T) {
	s := newServer(t, ServerConfig{}, ingress.Config{Load: load.Config{
		Signals: []load.Signal{{Name: "fixed", Read: func() float64 { return 0.9 }}}, // within the ramp of CRITICAL
	}})
	now := time.Now()
	for range 200 {
		now = now.Add(20 * time.Millisecond)
		var p ingress.Slot
		if r := p.EnterAt(t.Context(), s.ingress, now, &spillway.Call{Criticality: spillway.CriticalPlus}, new(ratelimit.Caller)); !r.Rejected() {
			p.DoneAt(now, spillway.OutcomeServed)
		}
	}
	var levels [2]spillway.DegradationLevel
	spec := connect.Spec{Procedure: procedure}
	unary := s.WrapUnary(func(ctx context.Context, _ connect.AnyRequest) (connect.AnyResponse, error) {
		levels[0] = spillway.DegradationFrom(ctx)
		return connect.NewResponse(wrapperspb.String("x")), nil
	})
	if _, err := unary(t.Context(), handlerRequest{connect.NewRequest(wrapperspb.String("x")), spec}); err != nil {
		t.Fatal(err)
	}
	stream := s.WrapStreamingHandler(func(ctx context.Context, _ connect.StreamingHandlerConn) error {
		levels[1] = spillway.DegradationFrom(ctx)
		return nil
	})
	if err := stream(t.Context(), &burning{header: map[string][]string{}, spec: spec}); err != nil {
		t.Fatal(err)
	}
	if want := [2]spillway.DegradationLevel{spillway.DegradationLow, spillway.DegradationLow}; levels != want {
		t.Errorf("levels %v, want low: %+v", levels, s.ingress.Stats(now).Degradation)
	}
}
