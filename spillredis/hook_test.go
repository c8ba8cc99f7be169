package spillredis

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/seed90641741/spillway"
	"github.com/seed90641741/spillway/egress"
)

func TestAnswers(t *testing.T) {
	for _, c := range []struct {
		name, answer string
		sent         int // of a write; three attempts are allowed
		overload     bool
	}{
		{"nil", "$-1\r\n", 1, false},
		{"loading", "-LOADING Redis is loading the dataset in memory\r\n", 3, false},
		{"busy", "-BUSY Redis is busy running a script.\r\n", 3, true},
		{"busy group", "-BUSYGROUP Consumer Group name already exists\r\n", 1, false},
		{"oom", "-OOM command not allowed when used memory > 'maxmemory'.\r\n", 1, true},
		{"master down", "-MASTERDOWN Link with MASTER is down\r\n", 3, false},
		{"cluster down", "-CLUSTERDOWN Hash slot not served\r\n", 3, false},
		{"clients", "-ERR max number of clients reached\r\n", 3, true},
		{"try again", "-TRYAGAIN Multiple keys request during rehashing of slot\r\n", 3, false},
		{"read only", "-READONLY You can't write against a read only replica.\r\n", 3, false},
		{"moved", "-MOVED 3999 127.0.0.1:6381\r\n", 1, false},
		{"wrong type", "-WRONGTYPE Operation against a key\r\n", 1, false},
		{"closed", "", 1, false}, // the server may have executed it
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var seen events
				s, client, pool := start(t, egress.Config{Observer: &seen}, always(c.answer))
				err := client.Set(t.Context(), "k", "v", 0).Err()
				if err == nil {
					t.Fatal("no error")
				}
				if n := s.sets(); n != c.sent {
					t.Errorf("sent %d times, want %d (%v)", n, c.sent, err)
				}
				if got := seen.first("throttle") == spillway.OutcomeOverloaded; got != c.overload {
					t.Errorf("overloaded is %v, want %v", got, c.overload)
				}
				if stats := pool.Stats(time.Now())["127.0.0.1:6379"]; stats.InFlight.InFlight != 0 || stats.InFlight.SurplusTotal != 0 {
					t.Errorf("in flight after the call: %+v", stats.InFlight)
				}
				_ = client.Close()
			})
		})
	}
}

// events keeps the decisions of the policies.
type events struct{ all []spillway.Event }

func (e *events) Observe(event spillway.Event) { e.all = append(e.all, event) }

// first returns the first outcome that a policy settled.
func (e *events) first(policy string) spillway.Outcome {
	for _, event := range e.all {
		if event.Policy == policy {
			return event.Outcome
		}
	}
	return 0
}
