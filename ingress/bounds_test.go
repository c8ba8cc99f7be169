package ingress

import (
	"math"
	"strconv"
	"testing"
	"time"

	"github.com/seed90641741/spillway"
	"github.com/seed90641741/spillway/fault"
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
		{RetryAfter: ms - 1}, {RetryAfter: time.Hour + 1},
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

func TestScopeOfARejection(t *testing.T) {
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

// MaxInFlight is a number of 31 bits. Where an int has no more, each is allowed.
func TestMaxInFlightIsTooLarge(t *testing.T) {
	large := int64(math.MaxInt32 + 1)
	if strconv.IntSize == 32 {
		large = math.MaxInt32
	}
	_, err := New(Config{MaxInFlight: int(large)})
	if strconv.IntSize == 64 && (err == nil || err.Error() != "ingress: MaxInFlight is 2147483648, must be at most 2147483647") {
		t.Errorf("error %v", err)
	}
	if strconv.IntSize == 32 && err != nil {
		t.Error(err)
	}
}
