package fleet

import (
	"fmt"
	"testing"
	"time"

	"github.com/seed90641741/spillway"
	"github.com/seed90641741/spillway/quota"
)

// TestUnlistedTotalOfShards: UnlistedTotal is one limit for the unlisted customers of all shards, so that who makes up a
// name for each call gets no more.
func TestUnlistedTotalOfShards(t *testing.T) {
	const rate, seconds = 5, 30
	c := Config{Tasks: 1, Limits: quota.LocalConfig{DefaultLimit: quota.Limit{Rate: rate}, UnlistedTotal: quota.Limit{Rate: rate}}}
	gate, err := quota.New(quota.Config{Allocator: Shards{must(t, c), must(t, c), must(t, c)}})
	if err != nil {
		t.Fatal(err)
	}
	admitted := 0.
	for i := range 40 * seconds {
		at := t0.Add(time.Duration(i) * 25 * ms)
		if _, err := gate.Admit(at, spillway.Call{Customer: fmt.Sprint("name ", i)}); err == nil {
			admitted++
		}
	}
	within(t, "of the total", admitted/rate/seconds, 0.9, 1.1)
}

// TestUnlistedTotal: unlisted customers that come seldom, over tasks that are loaded unevenly, use
// together what UnlistedTotal allows, however many there are and whatever they are called. So they
// do without a board.
func TestUnlistedTotal(t *testing.T) {
	for _, row := range []struct {
		names, tasks int
		rate, load   float64
		alone        bool
	}{
		{20, 3, 5, 40, false}, {150, 3, 5, 40, false}, {5000, 3, 5, 40, false},
		{150, 20, 50, 200, false}, {5000, 20, 50, 45, false}, {150, 3, 5, 40, true},
	} {
		t.Run(fmt.Sprintf("%d names, %d tasks, %v of %v, alone %v", row.names, row.tasks, row.load, row.rate, row.alone), func(t *testing.T) {
			limits := quota.LocalConfig{
				Customers: map[string]quota.Limit{"acme": {Rate: 10}}, DefaultLimit: quota.Limit{Rate: row.rate},
				UnlistedTotal: quota.Limit{Rate: row.rate},
			}
			s := newService(t, row.tasks, Config{Tasks: row.tasks, Limits: limits}, nil)
			for _, n := range s.nodes {
				n.link.cut = row.alone
			}
			calls := poissonCalls(s.rand, spillway.Critical, row.load, 0, row.tasks-1)
			c := runSparse(s, 90*time.Second, func(at time.Duration) []arrival {
				all := calls(at)
				for i := range all {
					x := &all[i]
					x.task /= 1 + s.rand.IntN(3) // the first tasks have most calls
					if x.name = fmt.Sprint("name ", s.rand.IntN(row.names)); s.rand.IntN(1000) == 0 {
						x.name = allUnlisted
					}
				}
				return all
			})[spillway.Critical.Index()]
			due := min(60*row.rate, sumOf(c.offered, 30, 90))
			least := 0.95
			if row.alone {
				least = 0.6 // a part of the limit for each task, which the last do not use
			}
			within(t, "of what is due", sumOf(c.admitted, 30, 90)/due, least, 1.03)
			within(t, "most in 5 s, of the limit", busiest(c.admitted, 20, 5)/(5*row.rate), 0, 1.7)
		})
	}
}
