package spillconnect

import (
	"context"
	"errors"
	"io"
	"net/http"
	"testing"
	"time"

	"connectrpc.com/connect"

	"github.com/seed90641741/spillway"
	"github.com/seed90641741/spillway/egress"
	"github.com/seed90641741/spillway/ingress"
	"github.com/seed90641741/spillway/spilltest"
)

// A rig makes calls through an interceptor, without a network.
type rig struct {
	connect.Interceptor
	spec  connect.Spec
	fuse  *spilltest.Fuse
	held  func() int
	close func() error
}

func (r rig) Held() int    { return r.held() }
func (r rig) Close() error { return r.close() }

func (r rig) call(ctx context.Context) error {
	return through(r.Interceptor, r.spec)(ctx, r.fuse.Work)
}

func panicsOfClient(t *testing.T) {
	points := spilltest.Calls(func(ctx context.Context, r rig) error { return r.call(ctx) }, nil)
	points.Waiting.Do, points.Waiting.Not = nil, "a client has no queue"
	points.Hedge.Do, points.Hedge.Not = nil, "calls are not hedged"
	points.Stream.Do = stream
	spilltest.TestPanics(t, func(t *testing.T, f *spilltest.Fuse) rig {
		client := newClient(t, ClientConfig{Egress: f.Egress(egress.Config{}), Classify: func(context.Context, connect.Spec) spillway.Call {
			f.Burn("Classify")
			return spillway.Call{Idempotent: true}
		}})
		return rig{client, connect.Spec{Procedure: procedure, IsClient: true}, f, func() (n int) {
			for _, backend := range client.Stats(time.Now()) {
				n += backend.InFlight.InFlight
			}
			return n
		}, func() error { return nil }}
	}, points)
}

func panicsOfServer(t *testing.T) {
	points := spilltest.Calls(func(ctx context.Context, r rig) error { return r.call(ctx) }, func(err error) bool {
		return connect.CodeOf(err) == connect.CodeUnavailable
	})
	points.Retry.Do, points.Retry.Not = nil, "a server sends nothing"
	points.Hedge.Do, points.Hedge.Not = nil, "a server sends nothing"
	points.Stream.Do = serve
	points.Late = map[string]string{"(*Server).dispatch": "waiters are let in by a goroutine of the ingress.Server, which tries again"}
	spilltest.TestPanics(t, func(t *testing.T, f *spilltest.Fuse) rig {
		gates, err := ingress.New(f.Ingress(ingress.Config{}))
		if err != nil {
			t.Fatal(err)
		}
		server, err := NewServer(ServerConfig{
			Ingress:  gates,
			Identity: func(context.Context) string { f.Burn("Identity"); return "name" },
			Classify: func(context.Context, connect.Spec, http.Header) spillway.Call {
				f.Burn("Classify")
				return spillway.Call{}
			},
		})
		if err != nil {
			t.Fatal(err)
		}
		return rig{server, connect.Spec{Procedure: procedure}, f, func() int {
			s := gates.Stats(time.Now())
			return s.Shed.InFlight + s.Shed.Waiting + s.InFlight.InFlight + s.InFlight.Waiting
		}, gates.Close}
	}, points)
}

// burning is a stream of the host, on either side.
type burning struct {
	f      *spilltest.Fuse
	header http.Header
	left   int
	spec   connect.Spec
}

func (b *burning) burn(method string) error {
	b.f.Burn(method)
	return nil
}

func (b *burning) Receive(any) error {
	if b.f.Burn("Receive"); b.left == 0 {
		return io.EOF
	}
	b.left--
	return nil
}

func (b *burning) Spec() connect.Spec           { return b.spec }
func (b *burning) Peer() connect.Peer           { return connect.Peer{Addr: "backend"} }
func (b *burning) Send(any) error               { return b.burn("Send") }
func (b *burning) RequestHeader() http.Header   { return b.header }
func (b *burning) CloseRequest() error          { return b.burn("CloseRequest") }
func (b *burning) ResponseHeader() http.Header  { return b.header }
func (b *burning) ResponseTrailer() http.Header { return b.header }
func (b *burning) CloseResponse() error         { return b.burn("CloseResponse") }

// exchange sends and receives two messages.
func exchange(send func(any) error, receive func(any) error) error {
	for range 2 {
		if err := errors.Join(send(nil), receive(nil)); err != nil {
			return err
		}
	}
	return nil
}

// stream makes a stream, and closes it whatever happens.
func stream(ctx context.Context, f *spilltest.Fuse, r rig) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	c := r.WrapStreamingClient(func(_ context.Context, spec connect.Spec) connect.StreamingClientConn {
		f.Burn("Interceptor")
		return &burning{f, make(http.Header), 2, spec}
	})(ctx, r.spec)
	err := exchange(c.Send, c.Receive)
	if end := errors.Join(c.CloseRequest(), c.Receive(nil)); err == nil && !errors.Is(end, io.EOF) {
		err = end
	}
	return errors.Join(err, c.CloseResponse())
}

// serve serves a stream.
func serve(ctx context.Context, f *spilltest.Fuse, r rig) error {
	return r.WrapStreamingHandler(func(_ context.Context, c connect.StreamingHandlerConn) error {
		f.Burn("handler")
		return exchange(c.Send, c.Receive)
	})(ctx, &burning{f, make(http.Header), 2, r.spec})
}
