package shed_test

import (
	"testing"
	"time"

	"github.com/seed90641741/spillway"
	"github.com/seed90641741/spillway/concurrency"
	"github.com/seed90641741/spillway/internal/thorough"
)

// TestKeysOfOnePool: routes with keys of their own wait for one pool, one with CRITICAL requests
// and one with SHEDDABLE. The limit of all keys is found, so that CRITICAL is served first, and
// not one limit for each, by which both would get half. In one run of ten chance decides otherwise: routes of one pool need one key.
func TestKeysOfOnePool(t *testing.T) {
	critical, sheddable := spillway.Critical, spillway.Sheddable
	half := []spillway.Criticality{critical, sheddable}
	seeds := thorough.Seeds(2, 8)
	in, all := 0, 0
	for _, row := range []struct {
		name  string
		pool  int
		hold  time.Duration
		times float64 // the capacity
		quiet bool    // before
		load  []spillway.Criticality
	}{
		{"4 x 50 ms, 2.5x", 4, 50 * ms, 2.5, true, half},
		{"4 x 50 ms, 2.5x, cold", 4, 50 * ms, 2.5, false, half},
		{"8 x 20 ms, 2.5x", 8, 20 * ms, 2.5, true, half},
		{"8 x 20 ms, 2.5x, cold", 8, 20 * ms, 2.5, false, half},
		{"8 x 20 ms, 1.3x", 8, 20 * ms, 1.3, true, half},
		{"8 x 20 ms, 5x, few CRITICAL", 8, 20 * ms, 5, true, []spillway.Criticality{critical, sheddable, sheddable, sheddable, sheddable}},
		{"8 x 20 ms, 5x, few SHEDDABLE", 8, 20 * ms, 5, true, []spillway.Criticality{critical, critical, critical, sheddable}},
		{"64 x 20 ms, 2.5x", 64, 20 * ms, 2.5, true, half},
	} {
		separate, least := 0, 1.0
		for seed := range seeds {
			s := kind{pool: row.pool}.server(t, 2, seed)
			s.deadline = 5 * time.Second
			s.key = func(class spillway.Criticality) (string, []phase) {
				return class.String(), []phase{{pool: row.hold}}
			}
			capacity := float64(row.pool) / row.hold.Seconds()
			if row.quiet {
				s.offer(0.3*capacity, 5*time.Second, row.load...)
			}
			s.offer(row.times*capacity, 2*time.Second, row.load...)
			s.fresh()
			s.offer(row.times*capacity, 5*time.Second, row.load...)
			c := critical.Index()
			share := float64(s.good[c]) / min(5*capacity, float64(s.offered[c]))
			least = min(least, share)
			if share > 0.8 {
				in++
			}
			if s.limit.Stats(s.now).Shared.State == concurrency.Open {
				separate++
			}
			all++
		}
		t.Logf("%s: at least %.2f of CRITICAL, in %d of %d runs the keys have limits of their own", row.name, least, separate, seeds)
	}
	if in < all*9/10 {
		t.Errorf("in %d of %d runs the classes are in order, want 90 %%", in, all)
	}
}
