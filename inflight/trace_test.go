package inflight

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/seed90641741/spillway"
	"github.com/seed90641741/spillway/internal/golden"
	"github.com/seed90641741/spillway/internal/race"
)

// TestTrace compares who gets a place with what was recorded: for each stage the requests that
// were offered and admitted by class, and a hash of all answers so far.
func TestTrace(t *testing.T) {
	race.SkipOneGoroutine(t)
	const s = time.Second
	l := mustNew(t, 32)
	r := &tracer{l: l, rng: rand.New(rand.NewPCG(4, 9))}
	for _, stage := range []struct {
		takes time.Duration
		rates [spillway.Criticalities]int // per second; a request takes 10 to 60 ms
		limit uint32
		back  time.Duration
	}{
		{takes: 3 * s, rates: [4]int{200, 200}, limit: 32}, {takes: 4 * s, rates: [4]int{900, 200, 200, 100}, limit: 32},
		{takes: 3 * s, rates: [4]int{900, 0, 0, 20}, limit: 32}, {takes: 61 * s, rates: [4]int{20}, limit: 32},
		{takes: 3 * s, rates: [4]int{900}, limit: 32}, {takes: 2 * s, rates: [4]int{0, 0, 900, 900}, limit: 15},
		{takes: 3 * s, rates: [4]int{600, 600, 600, 600}, limit: 64}, {takes: 3 * s, rates: [4]int{600, 600, 600, 600}, limit: 64, back: 10 * s},
		{takes: 2 * s, rates: [4]int{100, 100, 100, 100}, limit: 24}, {takes: 2 * s, rates: [4]int{700, 20, 20, 20}, limit: 24},
	} {
		l.SetMaxInFlight(stage.limit)
		r.now -= stage.back
		r.run(stage.takes, stage.rates)
	}
	golden.Check(t, "trace.golden", r.out.String())
}

// A tracer drives a Limiter in steps of a millisecond.
type tracer struct {
	l       *Limiter
	rng     *rand.Rand
	now     time.Duration
	pending []traced
	hash    golden.Digest
	out     strings.Builder
}

type traced struct {
	left   int // steps
	ticket spillway.Ticket
}

func (r *tracer) run(takes time.Duration, rates [spillway.Criticalities]int) {
	var offered, admitted [spillway.Criticalities]int
	for end := r.now + takes; r.now < end; r.now += time.Millisecond {
		now := time.Unix(1e9, 0).Add(r.now)
		still := r.pending[:0]
		for _, p := range r.pending {
			if p.left--; p.left > 0 {
				still = append(still, p)
			} else {
				p.ticket.Settle(now, spillway.OutcomeServed)
			}
		}
		r.pending = still
		for i, rate := range rates {
			if r.rng.IntN(1000) >= rate {
				continue
			}
			offered[i]++
			ticket, err := r.l.Admit(now, spillway.Call{Criticality: spillway.Criticality(i - 2)})
			if r.hash.Addf("%d %d %v", r.now, i, err); err == nil {
				admitted[i]++
				r.pending = append(r.pending, traced{10 + r.rng.IntN(50), ticket})
			}
		}
	}
	fmt.Fprintf(&r.out, "%3.0fs offered %v, admitted %v, %+v, %x\n", r.now.Seconds(), offered, admitted, r.l.Stats(time.Time{}), r.hash)
}
