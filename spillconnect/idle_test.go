package spillconnect

import (
	"context"
	"errors"
	"net/http"
	"testing"
	"time"

	"connectrpc.com/connect"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/seed90641741/spillway/ingress"
)

// A stream whose handler has sent a message and waits for an event is no work. Where Check of the health service is exempt, so is Watch.
func TestIdleStream(t *testing.T) {
	server := newServer(t, ServerConfig{HealthProcedures: []string{"/grpc.health.v1.Health/Check"}}, ingress.Config{MaxInFlight: 4})
	if len(server.health) != 2 || server.health[1] != "/grpc.health.v1.Health/Watch" {
		t.Errorf("exempt: %v", server.health)
	}
	s := start(t, map[string]http.Handler{procedure: connect.NewServerStreamHandler(procedure,
		func(ctx context.Context, req *connect.Request[message], out *connect.ServerStream[message]) error {
			if err := out.Send(req.Msg); err != nil {
				return err
			}
			<-ctx.Done()
			return nil
		}, connect.WithInterceptors(server))})
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	c := connect.NewClient[message, message](s.Client(), s.URL+procedure)
	stream, err := c.CallServerStream(ctx, connect.NewRequest(wrapperspb.String("x")))
	if err != nil || !stream.Receive() {
		t.Fatal(errors.Join(err, stream.Err()))
	}
	await(t, func() bool { return server.ingress.Stats(time.Now()).InFlight.InFlight == 0 })
	cancel()
	_ = stream.Close()
}
