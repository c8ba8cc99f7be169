package spillhttp

import (
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/seed90641741/spillway"
	"github.com/seed90641741/spillway/egress"
	"github.com/seed90641741/spillway/ingress"
	"github.com/seed90641741/spillway/ratelimit"
	"github.com/seed90641741/spillway/throttle"
)

// An overloaded server tells callers that it trusts which share of their class it
// accepts, in answers of both kinds, and tells nothing at an edge.
func TestAcceptRatioInAnswers(t *testing.T) {
	for _, row := range []struct {
		trust ingress.Trust
		level float64
		class string
		want  string
		code  int
	}{
		{internal.Trust, 0.94, "SHEDDABLE", "0", 503},
		{internal.Trust, 0.94, "CRITICAL_PLUS", "", 204},
		{internal.Trust, 0.5, "SHEDDABLE", "", 204},
		{ingress.Trust{}, 0.94, "SHEDDABLE", "", 503},
	} {
		h := mustHandler(t, bare, ingress.Config{Load: utilization(row.level), Trust: row.trust}, HandlerConfig{})
		now := time.Now()
		for range 100 {
			now = now.Add(20 * time.Millisecond)
			for _, c := range []spillway.Criticality{spillway.Sheddable, spillway.CriticalPlus} {
				var p ingress.Slot
				p.EnterAt(t.Context(), h.ingress, now, &spillway.Call{Criticality: c}, new(ratelimit.Caller))
				p.DoneAt(now, spillway.OutcomeServed)
			}
		}
		w := httptest.NewRecorder()
		h.ServeHTTP(w, incoming(t, headerCriticality, row.class))
		if got := w.Header().Get(headerAcceptRatio); got != row.want || w.Code != row.code {
			t.Errorf("%v, utilization %v, %s: %q with %d, want %q with %d", row.trust.Boundary, row.level, row.class, got, w.Code, row.want, row.code)
		}
		m := new(memo)
		why := h.ingress.RejectAt(t.Context(), now, &spillway.Call{Criticality: spillway.Sheddable}, new(ratelimit.Caller))
		if why.Rejected() && (why.AcceptRatio == "0") != (row.trust.Boundary == ingress.Internal) {
			t.Errorf("an early rejection says %q", m.rejection(&why, h.wordingOf(&why), nil))
		}
	}
}

// admitting never rejects a call that has a chance to be sent.
var admitting = egress.Config{Throttle: throttle.Config{Rand: func() float64 { return 0.999 }}}

// A Transport believes the accept ratio of internal services only, and does not pass it on to
// its caller.
func TestAcceptRatioIsHeard(t *testing.T) {
	for _, row := range []struct {
		name     string
		external bool
		values   []string
		want     bool
	}{
		{"low", false, []string{"0.1"}, true},
		{"of others", true, []string{"0.1"}, false},
		{"none", false, nil, false},
		{"nonsense", false, []string{"NaN", "-1", "1e999"}, false},
		{"the highest counts", false, []string{"0", "0.95"}, false},
	} {
		base := baseFunc(func(req *http.Request) (*http.Response, error) {
			resp := answer(req, 200, "")
			if resp.Header == nil {
				resp.Header = make(http.Header)
			}
			for _, v := range row.values {
				resp.Header.Add(headerAcceptRatio, v)
			}
			return resp, nil
		})
		rt := mustTransport(t, TransportConfig{Base: base, External: func(*http.Request) bool { return row.external }, Egress: admitting})
		for range 3 {
			resp, err := rt.RoundTrip(newRequest(t, t.Context(), http.MethodGet, nil))
			if err != nil {
				t.Fatal(err)
			}
			resp.Body.Close()
			if resp.Header.Get(headerAcceptRatio) != "" {
				t.Errorf("%s: the caller gets %q", row.name, resp.Header)
			}
		}
		for _, s := range rt.Stats(time.Now()) {
			if p := s.Throttle[spillway.Critical.Index()].Probability; (p > 0) != row.want {
				t.Errorf("%s: probability %v", row.name, p)
			}
		}
	}
}
