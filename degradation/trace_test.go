package degradation_test

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/seed90641741/spillway"
	"github.com/seed90641741/spillway/degradation"
	"github.com/seed90641741/spillway/internal/golden"
	"github.com/seed90641741/spillway/internal/race"
)

// A stretch is some time in which a Degrader observes the same.
type stretch struct {
	takes       time.Duration
	offered     [spillway.Criticalities]uint64 // in 10 ms
	rejected    uint64                         // of the lowest class, in 100 ms
	fill        float64
	utilization float64
	every       time.Duration // between two observations; zero: 10 ms
	relief      float64       // each stage takes so much from fill and utilization
}

// stretches are what a Degrader observes.
func stretches() map[string][]stretch {
	const s, minute = time.Second, time.Minute
	all, low, high, few := [4]uint64{2, 2, 2, 2}, [4]uint64{4}, [4]uint64{0, 0, 0, 4}, [4]uint64{0, 0, 1}
	return map[string][]stretch{
		"fill": {{takes: 2 * s, offered: all}, {takes: 10 * s, offered: all, fill: 0.6}, {takes: 2 * minute, offered: all}},
		"rejections": {
			{takes: 4 * s, offered: all, rejected: 8}, {takes: 4 * s, offered: all, rejected: 3}, {takes: 70 * s, offered: all},
			{takes: 5 * s, offered: all, rejected: 8}, {takes: 5 * minute, offered: all},
		},
		"utilization": {
			{takes: 3 * s, offered: all, utilization: 0.75}, {takes: 3 * s, offered: all, utilization: 0.82}, {takes: 9 * s, offered: all, utilization: 0.96},
			{takes: minute, offered: all, utilization: 0.7},
		},
		"one class": {{takes: 3 * s, offered: low, fill: 0.9}, {takes: 3 * s, offered: high, fill: 0.9}, {takes: 2 * minute, offered: high}},
		"few calls": {
			{takes: 5 * s, offered: few, fill: 0.9, every: 100 * time.Millisecond}, {takes: 5 * minute, offered: few, every: 100 * time.Millisecond},
		},
		"less offered": {{takes: 5 * s, offered: all, fill: 0.8}, {takes: 20 * s, offered: [4]uint64{2, 2, 2}}, {takes: 40 * s, offered: few}},
		"relief": {
			{takes: 4 * minute, offered: all, fill: 0.8, relief: 0.25}, {takes: 8 * minute, offered: all, fill: 0.65, relief: 0.15}, {takes: 2 * minute, offered: few},
		},
		"relief of utilization": {
			{takes: 3 * minute, offered: all, utilization: 0.9, relief: 0.06}, {takes: 3 * minute, offered: [4]uint64{1, 1, 1, 1}, utilization: 0.9, relief: 0.06},
		},
		"drains": {{takes: 2 * s, offered: all, fill: 1}, {takes: s / 2, offered: all, fill: 0.7}, {takes: s / 2, offered: all, fill: 0.55}, {takes: 3 * s, offered: all, fill: 0.51}},
		"gaps": {
			{takes: 5 * s, offered: all, fill: 1}, {takes: 8 * s, every: 2 * s, offered: all}, {takes: 5 * s, offered: all, fill: 1},
			{takes: 3 * s, every: 1500 * time.Millisecond, offered: all}, {takes: minute, every: minute},
		},
		"flapping": {
			{takes: 3 * s, offered: all, fill: 0.9}, {takes: 35 * s, offered: all}, {takes: 3 * s, offered: all, fill: 0.9}, {takes: 65 * s, offered: all},
			{takes: 3 * s, offered: all, fill: 0.9}, {takes: 125 * s, offered: all}, {takes: 3 * s, offered: all, fill: 0.9}, {takes: 6 * minute, offered: all},
		},
	}
}

// TestDegraderTrace compares the levels of Degraders with those recorded. Each change of a level
// has a line.
func TestDegraderTrace(t *testing.T) {
	race.SkipOneGoroutine(t)
	var out strings.Builder
	all := stretches()
	for _, name := range slices.Sorted(maps.Keys(all)) {
		fmt.Fprintf(&out, "# %s\n", name)
		var d degradation.Degrader
		p := degradation.Pressure{Thresholds: thresholds}
		now, stage, passed := began, 0, time.Duration(0)
		for _, x := range all[name] {
			every := max(x.every, 10*time.Millisecond)
			for end := now.Add(x.takes); now.Before(end); now = now.Add(every) {
				d.Observe(now, p)
				for passed += every; passed >= 10*time.Millisecond; passed -= 10 * time.Millisecond {
					for class := range p.Offered {
						p.Offered[class] += x.offered[class]
					}
				}
				if now.UnixMilli()%100 == 0 {
					p.Rejected[0] += x.rejected
				}
				st := d.Stats(now)
				less := float64(x.relief * float64(st.Stage))
				p.Fill, p.Utilization = max(0, x.fill-less), max(0, x.utilization-less)
				if st.Stage != stage {
					stage = st.Stage
					fmt.Fprintf(&out, "%v: stage %d, levels %v\n", now.Sub(began), stage, st.Levels)
				}
			}
			fmt.Fprintf(&out, "%v: %d changes\n", now.Sub(began), d.Stats(now).ChangesTotal)
		}
	}
	golden.Check(t, "trace.golden", out.String())
}
