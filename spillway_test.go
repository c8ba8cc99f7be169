package spillway_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/seed90641741/spillway"
)

func TestCriticalityIsOrderedAndCriticalIsZero(t *testing.T) {
	order := []spillway.Criticality{spillway.Sheddable, spillway.SheddablePlus, spillway.Critical, spillway.CriticalPlus}
	for i, c := range order {
		if c.Index() != i || !c.Valid() {
			t.Errorf("%v: index %d, valid %v; want %d, true", c, c.Index(), c.Valid(), i)
		}
		if i > 0 && order[i-1] >= c {
			t.Errorf("%v is not below %v", order[i-1], c)
		}
	}
	var zero spillway.Criticality
	if zero != spillway.Critical {
		t.Errorf("the zero Criticality is %v", zero)
	}
	for _, c := range []spillway.Criticality{-3, 2, 127, -128} {
		if c.Valid() || c.Index() != spillway.Critical.Index() {
			t.Errorf("%v: valid %v, index %d", c, c.Valid(), c.Index())
		}
	}
}

func TestCriticalityText(t *testing.T) {
	for c, want := range map[spillway.Criticality]string{
		spillway.Sheddable: "SHEDDABLE", spillway.SheddablePlus: "SHEDDABLE_PLUS",
		spillway.Critical: "CRITICAL", spillway.CriticalPlus: "CRITICAL_PLUS",
	} {
		data, err := json.Marshal(c)
		if err != nil || string(data) != `"`+want+`"` {
			t.Errorf("json.Marshal(%v) = %s, %v", c, data, err)
		}
		for _, s := range []string{want, strings.ToLower(want)} {
			if got, err := spillway.ParseCriticality(s); got != c || err != nil {
				t.Errorf("ParseCriticality(%q) = %v, %v", s, got, err)
			}
		}
	}
	if _, err := json.Marshal(spillway.Criticality(9)); err == nil {
		t.Error("Criticality(9) has a text form")
	}
	c := spillway.Sheddable
	if err := c.UnmarshalText([]byte("URGENT")); err == nil || c != spillway.Sheddable {
		t.Errorf("UnmarshalText of an unknown word: %v, now %v", err, c)
	}
}

func FuzzParseCriticality(f *testing.F) {
	for _, s := range []string{"", "CRITICAL", "critical_plus", "SHEDDABLE ", strings.Repeat("x", 1000)} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		c, err := spillway.ParseCriticality(s)
		if err == nil && !strings.EqualFold(c.String(), s) {
			t.Errorf("ParseCriticality(%q) = %v", s, c)
		}
		if err != nil && (c != spillway.Critical || len(err.Error()) > 300) {
			t.Errorf("ParseCriticality(%q) = %v, %v", s, c, err)
		}
	})
}

func TestCriticalityTravelsInTheContext(t *testing.T) {
	ctx := context.Background()
	if c := spillway.CriticalityFrom(ctx); c != spillway.Critical {
		t.Errorf("a bare context carries %v", c)
	}
	if c, ok := spillway.LookupCriticality(ctx); ok || c != spillway.Critical {
		t.Errorf("a bare context carries a label: %v", c)
	}
	if c, ok := spillway.LookupCriticality(spillway.WithCriticality(ctx, spillway.Critical)); !ok || c != spillway.Critical {
		t.Errorf("a label that says CRITICAL is lost: %v, %v", c, ok)
	}
	ctx = spillway.WithCriticality(ctx, spillway.Sheddable)
	child, cancel := context.WithTimeout(ctx, time.Hour)
	defer cancel()
	if c := spillway.CriticalityFrom(child); c != spillway.Sheddable {
		t.Errorf("a derived context carries %v", c)
	}
	if c := spillway.CriticalityFrom(spillway.WithCriticality(child, spillway.CriticalPlus)); c != spillway.CriticalPlus {
		t.Errorf("an overridden context carries %v", c)
	}
}

type settlements []spillway.Outcome

func (s *settlements) Settle(_ time.Time, t spillway.Ticket, o spillway.Outcome) {
	if t.By != nil {
		panic("a settled ticket can be settled again")
	}
	*s = append(*s, o)
}

func TestTicketSettlesOnce(t *testing.T) {
	var s settlements
	ticket := spillway.Ticket{By: &s}
	ticket.Settle(time.Time{}, spillway.OutcomeServed)
	ticket.Settle(time.Time{}, spillway.OutcomeOverloaded)
	if len(s) != 1 || s[0] != spillway.OutcomeServed {
		t.Errorf("settled %v, want once", s)
	}
	var zero spillway.Ticket
	zero.Settle(time.Time{}, spillway.OutcomeServed)
}

func TestOutcome(t *testing.T) {
	for o, want := range map[spillway.Outcome]struct {
		text     string
		accepted bool
	}{
		0:                          {"invalid", false},
		spillway.OutcomeServed:     {"served", true},
		spillway.OutcomeFailed:     {"failed", true},
		spillway.OutcomeOverloaded: {"overloaded", false},
		spillway.OutcomeTimedOut:   {"timed out", false},
		spillway.OutcomeAbandoned:  {"abandoned", false},
		spillway.OutcomeNotStarted: {"not started", false},
		200:                        {"invalid", false},
	} {
		if o.String() != want.text || o.Accepted() != want.accepted {
			t.Errorf("Outcome %d: %q, accepted %v; want %q, %v", uint8(o), o, o.Accepted(), want.text, want.accepted)
		}
	}
}

func TestRejectedError(t *testing.T) {
	e := &spillway.RejectedError{
		Policy: "inflight", Level: 20000, Limit: 20000, Unit: "requests in flight",
		Advice: "raise MaxInFlight", RetryAfter: time.Second,
	}
	want := "spillway: rejected locally by inflight at 20000 of 20000 requests in flight, for about 1s more: raise MaxInFlight"
	if e.Error() != want {
		t.Errorf("text = %q, want %q", e, want)
	}
	wrapped := fmt.Errorf("users: %w", e)
	if !errors.Is(wrapped, spillway.ErrRejected) || errors.Is(wrapped, context.Canceled) {
		t.Error("errors.Is does not tell a rejection")
	}
	if (&spillway.RejectedError{Policy: "p"}).Error() != "spillway: rejected locally by p" {
		t.Error("a bare rejection says too much")
	}
}

// TestUnmeasured: a rejection without a level has its limit only, in its text and in its Event.
func TestUnmeasured(t *testing.T) {
	for want, e := range map[string]*spillway.RejectedError{
		"spillway: rejected locally by ratelimit above the limit of 10 per second": {Policy: "ratelimit", Limit: 10, Unit: "per second", Unmeasured: true},
		"spillway: rejected locally by shed at 0 of 10 requests":                   {Policy: "shed", Limit: 10, Unit: "requests"},
		"spillway: rejected locally by shed at 12 of 10 requests":                  {Policy: "shed", Level: 12, Limit: 10, Unit: "requests"},
		"spillway: rejected locally by other":                                      {Policy: "other", Level: 3},
	} {
		if e.Error() != want || e.Measured() != strings.Contains(want, " at ") {
			t.Errorf("%q, measured %v; want %q", e, e.Measured(), want)
		}
		if event := spillway.Rejection(e); event.Unmeasured != e.Unmeasured || event.Level != e.Level || event.Limit != e.Limit {
			t.Errorf("%+v of %+v", event, e)
		}
	}
}

func TestModeText(t *testing.T) {
	for m, want := range map[spillway.Mode]string{spillway.ModeEnforce: "enforce", spillway.ModeObserve: "observe", spillway.ModeOff: "off"} {
		text, err := m.MarshalText()
		if err != nil || string(text) != want || m.String() != want {
			t.Errorf("%d: %q, %v", m, text, err)
		}
		var back spillway.Mode
		if err := back.UnmarshalText(text); err != nil || back != m {
			t.Errorf("UnmarshalText(%q) = %v, %v", text, back, err)
		}
	}
	m := spillway.ModeObserve
	if err := m.UnmarshalText([]byte("on")); err == nil || m != spillway.ModeObserve {
		t.Errorf("UnmarshalText of an unknown word: %v, now %v", err, m)
	}
	if _, err := spillway.Mode(7).MarshalText(); err == nil {
		t.Error("Mode(7) has a text form")
	}
}

func ExampleWithCriticality() {
	ctx := spillway.WithCriticality(context.Background(), spillway.SheddablePlus)
	fmt.Println(spillway.CriticalityFrom(ctx))
	// Output: SHEDDABLE_PLUS
}

// Calls are passed by value on every hot path: a size that is no multiple of 16
// costs ten nanoseconds per copy.
func TestCallFitsACacheLine(t *testing.T) {
	if size := reflect.TypeFor[spillway.Call]().Size(); size != 64 && strconv.IntSize == 64 {
		t.Errorf("a Call has %d bytes, want 64", size)
	}
}

func TestReasonText(t *testing.T) {
	seen := make(map[string]bool)
	for r := spillway.ReasonNone; r <= spillway.ReasonFairShare; r++ {
		text, err := r.MarshalText()
		if err != nil || string(text) != r.String() || seen[r.String()] || strings.ContainsAny(r.String(), " ()") {
			t.Errorf("%d: %q, %v", uint8(r), text, err)
		}
		seen[r.String()] = true
	}
	if !seen["queue_full"] || !seen["none"] {
		t.Errorf("%v", seen)
	}
	beyond := spillway.ReasonFairShare + 1
	if _, err := beyond.MarshalText(); err == nil || !strings.Contains(err.Error(), beyond.String()) {
		t.Errorf("a Reason that does not exist: %v", err)
	}
}

// TestRejection: the event of a rejection has what the error says, also where that is wrapped.
// TestShare: the text of a rejection by a throttle has the share alone, as its limit is always 100 %.
func TestShare(t *testing.T) {
	e := &spillway.RejectedError{
		Policy: "throttle", Reason: spillway.ReasonThrottle, Level: 92, Limit: 100, Unit: "% of CRITICAL calls rejected", Advice: "send less",
	}
	if got, want := e.Error(), "spillway: rejected locally by throttle at 92 % of CRITICAL calls rejected: send less"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}

func TestRejection(t *testing.T) {
	full := &spillway.RejectedError{Policy: "inflight", Reason: spillway.ReasonMaxInFlight, Level: 3, Limit: 4}
	for _, err := range []error{full, fmt.Errorf("attempt 2: %w", full)} {
		e := spillway.Rejection(err)
		if !e.Rejected || e.Err != err || e.Reason != spillway.ReasonMaxInFlight || e.Level != 3 || e.Limit != 4 {
			t.Errorf("%v: %+v", err, e)
		}
	}
	if e := spillway.Rejection(errors.New("other")); !e.Rejected || e.Err == nil || e.Reason != spillway.ReasonNone || e.Limit != 0 {
		t.Errorf("%+v", e)
	}
}
