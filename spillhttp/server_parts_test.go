package spillhttp

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/seed90641741/spillway"
	"github.com/seed90641741/spillway/ingress"
)

// A Handler needs the whole request early if it asks for more than the path and the claims.
func TestPlainHandlers(t *testing.T) {
	text := func(*http.Request) string { return "" }
	for name, row := range map[string]struct {
		config HandlerConfig
		plain  bool
	}{
		"nothing":  {HandlerConfig{HealthPaths: []string{"/healthz"}}, true},
		"Classify": {HandlerConfig{Classify: func(*http.Request) (c spillway.Call) { return c }}, false},
		"Route":    {HandlerConfig{Route: text}, false},
		"Identity": {HandlerConfig{Identity: text}, false},
		"Exempt":   {HandlerConfig{Exempt: func(*http.Request) bool { return false }}, false},
	} {
		if h := mustHandler(t, bare, ingress.Config{}, row.config); h.plain != row.plain {
			t.Errorf("%s is set: plain is %v, want %v", name, h.plain, row.plain)
		}
	}
}

// The observer of an early rejection learns the length of the body that the client gets.
func TestLengthOfABody(t *testing.T) {
	for reasons, want := range map[ingress.Reasons][2]string{
		ingress.ReasonsNone:   {"", ""},
		ingress.ReasonsCoarse: {"rejected: overload\n", "rejected: quota\n"},
		ingress.ReasonsFull:   {"rejected: " + spillway.ReasonFairShare.String() + "\n", "rejected: quota\n"},
	} {
		h := mustHandler(t, bare, ingress.Config{Trust: ingress.Trust{Reasons: reasons}}, HandlerConfig{})
		for i, reason := range []spillway.Reason{spillway.ReasonFairShare, spillway.ReasonQuota} {
			if n := h.lengthOf(reason); n != len(want[i]) {
				t.Errorf("%v, %v: %d bytes, want %q", reasons, reason, n, want[i])
			}
		}
	}
}

// The client that may know the reason learns each of them.
func TestWordingOfEachReason(t *testing.T) {
	for reason := spillway.ReasonNone + 1; reason <= lastReason; reason++ {
		why := ingress.Rejection{Outcome: spillway.OutcomeOverloaded, Err: &spillway.RejectedError{Reason: reason}}
		if text := wordingOf(ingress.ReasonsFull, &why); !strings.Contains(string(text.body), reason.String()) {
			t.Errorf("%v is told as %q", reason, text.body)
		}
	}
}

// The slot of a request that was charged serves no other request: a late charge may still find
// it.
func TestChargedSlotIsNotReused(t *testing.T) {
	var slot *ingress.Slot
	h := mustHandler(t, http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		slot = r.Context().Value(chargeKey{}).(*servedRequest).response.slot
		Charge(r.Context(), 1)
	}), ingress.Config{}, HandlerConfig{})
	h.ServeHTTP(httptest.NewRecorder(), incoming(t))
	for range 100 {
		if slots.Get() == any(slot) {
			t.Fatal("the slot of a charged request is used again")
		}
	}
}
