package ingress

import (
	"math"
	"net/netip"
	"testing"
	"time"

	"github.com/seed90641741/spillway"
	"github.com/seed90641741/spillway/fault"
	"github.com/seed90641741/spillway/ratelimit"
)

// The first and the last value of each range are allowed, and the values next to them are not.
func TestConfigAtItsBounds(t *testing.T) {
	const ms, day = time.Millisecond, 24 * time.Hour
	for _, c := range []Config{
		{RetryAfter: ms}, {RetryAfter: time.Hour}, {MaxInFlight: math.MaxInt32},
		{Trust: Trust{MaxTimeout: ms}}, {Trust: Trust{MaxTimeout: day}}, {Trust: Trust{Reasons: ReasonsFull}},
	} {
		must(t, c)
	}
	for _, c := range []Config{
		{RetryAfter: ms - 1}, {RetryAfter: time.Hour + 1}, {MaxInFlight: math.MaxInt32 + 1},
		{Trust: Trust{MaxTimeout: ms - 1}}, {Trust: Trust{MaxTimeout: day + 1}}, {Trust: Trust{Reasons: ReasonsFull + 1}},
	} {
		if _, err := New(c); err == nil {
			t.Errorf("%+v is valid", c)
		}
	}
	if got := (Internal + 1).String(); got != "Boundary(2)" {
		t.Errorf("the boundary after the last one is %q", got)
	}
}

func TestScopeOfARefusal(t *testing.T) {
	for _, row := range []struct {
		outcome   spillway.Outcome
		dontRetry bool
		want      fault.Scope
	}{
		{spillway.OutcomeOverQuota, false, fault.ScopeCustomer}, {spillway.OutcomeAbandoned, true, fault.ScopeUnknown},
		{spillway.OutcomeOverloaded, true, fault.ScopeService}, {spillway.OutcomeOverloaded, false, fault.ScopeTask},
	} {
		if got := (Rejection{Outcome: row.outcome, DontRetry: row.dontRetry}).Scope(); got != row.want {
			t.Errorf("%v, don't retry %t: %v, want %v", row.outcome, row.dontRetry, got, row.want)
		}
	}
}

// Simulations and servers have the same rule for who is the same caller.
func TestSameFlow(t *testing.T) {
	x, y := &ratelimit.Caller{Identity: "x"}, &ratelimit.Caller{Identity: "y"}
	here, there := &ratelimit.Caller{Addr: netip.MustParseAddr("10.0.0.1")}, &ratelimit.Caller{Addr: netip.MustParseAddr("10.0.0.2")}
	for _, row := range []struct {
		customers [2]string
		callers   [2]*ratelimit.Caller
		same      bool
	}{
		{[2]string{"a", "b"}, [2]*ratelimit.Caller{x, x}, true}, {[2]string{"a", "a"}, [2]*ratelimit.Caller{x, y}, false},
		{[2]string{"a", "a"}, [2]*ratelimit.Caller{here, there}, true}, {[2]string{"a", "b"}, [2]*ratelimit.Caller{here, here}, false},
		{[2]string{"", ""}, [2]*ratelimit.Caller{here, there}, false}, {[2]string{"", ""}, [2]*ratelimit.Caller{here, here}, true},
	} {
		a, b := sameFlow(row.customers[0], row.callers[0]), sameFlow(row.customers[1], row.callers[1])
		if a == 0 || b == 0 || (a == b) != row.same {
			t.Errorf("%q %+v and %q %+v: %x and %x, same: want %t", row.customers[0], row.callers[0], row.customers[1], row.callers[1], a, b, row.same)
		}
	}
	if sameFlow("", &ratelimit.Caller{}) != 0 {
		t.Error("an unknown caller has a flow")
	}
}

// A cost apart from requests counts if a quota exists and is not off.
func TestChargeOfACustomer(t *testing.T) {
	now := time.Now()
	for name, row := range map[string]struct {
		config Config
		want   float64
	}{
		"enforced": {Config{Quota: perCustomer(t, 100)}, 0.6}, "observed": {Config{Quota: perCustomer(t, 100), QuotaMode: spillway.ModeObserve}, 0.6},
		"off": {Config{Quota: perCustomer(t, 100), QuotaMode: spillway.ModeOff}, 0}, "none": {Config{}, 0},
	} {
		s := must(t, row.config)
		s.Charge(now, "a", 60)
		debt := 0.
		for _, c := range s.Stats(now).Quota {
			if c.Customer == "a" {
				debt = c.Debt
			}
		}
		if math.Abs(debt-row.want) > 1e-9 {
			t.Errorf("%s: a debt of %v, want %v", name, debt, row.want)
		}
	}
}
