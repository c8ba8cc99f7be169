package spillhttp

import (
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/seed90641741/spillway"
	"github.com/seed90641741/spillway/ingress"
	"github.com/seed90641741/spillway/internal/serving"
	"github.com/seed90641741/spillway/ratelimit"
)

func TestBaggageIsSent(t *testing.T) {
	for _, row := range []struct {
		name         string
		labelled     bool
		external     bool
		before, want []string
	}{
		{"labelled", true, false, nil, []string{"criticality=SHEDDABLE"}},
		{"labelled, beside others", true, false, []string{"a=1", "b=2"}, []string{"criticality=SHEDDABLE,a=1,b=2"}},
		{"labelled, in place of another class", true, false, []string{"criticality=CRITICAL_PLUS,a=1"}, []string{"criticality=SHEDDABLE,a=1"}},
		{"labelled, at the limit", true, false, []string{strings.Repeat("k=v,", 63) + "k=v"}, []string{strings.Repeat("k=v,", 63) + "k=v"}},
		{"not labelled", false, false, []string{"a=1,criticality=SHEDDABLE"}, []string{"a=1,criticality=SHEDDABLE"}},
		{"to others", true, true, []string{"a=1,criticality=SHEDDABLE"}, []string{"a=1"}},
		{"to others, nothing else", true, true, []string{"criticality=SHEDDABLE"}, nil},
	} {
		var got []string
		base := baseFunc(func(req *http.Request) (*http.Response, error) {
			got = req.Header.Values("Baggage")
			return answer(req, 200, ""), nil
		})
		rt := mustTransport(t, TransportConfig{Base: base, External: func(*http.Request) bool { return row.external }})
		ctx := t.Context()
		if row.labelled {
			ctx = spillway.WithCriticality(ctx, spillway.Sheddable)
		}
		req := newRequest(t, ctx, http.MethodGet, nil)
		for _, v := range row.before {
			req.Header.Add("Baggage", v)
		}
		roundTrip(t, rt, req)
		if !slices.Equal(got, row.want) {
			t.Errorf("%s: %q, want %q", row.name, got, row.want)
		}
		if now := req.Header.Values("Baggage"); !slices.Equal(now, row.before) {
			t.Errorf("%s: the caller's header became %q", row.name, now)
		}
	}
}

// A handler that passes on all baggage, as those with OpenTelemetry do, must not
// pass on a class that was not believed.
func TestBaggageThatWasNotBelieved(t *testing.T) {
	capped := ingress.Trust{Boundary: ingress.Internal, DefaultMax: spillway.SheddablePlus}
	for _, row := range []struct {
		name                  string
		trust                 ingress.Trust
		label, baggage, wants string
	}{
		{"edge, raised", ingress.Trust{}, "", "a=1,criticality=CRITICAL_PLUS,b=2", "a=1,b=2"},
		{"edge, raised, nothing else", ingress.Trust{}, "", "criticality=CRITICAL_PLUS", ""},
		{"edge, lowered", ingress.Trust{}, "", "a=1,criticality=SHEDDABLE", "a=1,criticality=SHEDDABLE"},
		{"edge, lowered once and raised once", ingress.Trust{}, "", "criticality=CRITICAL_PLUS,criticality=SHEDDABLE", "criticality=SHEDDABLE"},
		{"edge, the header lowers and baggage raises", ingress.Trust{}, "SHEDDABLE", "criticality=CRITICAL_PLUS,a=1", "criticality=SHEDDABLE,a=1"},
		{"edge, without", ingress.Trust{}, "SHEDDABLE", "a=1", "a=1"},
		{"edge, 10,000 members", ingress.Trust{}, "", strings.Repeat("a=1,", 10000) + "criticality=CRITICAL_PLUS", strings.Repeat("a=1,", 9999) + "a=1"},
		{"internal", internal.Trust, "", "a=1,criticality=CRITICAL_PLUS", "a=1,criticality=CRITICAL_PLUS"},
		{"internal, capped", capped, "", "a=1,criticality=CRITICAL_PLUS", "criticality=SHEDDABLE_PLUS,a=1"},
		{"internal, no class", internal.Trust, "", "a=1,criticality=URGENT", "a=1"},
	} {
		var got string
		h := mustHandler(t, http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { got = r.Header.Get("Baggage") }),
			ingress.Config{Trust: row.trust}, HandlerConfig{})
		r := incoming(t, "Baggage", row.baggage)
		if row.label != "" {
			r.Header.Set(headerCriticality, row.label)
		}
		h.ServeHTTP(httptest.NewRecorder(), r)
		if got != row.wants {
			t.Errorf("%s: %.80q, want %.80q", row.name, got, row.wants)
		}
		if now := r.Header.Get("Baggage"); now != row.baggage {
			t.Errorf("%s: the server's own request became %.80q", row.name, now)
		}
	}
}

// A reverse proxy passes on all headers: a class that was not believed must not be among them, whether what sends them knows
// of classes or not.
func TestLabelThatWasNotBelieved(t *testing.T) {
	capped := ingress.Trust{Boundary: ingress.Internal, DefaultMax: spillway.SheddablePlus}
	for _, row := range []struct {
		name         string
		trust        ingress.Trust
		labels, want []string
	}{
		{"edge, raised", ingress.Trust{}, []string{"CRITICAL_PLUS"}, nil},
		{"edge, the default", ingress.Trust{}, []string{"CRITICAL"}, nil},
		{"edge, lowered", ingress.Trust{}, []string{"sheddable"}, []string{"sheddable"}},
		{"edge, raised once and lowered once", ingress.Trust{}, []string{"CRITICAL_PLUS", "SHEDDABLE"}, []string{"SHEDDABLE"}},
		{"edge, no class", ingress.Trust{}, []string{"URGENT"}, nil},
		{"edge, without", ingress.Trust{}, nil, nil},
		{"internal", internal.Trust, []string{"CRITICAL_PLUS"}, []string{"CRITICAL_PLUS"}},
		{"internal, capped", capped, []string{"CRITICAL_PLUS"}, []string{"SHEDDABLE_PLUS"}},
	} {
		for _, knows := range []bool{false, true} {
			r := incoming(t)
			for _, label := range row.labels {
				r.Header.Add(headerCriticality, label)
			}
			if got := passedOn(t, row.trust, knows, r).Values(headerCriticality); !slices.Equal(got, row.want) {
				t.Errorf("%s, sent by a Transport: %v: %q, want %q", row.name, knows, got, row.want)
			}
			if now := r.Header.Values(headerCriticality); !slices.Equal(now, row.labels) {
				t.Errorf("%s: the server's own request became %q", row.name, now)
			}
		}
	}
}

// passedOn returns the headers with which a reverse proxy behind a Handler passes r on, by a Transport or without one.
func passedOn(t *testing.T, trust ingress.Trust, byTransport bool, r *http.Request) (sent http.Header) {
	t.Helper()
	var base http.RoundTripper = baseFunc(func(req *http.Request) (*http.Response, error) {
		sent = req.Header
		return answer(req, http.StatusOK, ""), nil
	})
	if byTransport {
		base = mustTransport(t, TransportConfig{Base: base})
	}
	proxy := &httputil.ReverseProxy{
		Transport: base,
		Rewrite:   func(r *httputil.ProxyRequest) { r.SetURL(&url.URL{Scheme: "http", Host: "service.example"}) },
	}
	mustHandler(t, proxy, ingress.Config{Trust: trust}, HandlerConfig{}).ServeHTTP(httptest.NewRecorder(), r)
	return sent
}

// Thousands of handlers ask for the level at once, and get that of their class.
func TestDegradationOfRequests(t *testing.T) {
	var got spillway.DegradationLevel
	h := mustHandler(t, http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		got = spillway.DegradationFrom(r.Context())
	}), ingress.Config{Load: utilization(0.9), Trust: internal.Trust}, HandlerConfig{})
	now := time.Now()
	for range 200 { // a utilization of 0.9 is within the ramps of the two lower classes and of CRITICAL
		now = now.Add(20 * time.Millisecond)
		var p ingress.Slot
		if r := p.EnterAt(t.Context(), h.ingress, now, &spillway.Call{Criticality: spillway.CriticalPlus}, new(ratelimit.Caller)); !r.Rejected() {
			p.DoneAt(now, spillway.OutcomeServed)
		}
	}
	for class, want := range map[string]spillway.DegradationLevel{
		"CRITICAL_PLUS": spillway.DegradationNone, "CRITICAL": spillway.DegradationLow, "": spillway.DegradationLow,
	} {
		got = 99
		r := incoming(t)
		if class != "" {
			r.Header.Set(headerCriticality, class)
		}
		h.ServeHTTP(httptest.NewRecorder(), r)
		if got != want {
			t.Errorf("%q: level %v, want %v (%+v)", class, got, want, h.ingress.Stats(now).Degradation)
		}
	}
	if l := spillway.DegradationFrom(t.Context()); l != spillway.DegradationNone {
		t.Errorf("outside of a request: %v", l)
	}
	ctx := new(serving.Context)
	ctx.Begin(t.Context(), new(arrival), spillway.DegradationHigh)
	if n := testing.AllocsPerRun(100, func() { _ = spillway.DegradationFrom(ctx) }); n > 0 || spillway.DegradationFrom(ctx) != spillway.DegradationHigh {
		t.Errorf("asking allocates %v, says %v", n, spillway.DegradationFrom(ctx))
	}
}
