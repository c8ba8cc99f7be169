package quota

import (
	"errors"
	"testing"

	"github.com/seed90641741/spillway"
)

// TestRefuse: Reject says what Admit would, and charges nothing.
func TestRefuse(t *testing.T) {
	q := must(t, Config{Allocator: fixed{Rate: 1}, BurstSeconds: 2})
	c := callOf("a", critical)
	for range 10 {
		if err := q.Reject(t0, c); err != nil {
			t.Fatalf("Refuse while nothing is used: %v", err)
		}
	}
	if s := statsOf(t, q, 0, "a"); s.Debt != 0 || s.Classes[spillway.Critical.Index()] != (ClassStats{}) {
		t.Errorf("asking is charged or counted: %+v", s)
	}
	admitted := 0
	for q.Reject(t0, c) == nil {
		if _, err := q.Admit(t0, c); err != nil {
			t.Fatalf("Admit: %v, and Refuse did not", err)
		}
		admitted++
	}
	if admitted == 0 || admitted > 2 {
		t.Errorf("%d calls at once at 1 per second", admitted)
	}
	err := q.Reject(t0, c)
	if e, ok := errors.AsType[*spillway.RejectedError](err); !ok || e.Reason != spillway.ReasonQuota || e.RetryAfter <= 0 {
		t.Errorf("Refuse: %v", err)
	}
	if got, want := statsOf(t, q, 0, "a").Classes[spillway.Critical.Index()], (ClassStats{AdmittedTotal: uint64(admitted), RejectedTotal: 2}); got != want {
		t.Errorf("%+v, want %+v", got, want)
	}
	if err := q.Reject(t0, callOf("b", critical)); err != nil {
		t.Errorf("another customer: %v", err)
	}
}
