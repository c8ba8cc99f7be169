package shed_test

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/seed90641741/spillway"
	"github.com/seed90641741/spillway/concurrency"
	"github.com/seed90641741/spillway/internal/race"
	"github.com/seed90641741/spillway/shed"
)

// Pass admits only what Arrive would admit at once, and what it does not see changes little
// later: two servers with the same requests reject as many, if only one asks Pass first. When a
// burst began that one knows to within the time between two requests.
func TestPassIsAShortCut(t *testing.T) {
	race.SkipOneGoroutine(t)
	const ms = float64(time.Millisecond)
	r := rand.New(rand.NewPCG(3, 4))
	quick, slow := limited(t, concurrency.Config{}), limited(t, concurrency.Config{})
	var now time.Duration
	passed, rejected, alone := 0, 0, 0
	for second := range 40 {
		load := []float64{0.3, 0.9, 3, 0.2}[second%4] // in requests per millisecond that are served
		var running, backlog int
		for end := time.Duration(second+1) * time.Second; now < end; {
			now += time.Duration(r.ExpFloat64() / load * ms)
			state := shed.State{Processors: 1, Runnable: max(0, running-1), Utilization: r.Float64() * 0.7}
			call := spillway.Call{Criticality: spillway.Criticality(r.IntN(4)) + spillway.Sheddable}
			if r.IntN(2) == 0 { // which may have passed
				call.Deadline = t0.Add(now + time.Duration(r.IntN(500)-10)*time.Millisecond)
			}
			want, w := slow.Arrive(t0.Add(now), &call, &state, new(shed.Waiter)), new(shed.Waiter)
			got := shed.Decision{Verdict: shed.Run}
			ok := quick.Pass(t0.Add(now), &call, &state, &got.Ticket)
			if ok {
				passed++
			} else {
				got = quick.Arrive(t0.Add(now), &call, &state, w)
			}
			if want.Verdict == shed.Rejected {
				alone++
			}
			if ok && want.Verdict != shed.Run {
				t.Fatalf("at %v: passed, and without Pass the verdict is %v", now, want.Verdict)
			}
			switch got.Verdict {
			case shed.Run:
				running++
			case shed.Wait:
				backlog++
			default:
				rejected++
			}
			if running > 0 && r.Float64() < 1/load { // one has ended
				running--
				got.Ticket.Settle(t0.Add(now), spillway.OutcomeServed)
				want.Ticket.Settle(t0.Add(now), spillway.OutcomeServed)
			}
			state.Runnable = max(0, running-1)
			for _, s := range []*shed.Shedder{quick, slow} {
				if w, _ := s.Next(t0.Add(now), state); w != nil && s == quick && w.Err == nil {
					running++
				}
			}
		}
	}
	if passed < 1000 || rejected < 1000 {
		t.Errorf("%d passed and %d were rejected, which tests nothing", passed, rejected)
	}
	if d := rejected - alone; max(d, -d) > alone/100 {
		t.Errorf("%d were rejected, without Pass %d", rejected, alone)
	}
}
