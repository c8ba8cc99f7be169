package tune_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/seed90641741/spillway/internal/golden"
	"github.com/seed90641741/spillway/tune"
)

// TestTrace compares the moves of tuners with those recorded. Values are on a grid, so that
// they meet the bounds of the rules exactly.
func TestTrace(t *testing.T) {
	latency, errors := tune.Signal{Name: "latency", Unit: "ms", Target: 100}, tune.Signal{Name: "errors", Target: 2}
	one, two := []tune.Signal{latency}, []tune.Signal{latency, errors}
	rows := []struct {
		name   string
		config tune.Config
		steady int // readings, on average, until the backend changes
	}{
		{"aimd", tune.Config{Limit: 100, Signals: one, Enforce: true}, 12},
		{"aimd, whole", tune.Config{Limit: 10, Signals: two, Whole: true, Enforce: true}, 12},
		{"aimd, bounds", tune.Config{Limit: 100, Min: 80, Max: 125, MaxStep: 0.1, MaxDelta: 4, Deadband: -1, Persist: -1, Signals: one, Enforce: true}, 12},
		{"proportional", tune.Config{Limit: 100, Rule: tune.Proportional, Signals: one, Enforce: true}, 12},
		{"proportional, observed", tune.Config{Limit: 2000, Rule: tune.Proportional, Signals: two}, 12},
		{"often missing", tune.Config{Limit: 100, Signals: two, Stale: 600 * time.Millisecond, Reaction: 200 * time.Millisecond, Enforce: true}, 12},
		{"aimd, restless", tune.Config{Limit: 100, Max: 1e6, Signals: one, Reaction: 300 * time.Millisecond, Persist: 200 * time.Millisecond, Enforce: true}, 2},
		{"proportional, restless", tune.Config{Limit: 100, Max: 1e6, Rule: tune.Proportional, Signals: one, Reaction: 300 * time.Millisecond, Persist: 200 * time.Millisecond, Deadband: 0.02, Enforce: true}, 2},
		{"proportional, far below", tune.Config{Limit: 100, Max: 1e6, Rule: tune.Proportional, Increase: 0.3, Gain: 0.1, Signals: one, Persist: -1, Deadband: -1, Enforce: true}, 40},
	}
	var out strings.Builder
	for i, row := range rows {
		fmt.Fprintf(&out, "# %s\n", row.name)
		trace(t, &out, must(tune.New(row.config)), row.config, row.steady, rand.New(rand.NewPCG(uint64(i), 3)))
	}
	golden.Check(t, "trace.golden", out.String())
}

// trace lets the signals rise and fall for a while each, like the signals of a backend.
func trace(t *testing.T, out *strings.Builder, x *tune.Tuner, c tune.Config, steady int, rng *rand.Rand) {
	t.Helper()
	level, used := 8, 100
	for at := time.Duration(0); at < 60*time.Second; at += 100 * time.Millisecond {
		if rng.IntN(steady) == 0 {
			level, used = 5+rng.IntN(11), 60+5*rng.IntN(9)
			if steady == 40 {
				level, used = 5+rng.IntN(6), 100
			}
		}
		values := make([]float64, len(c.Signals))
		for i, s := range c.Signals {
			values[i] = s.Target * float64(level) / 10
			if rng.IntN(8) == 0 || level == 13 {
				values[i] = math.NaN()
			}
		}
		now := time.Unix(1e9, 0).Add(at)
		if m, ok := x.Read(now, float64(used)/100*x.Limit(), values...); ok {
			fmt.Fprintf(out, "%5.1fs %v; lasted %v, used %.6g, applied %t\n", at.Seconds(), m, m.Lasted, m.Used, m.Applied)
		}
		if at%(10*time.Second) == 0 {
			s := x.Stats(now)
			fmt.Fprintf(out, "%5.1fs limit %.9g, %d up, %d down, fallback %t, used %.9g, %d moves\n", at.Seconds(), s.Limit, s.RaisedTotal, s.LoweredTotal, s.Fallback, s.Used, len(s.Moves))
			for _, v := range s.Signals {
				fmt.Fprintf(out, "       %s %.6g for %v\n", v.Name, v.Value, v.Age)
			}
		}
	}
}
