package fleet

import (
	"fmt"
	"testing"
	"time"

	"github.com/seed90641741/spillway"
	"github.com/seed90641741/spillway/quota"
)

// TestSetting: in a task, too, a rejection names the limit that customers share, with and without a
// board, and a customer with its own limit has that.
func TestSetting(t *testing.T) {
	for name, row := range map[string]struct {
		limits  quota.LocalConfig
		names   int
		alone   bool
		setting string
	}{
		"own":             {quota.LocalConfig{DefaultLimit: quota.Limit{Rate: 5}, UnlistedTotal: quota.Limit{Rate: 1000}}, 2, false, ""},
		"own, alone":      {quota.LocalConfig{DefaultLimit: quota.Limit{Rate: 5}, UnlistedTotal: quota.Limit{Rate: 1000}}, 2, true, ""},
		"unlisted":        {quota.LocalConfig{DefaultLimit: quota.Limit{Rate: 50}, UnlistedTotal: quota.Limit{Rate: 20}}, 10, false, quota.UnlistedTotal},
		"unlisted, alone": {quota.LocalConfig{DefaultLimit: quota.Limit{Rate: 50}, UnlistedTotal: quota.Limit{Rate: 20}}, 10, true, quota.UnlistedTotal},
		"no own limit":    {quota.LocalConfig{UnlistedTotal: quota.Limit{Rate: 20}}, 10, false, quota.UnlistedTotal},
		"capacity":        {quota.LocalConfig{Capacity: 20, DefaultLimit: quota.Limit{Rate: 50}}, 10, false, quota.Capacity},
	} {
		s := newService(t, 2, Config{Tasks: 2, Limits: row.limits}, nil)
		for _, n := range s.nodes {
			n.link.cut = row.alone
		}
		calls := poissonCalls(s.rand, spillway.Critical, 200, 0, 1)
		runSparse(s, 15*time.Second, func(at time.Duration) []arrival {
			all := calls(at)
			for i := range all {
				all[i].name = fmt.Sprint("name ", s.rand.IntN(row.names))
			}
			return all
		})
		lines, named, unlisted := 0, 0, 0
		for _, n := range s.nodes {
			for _, c := range n.gate.Stats(s.now()) {
				switch {
				case c.Unlisted:
					unlisted++
					if c.Limit != row.limits.UnlistedTotal.Rate || c.Rate >= c.Limit {
						t.Errorf("%s: %+v", name, c)
					}
				case c.Customer != "":
					lines++
					if c.Setting == row.setting {
						named++
					}
				}
			}
		}
		if want := map[bool]int{true: 2, false: 0}[row.limits.UnlistedTotal.Rate > 0]; lines < 2 || named != lines || unlisted != want {
			t.Errorf("%s: %d of %d lines have the setting, %d of all unlisted", name, named, lines, unlisted)
		}
	}
}
