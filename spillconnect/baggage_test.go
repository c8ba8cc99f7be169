package spillconnect

import (
	"context"
	"net/http"
	"testing"

	"connectrpc.com/connect"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/seed90641741/spillway"
	"github.com/seed90641741/spillway/ingress"
)

// A handler that passes on all baggage, as those with OpenTelemetry do, must not pass on a class that was not believed.
func TestBaggageThatWasNotBelieved(t *testing.T) {
	inside := ingress.Trust{Boundary: ingress.Internal, DefaultMax: spillway.CriticalPlus}
	capped := ingress.Trust{Boundary: ingress.Internal, DefaultMax: spillway.SheddablePlus}
	for _, row := range []struct {
		name                  string
		trust                 ingress.Trust
		label, baggage, wants string
	}{
		{"edge, raised", ingress.Trust{}, "", "a=1,criticality=CRITICAL_PLUS,b=2", "a=1,b=2"},
		{"edge, raised, nothing else", ingress.Trust{}, "", "criticality=CRITICAL_PLUS", ""},
		{"edge, lowered", ingress.Trust{}, "", "a=1,criticality=SHEDDABLE", "a=1,criticality=SHEDDABLE"},
		{"edge, the header lowers and baggage raises", ingress.Trust{}, "SHEDDABLE", "criticality=CRITICAL_PLUS,a=1", "criticality=SHEDDABLE,a=1"},
		{"edge, without", ingress.Trust{}, "SHEDDABLE", "a=1", "a=1"},
		{"internal", inside, "", "a=1,criticality=CRITICAL_PLUS", "a=1,criticality=CRITICAL_PLUS"},
		{"internal, capped", capped, "", "a=1,criticality=CRITICAL_PLUS", "criticality=SHEDDABLE_PLUS,a=1"},
	} {
		t.Run(row.name, func(t *testing.T) {
			for kind, got := range baggageOf(t, row.trust, row.label, row.baggage) {
				if got != row.wants {
					t.Errorf("%s: %q, want %q", kind, got, row.wants)
				}
			}
		})
	}
}

// A proxy passes on the request that it has received. It must not pass on a class that was not believed, which the Client would
// believe as its caller's own.
func TestLabelThatWasNotBelieved(t *testing.T) {
	for _, row := range []struct {
		name        string
		trust       ingress.Trust
		label, want string
	}{
		{"edge, raised", ingress.Trust{}, "CRITICAL_PLUS", ""},
		{"edge, lowered", ingress.Trust{}, "SHEDDABLE", "SHEDDABLE"},
		{"internal", ingress.Trust{Boundary: ingress.Internal, DefaultMax: spillway.CriticalPlus}, "CRITICAL_PLUS", "CRITICAL_PLUS"},
		{"internal, capped", ingress.Trust{Boundary: ingress.Internal, DefaultMax: spillway.SheddablePlus}, "CRITICAL_PLUS", "SHEDDABLE_PLUS"},
	} {
		var got string
		behind := start(t, map[string]http.Handler{procedure: connect.NewUnaryHandler(procedure,
			func(ctx context.Context, req *connect.Request[message]) (*connect.Response[message], error) {
				got = req.Header().Get(headerCriticality)
				return echo(ctx, req)
			})})
		below := connect.NewClient[message, message](behind.Client(), behind.URL+procedure, connect.WithInterceptors(newClient(t, ClientConfig{})))
		proxy := start(t, map[string]http.Handler{procedure: connect.NewUnaryHandler(procedure, below.CallUnary,
			connect.WithInterceptors(newServer(t, ServerConfig{}, ingress.Config{Trust: row.trust})))})
		req := connect.NewRequest(wrapperspb.String("x"))
		req.Header().Set(headerCriticality, row.label)
		if _, err := connect.NewClient[message, message](proxy.Client(), proxy.URL+procedure).CallUnary(t.Context(), req); err != nil {
			t.Fatal(err)
		}
		if got != row.want {
			t.Errorf("%s: the service behind the proxy gets %q, want %q", row.name, got, row.want)
		}
	}
}

// baggageOf returns the baggage that handlers find in a call and in a stream with a label and a baggage, by protocol.
func baggageOf(t *testing.T, trust ingress.Trust, label, baggage string) map[string]string {
	t.Helper()
	all := make(map[string]string)
	for name, options := range protocols {
		server := connect.WithInterceptors(newServer(t, ServerConfig{}, ingress.Config{Trust: trust}))
		s := start(t, map[string]http.Handler{
			procedure: connect.NewUnaryHandler(procedure, func(ctx context.Context, req *connect.Request[message]) (*connect.Response[message], error) {
				all[name] = req.Header().Get("Baggage")
				return echo(ctx, req)
			}, server),
			procedure + "s": connect.NewServerStreamHandler(procedure+"s", func(_ context.Context, req *connect.Request[message], _ *connect.ServerStream[message]) error {
				all[name+" stream"] = req.Header().Get("Baggage")
				return nil
			}, server),
		})
		req := func() *connect.Request[message] {
			r := connect.NewRequest(wrapperspb.String("x"))
			r.Header().Set("Baggage", baggage)
			if label != "" {
				r.Header().Set(headerCriticality, label)
			}
			return r
		}
		if _, err := connect.NewClient[message, message](s.Client(), s.URL+procedure, options...).CallUnary(t.Context(), req()); err != nil {
			t.Fatal(err)
		}
		stream, err := connect.NewClient[message, message](s.Client(), s.URL+procedure+"s", options...).CallServerStream(t.Context(), req())
		if err != nil || stream.Receive() || stream.Close() != nil {
			t.Fatal(err, stream.Err())
		}
	}
	return all
}
