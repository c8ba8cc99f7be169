package spillconnect

import (
	"context"
	"errors"
	"net/http"
	"testing"
	"time"

	"connectrpc.com/connect"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/seed90641741/spillway"
)

// TestStreamIsAccepted: a stream counts as accepted from its first message, once, in whatever way
// it ends.
func TestStreamIsAccepted(t *testing.T) {
	for name, c := range map[string]struct {
		begins, breaks         bool
		during, after, counted float64
	}{
		"canceled":         {begins: true, during: 1, after: 1, counted: 1},
		"broken":           {begins: true, breaks: true, during: 1, after: 1, counted: 1},
		"rejected":         {breaks: true, counted: 1},
		"canceled at once": {},
	} {
		t.Run(name, func(t *testing.T) {
			brk := make(chan struct{})
			s := start(t, map[string]http.Handler{procedure: connect.NewServerStreamHandler(procedure,
				func(ctx context.Context, req *connect.Request[message], out *connect.ServerStream[message]) error {
					if c.begins {
						if err := out.Send(req.Msg); err != nil {
							return err
						}
					}
					select {
					case <-brk:
					case <-ctx.Done():
					}
					return connect.NewError(connect.CodeUnavailable, errors.New("broken"))
				})})
			client := newClient(t, ClientConfig{})
			stats := func() (accepts, requests float64, inFlight int) {
				for _, x := range client.Stats(time.Now()) {
					of := x.Throttle[spillway.Critical.Index()]
					accepts, requests, inFlight = accepts+of.Accepts, requests+of.Requests, inFlight+x.InFlight.InFlight
				}
				return accepts, requests, inFlight
			}
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			if !c.begins && !c.breaks {
				time.AfterFunc(10*time.Millisecond, cancel)
			}
			if !c.begins && c.breaks {
				close(brk)
			}
			caller := connect.NewClient[message, message](s.Client(), s.URL+procedure, connect.WithInterceptors(client))
			stream, err := caller.CallServerStream(ctx, connect.NewRequest(wrapperspb.String("x")))
			if err == nil && c.begins {
				if !stream.Receive() {
					t.Fatal(stream.Err())
				}
				await(t, func() bool { n, _, _ := stats(); return n == c.during })
				if c.breaks {
					close(brk)
				} else {
					cancel()
				}
			}
			if err == nil {
				if stream.Receive() {
					t.Error("another message")
				}
				_ = stream.Close()
			}
			await(t, func() bool { _, _, n := stats(); return n == 0 })
			if accepts, requests, _ := stats(); accepts != c.after || requests != c.counted {
				t.Errorf("%v accepts of %v calls, want %v of %v", accepts, requests, c.after, c.counted)
			}
		})
	}
}
