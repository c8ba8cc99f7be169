package spillxds_test

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	discoveryv3 "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	lrsv3 "github.com/envoyproxy/go-control-plane/envoy/service/load_stats/v3"
	"google.golang.org/grpc"
	"google.golang.org/grpc/test/bufconn"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/seed90641741/spillway"
	"github.com/seed90641741/spillway/egress"
	"github.com/seed90641741/spillway/spilltest"
	"github.com/seed90641741/spillway/spillxds"
)

// A rig is a client of one cluster, whose limits come from a script.
type rig struct {
	*spilltest.Fuse
	client *spillxds.Client
	users  *spillxds.Cluster
	calls  *egress.Client
	plane  *answering
	server *grpc.Server
}

func (r rig) Held() int {
	s := r.client.Stats(time.Now()).Clusters[key("users")]
	return s.InFlight.InFlight + s.Retries + r.users.InProgress()
}

func (r rig) Close() error {
	r.users.Close()
	err := r.client.Close()
	r.server.Stop()
	return err
}

// call makes a request to the cluster, under its limits, and has it counted.
func (r rig) call(ctx context.Context) error {
	return r.calls.Do(ctx, spillway.Call{Idempotent: true}, func(ctx context.Context, _ *egress.Attempt) error {
		req := must(http.NewRequestWithContext(ctx, http.MethodGet, "http://users.example", nil))
		resp, err := r.users.RoundTripper(r).RoundTrip(req)
		if err != nil {
			return err
		}
		defer resp.Body.Close()
		if resp.StatusCode != http.StatusOK {
			return spilltest.ErrBusy
		}
		_, err = io.Copy(io.Discard, resp.Body)
		return err
	})
}

// RoundTrip implements [http.RoundTripper]. It is the base.
func (r rig) RoundTrip(req *http.Request) (*http.Response, error) {
	resp := &http.Response{StatusCode: http.StatusOK, Body: &burningBody{r.Fuse, 2}}
	switch err := r.Work(req.Context()); {
	case errors.Is(err, spilltest.ErrBusy):
		resp.StatusCode = http.StatusServiceUnavailable
	case err != nil:
		return nil, err
	}
	return resp, nil
}

// burningBody is a body in parts.
type burningBody struct {
	f    *spilltest.Fuse
	left int
}

func (b *burningBody) Read(p []byte) (int, error) {
	if b.f.Burn("Body.Read"); b.left == 0 {
		return 0, io.EOF
	}
	b.left--
	return copy(p, "x"), nil
}

func (b *burningBody) Close() error {
	b.f.Burn("Body.Close")
	return nil
}

// answering is a control plane that sends the limit that it has to each new stream, and to all when it changes.
type answering struct {
	*script

	changes chan uint32
	limit   uint32
}

func (a *answering) run(ctx context.Context) {
	var open []*conversation
	for {
		select {
		case st := <-a.streams:
			<-st.requests
			open = append(open, st)
			_ = st.send(answer("1", "a", cluster("users", a.limit)))
		case a.limit = <-a.changes:
			for _, st := range open { // also those that have ended
				_ = st.send(answer("1", "a", cluster("users", a.limit)))
			}
		case r := <-a.reports:
			_ = r.Send(&lrsv3.LoadStatsResponse{Clusters: []string{"users"}, LoadReportingInterval: durationpb.New(time.Second)})
		case <-ctx.Done():
			return
		}
	}
}

// intercept is a stream interceptor of the user.
func intercept(f *spilltest.Fuse) grpc.StreamClientInterceptor {
	return func(ctx context.Context, d *grpc.StreamDesc, cc *grpc.ClientConn, m string, next grpc.Streamer, opts ...grpc.CallOption) (grpc.ClientStream, error) {
		f.Burn("Interceptor")
		s, err := next(ctx, d, cc, m, opts...)
		return burningStream{s, f}, err
	}
}

type burningStream struct {
	grpc.ClientStream

	f *spilltest.Fuse
}

func (s burningStream) SendMsg(m any) error {
	s.f.Burn("SendMsg")
	return s.ClientStream.SendMsg(m)
}

func (s burningStream) RecvMsg(m any) error {
	err := s.ClientStream.RecvMsg(m)
	s.f.Burn("RecvMsg")
	return err
}

var errNotInForce = errors.New("the limit is not in force")

// watch has the control plane change the limit, and report, again and again, until a minute has passed. Streams that end are opened
// again meanwhile.
func watch(ctx context.Context, _ *spilltest.Fuse, r rig) error {
	for limit := range uint32(3) {
		r.plane.changes <- 100 + limit
		time.Sleep(10 * time.Second)
		if r.users.Limiter().Stats(time.Now()).MaxInFlight != int(100+limit) {
			return errNotInForce
		}
		if err := r.call(ctx); err != nil {
			return err
		}
	}
	return nil
}

// testPanics: code of the user that is called for a call panics for its caller, and what runs for none is told to the Observer.
func testPanics(t *testing.T) {
	points := spilltest.Calls(func(ctx context.Context, r rig) error { return r.call(ctx) }, nil)
	points.Waiting.Do, points.Waiting.Not = nil, "a client has no queue"
	points.Hedge.Do, points.Hedge.Not = nil, "a Cluster hedges no calls"
	points.Stream.Do = watch
	spilltest.TestPanics(t, openRig, points)
}

func openRig(t *testing.T, f *spilltest.Fuse) rig {
	listener := bufconn.Listen(1 << 20)
	plane := &answering{&script{streams: make(chan *conversation, 100), reports: make(chan *reports, 100)}, make(chan uint32), 10}
	if f.Point == "Rejected" {
		plane.limit = 1
	}
	server := grpc.NewServer()
	discoveryv3.RegisterAggregatedDiscoveryServiceServer(server, plane)
	lrsv3.RegisterLoadReportingServiceServer(server, plane)
	go server.Serve(listener)
	go plane.run(t.Context())
	client := must(spillxds.New(spillxds.Config{
		Bootstrap: must(spillxds.ParseBootstrap([]byte(`{"node": {"id": "n1"},
			"xds_servers": [{"server_uri": "passthrough:///plane", "channel_creds": [{"type": "insecure"}]}]}`))),
		DialOptions: []grpc.DialOption{
			grpc.WithContextDialer(func(ctx context.Context, _ string) (net.Conn, error) { return listener.DialContext(ctx) }),
			grpc.WithStreamInterceptor(intercept(f)),
		},
		Locality: func(string) spillxds.Locality { f.Burn("Locality"); return spillxds.Locality{} },
		Observer: func(e spillxds.Event) { f.Burn("Observer"); f.Caught(e.Err) },
	}))
	users := must(client.Cluster(key("users")))
	if err := users.Ready(t.Context()); err != nil {
		t.Fatal(err)
	}
	synctest.Wait() // the stream of reports is open, too
	c := f.Egress(egress.Config{})
	c.MaxInFlight = 0 // the limit is that of the cluster
	return rig{f, client, users, must(egress.New(users.Egress(c))), plane, server}
}

// An Observer that always panics ends nothing: limits come into force, panics are counted, and Close returns.
func TestObserverThatAlwaysPanics(t *testing.T) {
	played(t, spillxds.Config{Observer: func(spillxds.Event) { panic("observer") }}, func(t *testing.T, s *script, c *spillxds.Client) {
		users := must(c.Cluster(key("users")))
		st := <-s.streams
		<-st.requests
		_ = st.send(answer("1", "a", cluster("users", 10)))
		is(t, <-st.requests, "1/a/users")
		limit(t, users, 10)
		if n := c.Stats(time.Now()).PanicsTotal; n != 4 { // connected, updated, and that it has panicked, twice
			t.Errorf("%d panics are counted", n)
		}
	})
}

// baseFunc is a base that is a func.
type baseFunc func(*http.Request) (*http.Response, error)

func (f baseFunc) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// A request whose base panics is not in progress for good.
func TestPanicOfTheBase(t *testing.T) {
	played(t, spillxds.Config{}, func(t *testing.T, _ *script, c *spillxds.Client) {
		users := must(c.Cluster(key("users")))
		base := users.RoundTripper(baseFunc(func(*http.Request) (*http.Response, error) { panic("base") }))
		func() {
			defer func() {
				if p := recover(); p != "base" {
					t.Errorf("recovered %v", p)
				}
			}()
			_, _ = base.RoundTrip(must(http.NewRequestWithContext(t.Context(), http.MethodGet, "http://users.example", nil)))
		}()
		if n := users.InProgress(); n != 0 {
			t.Errorf("%d requests are in progress", n)
		}
	})
}
