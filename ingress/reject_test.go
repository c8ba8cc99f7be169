package ingress

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"net/netip"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seed90641741/spillway"
	"github.com/seed90641741/spillway/ratelimit"
)

// TestRejectDecidesAsEnter asks Reject, then Enter at the same instant: without a queue both
// decide alike, by the same gate, for the same reason. What Reject asks is not taken.
func TestRejectDecidesAsEnter(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		exempt := netip.MustParseAddr("192.0.2.1")
		s := must(t, Config{
			RateLimit: ratelimit.Config{Rate: 20, Exempt: ratelimit.Exempt{CIDRs: []netip.Prefix{netip.PrefixFrom(exempt, 32)}}},
			Quota:     perCustomer(t, 8),
		})
		random := rand.New(rand.NewPCG(1, 2))
		decisions := map[string]int{}
		for range 2000 {
			time.Sleep(time.Duration(random.ExpFloat64() * float64(30*time.Millisecond)))
			call := spillway.Call{
				Customer: fmt.Sprint(random.IntN(3)), Criticality: spillway.Criticality(random.IntN(4)) + spillway.Sheddable,
				Level: spillway.Level(1 + random.IntN(spillway.Levels)), // as Core.Reject draws it for both
			}
			var from ratelimit.Caller
			if random.IntN(4) == 0 {
				from.Addr = exempt
			}
			early := s.Reject(call, from)
			slot, late := s.Enter(t.Context(), call, from)
			slot.Done(spillway.OutcomeServed)
			if a, b := decisionOf(early), decisionOf(late); a != b {
				t.Fatalf("%+v from %v: Reject says %s, Enter %s", call, from, a, b)
			}
			decisions[decisionOf(late)]++
		}
		for _, d := range []string{"admitted", "overloaded by ratelimit: rate_limit", "over quota by quota: quota"} {
			if decisions[d] < 100 {
				t.Errorf("%d of 2000 requests are %s, which tests little: %v", decisions[d], d, decisions)
			}
		}
		if got := s.Stats(time.Now()).RateLimit; got.ExemptedTotal > 700 || got.RejectedTotal == 0 {
			t.Errorf("exempt requests count twice, or rejections do not: %+v", got)
		}
	})
}

// TestRejectWithoutApplication: who asks early may not know the application, which may be
// exempt.
func TestRejectWithoutApplication(t *testing.T) {
	s := must(t, Config{RateLimit: ratelimit.Config{Rate: 1, Exempt: ratelimit.Exempt{Applications: []string{"backup"}}}})
	p, _ := s.Enter(t.Context(), spillway.Call{}, ratelimit.Caller{Application: "web"})
	p.Done(spillway.OutcomeServed)
	for application, want := range map[string]bool{"web": true, "backup": false, "": false} {
		if r := s.Reject(spillway.Call{}, ratelimit.Caller{Application: application}); r.Rejected() != want {
			t.Errorf("application %q: %+v, want a rejection: %v", application, r, want)
		}
	}
}

func decisionOf(r Rejection) string {
	if e, ok := errors.AsType[*spillway.RejectedError](r.Err); ok {
		return fmt.Sprintf("%v by %s: %v", r.Outcome, e.Policy, e.Reason)
	}
	return "admitted"
}
