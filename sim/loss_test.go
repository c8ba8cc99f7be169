package sim

import (
	"testing"
	"time"

	"github.com/seed90641741/spillway/retry"
)

// Requests that a network loses time out long after others were answered. They say nothing
// about the load of the backend, so the throttles of its callers leave them alone.
func TestLostRequestsAreNoOverload(t *testing.T) {
	c := server(200)
	c.Clients[0].Count, c.Clients[0].Deadline = 2, 2*time.Second
	c.Clients[0].Call.Loss, c.Clients[0].Call.Timeout = 0.6, time.Second
	c.Clients[0].Call.Retry = Retry{Budgeted: retry.BudgetedConfig{MaxAttempts: 1}}
	c.Duration = time.Minute
	if n := run(t, c).Clients[0].Windows[0].Counts; n.RejectedThrottle > n.Offered/100 || n.TimedOut < n.Offered/2 {
		t.Errorf("%+v, want few rejected by the throttle", n)
	}
	c.Clients[0].Call.Loss = 0
	c.Faults = []Fault{{Kind: Drop, Service: "db", At: time.Second}}
	if n := run(t, c).Clients[0].Windows[0].Counts; n.RejectedThrottle < n.Offered*9/10 {
		t.Errorf("%+v, want most rejected by the throttle: the backend answers nothing", n)
	}
}
