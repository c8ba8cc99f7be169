package exporters_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"go.opentelemetry.io/otel/baggage"
	"go.opentelemetry.io/otel/propagation"

	"github.com/seed90641741/spillway"
	"github.com/seed90641741/spillway/ingress"
	"github.com/seed90641741/spillway/spillhttp"
)

// relay is a service without Spillway that passes baggage on with the propagator of
// OpenTelemetry, and adds other members to it.
func relay(t *testing.T, next string, own int) *httptest.Server {
	t.Helper()
	var propagator propagation.Baggage
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		ctx := propagator.Extract(r.Context(), propagation.HeaderCarrier(r.Header))
		b := baggage.FromContext(ctx)
		for i := range own {
			m, err := baggage.NewMemberRaw(fmt.Sprintf("own%d", i), "value with spaces")
			if err != nil {
				t.Error(err)
			}
			if b, err = b.SetMember(m); err != nil {
				t.Error(err)
			}
		}
		out, err := http.NewRequestWithContext(baggage.ContextWithBaggage(ctx, b), http.MethodGet, next, nil)
		if err != nil {
			t.Error(err)
			return
		}
		propagator.Inject(out.Context(), propagation.HeaderCarrier(out.Header))
		resp, err := http.DefaultClient.Do(out)
		if err != nil {
			t.Error(err)
			return
		}
		resp.Body.Close()
		w.WriteHeader(resp.StatusCode)
	}))
	t.Cleanup(s.Close)
	return s
}

// The class that a Transport sends passes through a service without Spillway, and the next
// Handler uses it.
func TestCriticalityPassesOpenTelemetry(t *testing.T) {
	for _, row := range []struct {
		name     string
		class    spillway.Criticality
		labelled bool
		own      int
		baggage  string // of the caller
		want     spillway.Criticality
		others   int
	}{
		{"labelled", spillway.SheddablePlus, true, 0, "", spillway.SheddablePlus, 0},
		{"the highest", spillway.CriticalPlus, true, 0, "", spillway.CriticalPlus, 0},
		{"beside others", spillway.Sheddable, true, 3, "a=1,b=%20x;p", spillway.Sheddable, 5},
		{"in place of another", spillway.Sheddable, true, 1, "criticality=CRITICAL_PLUS,a=1", spillway.Sheddable, 2},
		{"with as many members as fit", spillway.Sheddable, true, 0, numbered(63), spillway.Sheddable, 63},
		{"with no place left: others are kept", spillway.Sheddable, true, 0, numbered(64), spillway.Critical, 64},
		{"not labelled", 0, false, 2, "a=1", spillway.Critical, 3},
	} {
		t.Run(row.name, func(t *testing.T) {
			var got spillway.Criticality
			var members int
			gates, err := ingress.New(ingress.Config{Trust: ingress.Trust{Boundary: ingress.Internal, DefaultMax: spillway.CriticalPlus}})
			if err != nil {
				t.Fatal(err)
			}
			defer gates.Close()
			handler, err := spillhttp.NewHandler(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
				got = spillway.CriticalityFrom(r.Context())
				ctx := propagation.Baggage{}.Extract(r.Context(), propagation.HeaderCarrier(r.Header))
				for _, m := range baggage.FromContext(ctx).Members() {
					if m.Key() != "criticality" {
						members++
					}
				}
			}), spillhttp.HandlerConfig{Ingress: gates})
			if err != nil {
				t.Fatal(err)
			}
			last := httptest.NewServer(handler)
			defer last.Close()
			transport, err := spillhttp.NewTransport(spillhttp.TransportConfig{})
			if err != nil {
				t.Fatal(err)
			}
			ctx := context.Background()
			if row.labelled {
				ctx = spillway.WithCriticality(ctx, row.class)
			}
			req, err := http.NewRequestWithContext(ctx, http.MethodGet, relay(t, last.URL, row.own).URL, nil)
			if err != nil {
				t.Fatal(err)
			}
			if row.baggage != "" {
				req.Header.Set("Baggage", row.baggage)
			}
			resp, err := transport.RoundTrip(req)
			if err != nil {
				t.Fatal(err)
			}
			resp.Body.Close()
			if got != row.want || members != row.others {
				t.Errorf("%v and %d other members arrive, want %v and %d; the answer is %s %v", got, members, row.want, row.others, resp.Status, resp.Header)
			}
		})
	}
}

// numbered returns a baggage of n members.
func numbered(n int) string {
	var all []string
	for i := range n {
		all = append(all, fmt.Sprintf("k%d=v", i))
	}
	return strings.Join(all, ",")
}
