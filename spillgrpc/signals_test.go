package spillgrpc

import (
	"context"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/stats"
	"google.golang.org/grpc/status"

	pb "google.golang.org/grpc/interop/grpc_testing"

	"github.com/seed90641741/spillway"
	"github.com/seed90641741/spillway/ingress"
	"github.com/seed90641741/spillway/ratelimit"
)

// tracing is a stats handler that passes on all baggage, as those for tracing do:
// it sees the metadata before any interceptor.
type tracing struct{ stats.Handler }

type seenKey struct{}

func (tracing) TagRPC(ctx context.Context, _ *stats.RPCTagInfo) context.Context {
	md, _ := metadata.FromIncomingContext(ctx)
	return context.WithValue(ctx, seenKey{}, strings.Join(md[keyBaggage], "|"))
}
func (tracing) HandleRPC(context.Context, stats.RPCStats)                         {}
func (tracing) TagConn(ctx context.Context, _ *stats.ConnTagInfo) context.Context { return ctx }
func (tracing) HandleConn(context.Context, stats.ConnStats)                       {}

// A class travels as baggage, too, and one that was not believed goes no further,
// neither to handlers nor to stats handlers.
func TestBaggage(t *testing.T) {
	const c, b = keyCriticality, keyBaggage
	for _, row := range []struct {
		name     string
		boundary ingress.Boundary
		label    bool
		external bool
		pairs    []string
		want     string
	}{
		{"labelled", ingress.Internal, true, false, nil, "criticality=SHEDDABLE"},
		{"labelled, beside others", ingress.Internal, true, false, []string{b, "a=1,criticality=CRITICAL_PLUS"}, "criticality=SHEDDABLE,a=1"},
		{"labelled by metadata", ingress.Internal, false, false, []string{c, "SHEDDABLE", b, "a=1"}, "criticality=SHEDDABLE,a=1"},
		{"not labelled", ingress.Internal, false, false, []string{b, "a=1"}, "a=1"},
		{"to others", ingress.Internal, true, true, []string{b, "a=1,criticality=SHEDDABLE"}, "a=1"},
		{"edge, lowered", ingress.Edge, true, false, nil, "criticality=SHEDDABLE"},
		{"edge, raised", ingress.Edge, false, false, []string{b, "criticality=CRITICAL_PLUS,a=1"}, "a=1"},
		{"edge, raised, nothing else", ingress.Edge, false, false, []string{b, "criticality=CRITICAL_PLUS"}, ""},
		{"edge, the label lowers, baggage raises", ingress.Edge, false, false, []string{c, "SHEDDABLE_PLUS", b, "criticality=CRITICAL_PLUS"}, "criticality=SHEDDABLE_PLUS"},
	} {
		t.Run(row.name, func(t *testing.T) {
			inBubble(t, func(t *testing.T) {
				var handled, traced string
				gates := ingress.Config{Trust: ingress.Trust{Boundary: row.boundary, DefaultMax: spillway.CriticalPlus}}
				s := open(t, &service{unary: func(ctx context.Context) error {
					md, _ := metadata.FromIncomingContext(ctx)
					handled = strings.Join(md[keyBaggage], "|")
					traced, _ = ctx.Value(seenKey{}).(string)
					return nil
				}}, append(mustServer(t, gates, ServerConfig{}).Options(), grpc.StatsHandler(tracing{}))...)
				ctx := metadata.AppendToOutgoingContext(t.Context(), row.pairs...)
				if row.label {
					ctx = spillway.WithCriticality(ctx, spillway.Sheddable)
				}
				if err := call(ctx, s.dial(mustClient(t, ClientConfig{External: row.external}).DialOptions()...)); err != nil {
					t.Fatal(err)
				}
				if handled != row.want || traced != row.want {
					t.Errorf("the handler sees %q and the stats handler %q, want %q", handled, traced, row.want)
				}
			})
		})
	}
}

// A proxy passes on all metadata. It must not pass on a class that was not believed, which the Client would believe as its caller's
// own.
func TestLabelThatWasNotBelieved(t *testing.T) {
	for _, row := range []struct {
		name   string
		trust  ingress.Trust
		labels []string
		want   string
	}{
		{"edge, raised", ingress.Trust{}, []string{"CRITICAL_PLUS"}, ""},
		{"edge, lowered", ingress.Trust{}, []string{"SHEDDABLE"}, "SHEDDABLE"},
		{"edge, lowered once and raised once", ingress.Trust{}, []string{"CRITICAL_PLUS", "SHEDDABLE"}, "SHEDDABLE"},
		{"internal", ingress.Trust{Boundary: ingress.Internal, DefaultMax: spillway.CriticalPlus}, []string{"CRITICAL_PLUS"}, "CRITICAL_PLUS"},
		{"internal, capped", ingress.Trust{Boundary: ingress.Internal, DefaultMax: spillway.SheddablePlus}, []string{"CRITICAL_PLUS"}, "SHEDDABLE_PLUS"},
	} {
		t.Run(row.name, func(t *testing.T) {
			inBubble(t, func(t *testing.T) {
				var got string
				behind := open(t, &service{unary: func(ctx context.Context) error {
					got = strings.Join(metadata.ValueFromIncomingContext(ctx, keyCriticality), "|")
					return nil
				}})
				cc := behind.dial(mustClient(t, ClientConfig{}).DialOptions()...)
				proxy := open(t, &service{unary: func(ctx context.Context) error {
					md, _ := metadata.FromIncomingContext(ctx)
					return call(metadata.NewOutgoingContext(ctx, metadata.MD{keyCriticality: md[keyCriticality]}), cc)
				}}, mustServer(t, ingress.Config{Trust: row.trust}, ServerConfig{}).Options()...)
				ctx := metadata.NewOutgoingContext(t.Context(), metadata.MD{keyCriticality: row.labels})
				if err := call(ctx, proxy.dial()); err != nil {
					t.Fatal(err)
				}
				if got != row.want {
					t.Errorf("the service behind the proxy gets %q, want %q", got, row.want)
				}
			})
		})
	}
}

// overload makes a server know how it stands with calls of a class.
func overload(t *testing.T, s *ingress.Server, c spillway.Criticality) {
	t.Helper()
	now := time.Now()
	for range 200 {
		now = now.Add(20 * time.Millisecond)
		var p ingress.Slot
		p.EnterAt(t.Context(), s, now, &spillway.Call{Criticality: c}, new(ratelimit.Caller))
		p.DoneAt(now, spillway.OutcomeServed)
	}
}

// A handler gets the level of its call, and a client with few calls is throttled by the accept
// ratio of the server, if the server is internal.
func TestSignals(t *testing.T) {
	for _, row := range []struct {
		name      string
		boundary  ingress.Boundary
		external  bool
		throttled bool
	}{
		{"internal", ingress.Internal, false, true},
		{"edge", ingress.Edge, false, false},
		{"others", ingress.Internal, true, false},
	} {
		t.Run(row.name, func(t *testing.T) {
			inBubble(t, func(t *testing.T) {
				var level [2]spillway.DegradationLevel
				gates := ingress.Config{Load: utilization(0.91), Shed: patient, Trust: ingress.Trust{Boundary: row.boundary}}
				server := mustServer(t, gates, ServerConfig{})
				overload(t, server.ingress, spillway.Critical) // near its threshold
				s := open(t, &service{
					unary: func(ctx context.Context) error { level[0] = spillway.DegradationFrom(ctx); return nil },
					output: func(_ *pb.StreamingOutputCallRequest, ss pb.TestService_StreamingOutputCallServer) error {
						level[1] = spillway.DegradationFrom(ss.Context())
						return nil
					},
				}, server.Options()...)
				client := mustClient(t, ClientConfig{External: row.external, Egress: eager})
				cc := s.dial(client.DialOptions()...)
				if err := call(t.Context(), cc); err != nil {
					t.Fatal(err)
				}
				stream, err := pb.NewTestServiceClient(cc).StreamingOutputCall(t.Context(), &pb.StreamingOutputCallRequest{})
				if err != nil {
					t.Fatal(err)
				}
				_, _ = stream.Recv()
				if level != [2]spillway.DegradationLevel{1, 1} {
					t.Errorf("levels %v, want low: %+v", level, server.ingress.Stats(time.Now()).Degradation)
				}
			})
			inBubble(t, func(t *testing.T) {
				gates := ingress.Config{Load: utilization(0.91), Shed: patient, Trust: ingress.Trust{Boundary: row.boundary}}
				server := mustServer(t, gates, ServerConfig{})
				overload(t, server.ingress, spillway.Sheddable) // all rejected
				s := open(t, &service{}, grpc.ChainUnaryInterceptor(server.UnaryInterceptor))
				client := mustClient(t, ClientConfig{External: row.external})
				cc := s.dial(client.DialOptions()...)
				for range 3 {
					_ = call(spillway.WithCriticality(t.Context(), spillway.Sheddable), cc) // is rejected
				}
				for _, st := range client.Stats(time.Now()) {
					if p := st.Throttle[spillway.Sheddable.Index()].Probability; (p > 0) != (row.throttled && !row.external) {
						t.Errorf("after three rejected calls the probability is %v", p)
					}
				}
			})
		})
	}
}

// TestTrailerAfterAWait: a call that was served after a wait of 5 ms or longer says that another
// task may be less busy. One that did not wait says nothing, and neither does an error of the
// handler: there it would mean that nothing was processed.
func TestTrailerAfterAWait(t *testing.T) {
	for _, row := range []struct {
		work time.Duration
		err  error
		want string
	}{
		{20 * time.Millisecond, nil, "task"},
		{2 * time.Millisecond, nil, ""},
		{20 * time.Millisecond, status.Error(codes.Unavailable, "the handler's own"), ""},
	} {
		inBubble(t, func(t *testing.T) {
			gates := must(ingress.New(ingress.Config{MaxInFlight: 1}))
			defer gates.Close()
			s := open(t, &service{unary: func(context.Context) error {
				time.Sleep(row.work)
				return row.err
			}}, must(NewServer(ServerConfig{Ingress: gates})).Options()...)
			cc := s.dial()
			says := func() string {
				var trailer metadata.MD
				if err := call(t.Context(), cc, grpc.Trailer(&trailer)); status.Code(err) != status.Code(row.err) {
					t.Error(err)
				}
				return strings.Join(trailer[keyScope], ",")
			}
			var both sync.WaitGroup
			first := ""
			both.Go(func() { first = says() })
			synctest.Wait()
			second := says()
			both.Wait()
			if first != "" || second != row.want {
				t.Errorf("work of %v, %v: says %q, and after a wait %q, want %q", row.work, row.err, first, second, row.want)
			}
		})
	}
}
