package sim

import (
	"testing"
	"time"

	"github.com/seed90641741/spillway"
	"github.com/seed90641741/spillway/egress"
)

// The in-flight limit of a caller keeps places for the higher classes that this caller has called
// with in the last minute, and for those of no other caller.
func TestPlacesAreKeptForOwnClasses(t *testing.T) {
	for name, row := range map[string]struct {
		caller   int32
		rejected int
	}{"own": {0, 1}, "of another": {1, 0}} {
		c := server(0)
		c.Clients[0].Call.Egress = egress.Config{MaxInFlight: 16, ThrottleMode: spillway.ModeOff}
		s, err := New(c)
		if err != nil {
			t.Fatal(err)
		}
		rejected, ended := 0, 0
		s.witness.ended = func(_ *call, o outcome) {
			ended++
			if o == rejectedInflight {
				rejected++
			}
		}
		e := s.groups[0].edge
		e.begin(0, spillway.Call{Criticality: spillway.CriticalPlus}, ref{}, false)
		for ended == 0 {
			next := s.agenda.pop()
			s.pass(next.at)
			s.happen(&next)
		}
		s.pass(int64(30 * time.Second))
		for range 16 {
			e.begin(row.caller, spillway.Call{Criticality: spillway.Sheddable}, ref{}, false)
		}
		if rejected != row.rejected {
			t.Errorf("%s: %d calls of the lowest class rejected by a limit of 16, want %d", name, rejected, row.rejected)
		}
	}
}
