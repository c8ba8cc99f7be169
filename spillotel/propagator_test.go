package spillotel

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"go.opentelemetry.io/otel/baggage"
	"go.opentelemetry.io/otel/propagation"

	"github.com/seed90641741/spillway"
)

// numbered returns a baggage of n members.
func numbered(n int, value string) string {
	var all []string
	for i := range n {
		all = append(all, fmt.Sprintf("k%d=%s", i, value))
	}
	return strings.Join(all, ",")
}

// TestRoundTrip sends a class with a baggage, and receives it with and without
// trust in the sender.
func TestRoundTrip(t *testing.T) {
	for _, row := range []struct {
		name     string
		class    spillway.Criticality
		labelled bool
		baggage  string
		want     spillway.Criticality
		known    bool
		others   int
	}{
		{"labelled", spillway.SheddablePlus, true, "", spillway.SheddablePlus, true, 0},
		{"the usual class, labelled", spillway.Critical, true, "", spillway.Critical, true, 0},
		{"not labelled", 0, false, "a=1", spillway.Critical, false, 1},
		{"beside others", spillway.CriticalPlus, true, "a=1,b=%20x;p", spillway.CriticalPlus, true, 2},
		{"in place of another", spillway.Sheddable, true, "criticality=CRITICAL_PLUS,a=1", spillway.Sheddable, true, 1},
		{"as many members as fit", spillway.Sheddable, true, numbered(63, "v"), spillway.Sheddable, true, 63},
		{"too many members: others are kept", spillway.Sheddable, true, numbered(64, "v"), spillway.Critical, false, 64},
		{"too many bytes: others are kept", spillway.Sheddable, true, numbered(2, strings.Repeat("v", 4084)), spillway.Critical, false, 2},
	} {
		t.Run(row.name, func(t *testing.T) {
			ctx := context.Background()
			b, err := baggage.Parse(row.baggage)
			if err != nil {
				t.Fatal(err)
			}
			ctx = baggage.ContextWithBaggage(ctx, b)
			if row.labelled {
				ctx = spillway.WithCriticality(ctx, row.class)
			}
			carrier := propagation.MapCarrier{}
			Propagator{}.Inject(ctx, carrier)

			got := Propagator{Internal: true}.Extract(context.Background(), carrier)
			if class, ok := spillway.LookupCriticality(got); class != row.want || ok != row.known {
				t.Errorf("trusted: %v, %v, want %v, %v", class, ok, row.want, row.known)
			}
			edge := Propagator{}.Extract(context.Background(), carrier)
			if class, ok := spillway.LookupCriticality(edge); ok {
				t.Errorf("not trusted: %v", class)
			}
			for name, ctx := range map[string]context.Context{"trusted": got, "not trusted": edge} {
				b := baggage.FromContext(ctx)
				if b.Len() != row.others || b.Member(member).Key() != "" {
					t.Errorf("%s: %d members, want %d: %s", name, b.Len(), row.others, b)
				}
			}
		})
	}
}

// TestExistingCarrier: a baggage that the carrier already has is kept.
func TestExistingCarrier(t *testing.T) {
	carrier := propagation.MapCarrier{"baggage": "tenant=7"}
	Propagator{}.Inject(spillway.WithCriticality(context.Background(), spillway.Sheddable), carrier)
	if got := carrier["baggage"]; got != "criticality=SHEDDABLE,tenant=7" {
		t.Errorf("got %q", got)
	}
	if got := (Propagator{}).Fields(); len(got) != 1 || got[0] != "baggage" {
		t.Errorf("fields %v", got)
	}
}

// FuzzExtract: what a sender makes up changes no class without trust, and breaks nothing.
func FuzzExtract(f *testing.F) {
	for _, seed := range []string{"", "criticality=CRITICAL_PLUS", "criticality", "a=1,criticality=\xff;x", ",,=,criticality=,", "criticality=SHEDDABLE,criticality=CRITICAL"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, value string) {
		carrier := propagation.MapCarrier{"baggage": value}
		if class, ok := spillway.LookupCriticality(Propagator{}.Extract(context.Background(), carrier)); ok {
			t.Errorf("%v", class)
		}
		ctx := Propagator{Internal: true}.Extract(context.Background(), carrier)
		out := propagation.MapCarrier{}
		Propagator{}.Inject(ctx, out)
		class, ok := spillway.LookupCriticality(ctx)
		if again, too := spillway.LookupCriticality(Propagator{Internal: true}.Extract(context.Background(), out)); ok && too && again != class {
			t.Errorf("%q: %v, then %v", value, class, again)
		}
	})
}
