package tune_test

import (
	"math"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/seed90641741/spillway/internal/race"
	"github.com/seed90641741/spillway/tune"
)

var (
	nan = math.NaN()
	inf = math.Inf(1)
)

func latency(c tune.Config) tune.Config {
	if c.Limit == 0 {
		c.Limit = 100
	}
	c.Signals = []tune.Signal{{Name: "latency", Unit: "ms", Target: 50}}
	c.Enforce = true
	return c
}

// A step is a reading of one signal, and the limit after it.
type step struct {
	at          time.Duration
	used, value float64
	want        float64
}

func TestRules(t *testing.T) {
	for _, row := range []struct {
		name   string
		config tune.Config
		steps  []step
	}{
		{"lowered when the pressure lasts", tune.Config{}, []step{
			{0, nan, 60, 100}, {249 * ms, nan, 60, 100}, {250 * ms, nan, 60, 95},
		}},
		{"one good reading in between", tune.Config{}, []step{
			{0, nan, 60, 100}, {200 * ms, nan, 50, 100}, {400 * ms, nan, 60, 100}, {650 * ms, nan, 60, 95},
		}},
		{"inside of the deadband", tune.Config{}, []step{{0, 100, 54, 100}, {time.Second, 100, 46, 100}, {2 * time.Second, 100, 54, 100}}},
		{"not before the reaction", tune.Config{Persist: -1}, []step{
			{0, nan, 60, 95}, {499 * ms, nan, 60, 95}, {500 * ms, nan, 60, 90.25},
		}},
		{"lowered to what is used", tune.Config{}, []step{{0, 80, 100, 100}, {250 * ms, 80, 100, 76}}},
		{"a step and no more", tune.Config{}, []step{{0, 10, 100, 100}, {250 * ms, 10, 100, 70}}},
		{"an amount and no more", tune.Config{MaxDelta: 2}, []step{{0, 10, 100, 100}, {250 * ms, 10, 100, 98}}},
		{"a queue that is worked off", tune.Config{Persist: -1}, []step{
			{0, 80, 70, 76}, {time.Second, 80, 70, 76}, {2 * time.Second, 80, 70, 76},
		}},
		{"a long queue", tune.Config{Persist: -1}, []step{
			{0, 80, 400, 76}, {time.Second, 80, 400, 68.4}, {2 * time.Second, 80, 400, 54.72}, {3 * time.Second, 80, 400, 52},
		}},
		{"raised while it is used", tune.Config{Persist: -1}, []step{
			{0, 100, 10, 102}, {time.Second, 102, 10, 106}, {2 * time.Second, 100, 10, 106},
		}},
		{"not raised while it is not", tune.Config{Persist: -1}, []step{{0, 94, 10, 100}, {time.Second, nan, 10, 100}, {time.Hour, 0, 10, 100}}},
		{"not raised by what cannot be", tune.Config{Persist: -1}, []step{{0, inf, 10, 100}, {time.Second, -1, 10, 100}}},
		{"back to the ceiling", tune.Config{Persist: -1, MaxStep: 0.5}, []step{
			{0, 80, 400, 76}, {time.Second, 80, 400, 68.4}, {2 * time.Second, 80, 400, 54.72}, {3 * time.Second, 54, 30, 76}, {4 * time.Second, 76, 30, 77.6},
		}},
		{"by how far it is", tune.Config{Rule: tune.Proportional, Persist: -1}, []step{
			{0, nan, 62.5, 95}, {time.Second, nan, 100, 90.25},
		}},
		{"a whole number", tune.Config{Limit: 3, Whole: true, Persist: -1}, []step{
			{0, 3, 60, 2}, {time.Second, 2, 60, 1}, {2 * time.Second, 1, 60, 1}, {3 * time.Second, 1, 10, 2},
		}},
		{"the bounds", tune.Config{Min: 99, Max: 101, Persist: -1}, []step{
			{0, nan, 60, 99}, {time.Second, nan, 60, 99}, {2 * time.Second, 99, 0, 101}, {4 * time.Second, 101, 0, 101},
		}},
		{"time that steps back", tune.Config{Persist: -1}, []step{{time.Hour, nan, 60, 95}, {0, nan, 60, 95}, {time.Hour, nan, 60, 95}, {time.Hour + time.Second, nan, 60, 90.25}}},
		{"raised at the share that must be used", tune.Config{Persist: -1}, []step{{0, 95, 10, 102}}},
		{"raised by the greatest value", tune.Config{Persist: -1}, []step{{0, math.MaxFloat64, 10, 102}}},
		{"raised by a thousandth", tune.Config{Limit: 1000, Increase: 0.001, Persist: -1}, []step{{0, 1000, 10, 1001}}},
		{"a capacity that is much the same", tune.Config{Persist: -1}, []step{
			{0, 80, 100, 76}, {time.Second, 76, 10, 77.6}, {2 * time.Second, 84, 400, 73.72}, {3 * time.Second, 73.72, 10, 77.9},
		}},
		{"a capacity that is another one", tune.Config{Persist: -1}, []step{
			{0, 80, 100, 76}, {time.Second, 76, 10, 77.6}, {2 * time.Second, 89, 400, 73.72}, {3 * time.Second, 73.72, 10, 84.55},
		}},
		{"without a value nothing is raised", tune.Config{Persist: -1}, []step{{0, 100, nan, 100}, {time.Second, 100, inf, 100}, {2 * time.Second, 100, -1, 100}}},
	} {
		t.Run(row.name, func(t *testing.T) {
			tuner := must(tune.New(latency(row.config)))
			for i, s := range row.steps {
				m, moved := tuner.Read(t0.Add(s.at), s.used, s.value)
				if got := tuner.Limit(); math.Abs(got-s.want) > 1e-9 || moved && m.To != got {
					t.Fatalf("step %d: limit %v, want %v (%v)", i, got, s.want, m)
				}
			}
		})
	}
}

// TestFallback loses the signal while the limit is low, and gets it back.
func TestFallback(t *testing.T) {
	tuner := must(tune.New(latency(tune.Config{Persist: 300 * ms, Stale: 2 * time.Second})))
	now, said := t0, []string(nil)
	read := func(d time.Duration, used, value float64) {
		for end := now.Add(d); now.Before(end); now = now.Add(100 * ms) {
			if m, ok := tuner.Read(now, used, value); ok {
				said = append(said, m.String())
			}
		}
	}
	read(1800*ms, 50, 200)
	said = said[len(said)-1:]
	read(4*time.Second, 40, nan)
	if s := tuner.Stats(now); !s.Fallback || s.Limit != 100 || s.Pressure() != 0 {
		t.Errorf("without its signal: %+v", s)
	}
	read(time.Second, 98, 10)
	want := []string{
		"49 to 42.5 (aimd): latency is 200 ms, for 400ms above the target of 50 ms; 50 of 49 are used",
		"42.5 to 55.25 (fallback): latency is not known for 2s: back to the configured limit",
		"55.25 to 71.83 (fallback): latency is not known for 2.5s: back to the configured limit",
		"71.83 to 93.37 (fallback): latency is not known for 3s: back to the configured limit",
		"93.37 to 100 (fallback): latency is not known for 3.5s: back to the configured limit",
		"stays at 100 (resume): all signals are known again for 300ms",
		"100 to 102 (aimd): latency is 10 ms, for 300ms below the target of 50 ms; 98 of 100 are used",
	}
	if got := strings.Join(said, "\n"); got != strings.Join(want, "\n") {
		t.Errorf("said:\n%s\nwant:\n%s", got, strings.Join(want, "\n"))
	}
	if tuner.Stats(now).Fallback {
		t.Error("still in fallback")
	}
}

// Without Persist one reading is enough to resume, but one that knows all signals.
func TestResumeNeedsAllSignals(t *testing.T) {
	c := latency(tune.Config{Persist: -1, Stale: time.Second})
	c.Signals = append(c.Signals, tune.Signal{Name: "rejections", Unit: "%", Target: 5})
	tuner := must(tune.New(c))
	tuner.Read(t0, 100, 50, 5)
	if m, _ := tuner.Read(t0.Add(time.Second), 100, 50, nan); m.Rule != tune.Fallback {
		t.Fatalf("without a signal: %v", m)
	}
	tuner.Read(t0.Add(1500*ms), 100, nan, nan)
	for i, row := range []struct {
		latency, rejections float64
		want                bool
	}{{50, nan, false}, {nan, 5, false}, {50, 5, true}} {
		m, ok := tuner.Read(t0.Add(time.Duration(1600+i)*ms), 100, row.latency, row.rejections)
		if ok != row.want || ok && m.Rule != tune.Resume {
			t.Errorf("reading %d: %v", i, m)
		}
	}
}

// Of two signals the one that presses more counts, and one that is missing holds the
// limit down and then takes it back.
func TestTwoSignals(t *testing.T) {
	c := latency(tune.Config{Persist: -1, Stale: 3 * time.Second})
	c.Signals = append(c.Signals, tune.Signal{Name: "rejections", Unit: "%", Target: 5})
	tuner := must(tune.New(c))
	m, _ := tuner.Read(t0, 100, 100, 20)
	if m.Signal.Name != "rejections" || m.Value != 20 || m.To != 95 {
		t.Errorf("two signals press: %v", m)
	}
	if m, ok := tuner.Read(t0.Add(time.Second), 95, 10); ok {
		t.Errorf("one is missing: %v", m)
	}
	if m, _ = tuner.Read(t0.Add(2*time.Second), 95, 100, nan); m.To != 90.25 {
		t.Errorf("one is missing, the other presses: %v", m)
	}
	if m, _ = tuner.Read(t0.Add(3*time.Second), 95, 10, nan); m.Rule != tune.Fallback || m.Signal.Name != "rejections" || m.To != 100 {
		t.Errorf("one has been missing for too long: %v", m)
	}
}

func TestObserve(t *testing.T) {
	c := latency(tune.Config{Persist: -1})
	c.Enforce = false
	tuner := must(tune.New(c))
	said := 0
	for i := range 119 {
		m, ok := tuner.Read(t0.Add(time.Duration(i)*time.Second), 90, 60)
		if !ok {
			continue
		}
		said++
		if m.Applied || m.From != 100 || m.To >= 100 || !strings.HasPrefix(m.String(), "would go from 100 to 8") {
			t.Errorf("at %d s: %+v, %v", i, m, m)
		}
	}
	if said != 2 {
		t.Errorf("the same was said %d times in two minutes, want 2", said)
	}
	if m, ok := tuner.Read(t0.Add(2*time.Minute), 100, 10); !ok || m.To <= m.From {
		t.Errorf("another intention: %v", m)
	}
	if s := tuner.Stats(time.Time{}); s.Limit != 100 || s.RaisedTotal+s.LoweredTotal != 0 || len(s.Moves) != 3 || s.Enforce {
		t.Errorf("an observer moved: %+v", s)
	}
}

func TestUpdate(t *testing.T) {
	c := latency(tune.Config{Persist: -1})
	tuner := must(tune.New(c))
	tuner.Read(t0, nan, 60)
	for _, row := range []struct {
		name   string
		change func(*tune.Config)
		want   float64
	}{
		{"the limit stays", func(c *tune.Config) { c.Gain = 1 }, 95},
		{"within new bounds", func(c *tune.Config) { c.Max = 200; c.Min = 96 }, 96},
		{"another limit", func(c *tune.Config) { c.Limit = 120 }, 120},
		{"no fraction", func(c *tune.Config) { c.Whole = true }, 120},
	} {
		row.change(&c)
		if err := tuner.Update(c); err != nil || tuner.Limit() != row.want {
			t.Errorf("%s: %v, %v; want %v", row.name, tuner.Limit(), err, row.want)
		}
	}
	bad := c
	bad.MaxStep = 2
	if err := tuner.Update(bad); err == nil || tuner.Limit() != 120 {
		t.Errorf("a bad one: %v, %v", err, tuner.Limit())
	}
	tuner.Read(t0.Add(time.Second), nan, 60)
	c.Enforce = false
	if err := tuner.Update(c); err != nil || tuner.Limit() != 120 {
		t.Errorf("to observe: %v, %v", tuner.Limit(), err)
	}
}

func TestStatsKeepTheLastMoves(t *testing.T) {
	tuner := must(tune.New(latency(tune.Config{Persist: -1, Min: 1, Max: 1e9})))
	for i := range 50 {
		tuner.Read(t0.Add(time.Duration(i)*time.Second), tuner.Limit(), 10)
	}
	s := tuner.Stats(time.Time{})
	if len(s.Moves) != 32 || s.RaisedTotal != 50 || !s.Moves[31].Time.Equal(t0.Add(49*time.Second)) || s.Moves[31].To != s.Limit {
		t.Errorf("%d moves, the last of them %v; %+v", len(s.Moves), s.Moves[31], s)
	}
	for i := range s.Moves[1:] {
		if s.Moves[i].To != s.Moves[i+1].From {
			t.Errorf("%v is followed by %v", s.Moves[i], s.Moves[i+1])
		}
	}
}

func TestConfigOutOfRangeNamesTheField(t *testing.T) {
	good := latency(tune.Config{})
	for _, row := range []struct {
		change func(*tune.Config)
		want   string
	}{
		{func(c *tune.Config) { c.Limit = 0 }, "Limit is 0, must be above 0 and at most 1e+12"},
		{func(c *tune.Config) { c.Limit = nan }, "Limit is NaN"},
		{func(c *tune.Config) { c.Min = 101 }, "Min is 101, must be above 0 and at most 100"},
		{func(c *tune.Config) { c.Max = 99 }, "Max is 99, must be 100 to 1e+12"},
		{func(c *tune.Config) { c.Max = inf }, "Max is +Inf"},
		{func(c *tune.Config) { c.Increase = -1 }, "Increase is -1, must be above 0 and at most 0.3"},
		{func(c *tune.Config) { c.Decrease = 0.4 }, "Decrease is 0.4, must be above 0 and at most 0.3"},
		{func(c *tune.Config) { c.Gain = 2 }, "Gain is 2"},
		{func(c *tune.Config) { c.Deadband = 1 }, "Deadband is 1"},
		{func(c *tune.Config) { c.Deadband = nan }, "Deadband is NaN"},
		{func(c *tune.Config) { c.MaxStep = 1 }, "MaxStep is 1, must be above 0 and at most 0.9"},
		{func(c *tune.Config) { c.MaxDelta = -1 }, "MaxDelta is -1"},
		{func(c *tune.Config) { c.Reaction = time.Microsecond }, "Reaction is 1µs, must be 1ms to 1h0m0s"},
		{func(c *tune.Config) { c.Persist = 2 * time.Hour }, "Persist is 2h0m0s"},
		{func(c *tune.Config) { c.Stale = -1 }, "Stale is -1ns"},
		{func(c *tune.Config) { c.Rule = tune.Fallback }, "Rule is 2, must be AIMD or Proportional"},
		{func(c *tune.Config) { c.Whole, c.Max = true, 200.5 }, "Max is 200.5, must be a whole number"},
		{func(c *tune.Config) { c.Whole, c.MaxDelta = true, 0.5 }, "MaxDelta is 0.5, must be 1 or more"},
		{func(c *tune.Config) { c.Signals = nil }, "Signals is 0, must be 1 to 16"},
		{func(c *tune.Config) { c.Signals = []tune.Signal{{Target: 1}} }, `Signals[0].Name is "", must be a name`},
		{func(c *tune.Config) { c.Signals = []tune.Signal{{Name: "a"}} }, "Signals[0].Target is 0"},
		{func(c *tune.Config) { c.Signals = append(c.Signals, c.Signals[0]) }, `Signals[1].Name is "latency", must be different from the others`},
	} {
		c := good
		row.change(&c)
		if _, err := tune.New(c); err == nil || !strings.Contains(err.Error(), row.want) {
			t.Errorf("error %v, want %q", err, row.want)
		}
	}
}

// TestGreatLimits: what is documented as the greatest limit is one.
func TestGreatLimits(t *testing.T) {
	if s := must(tune.New(latency(tune.Config{Limit: 1e12}))).Stats(time.Time{}); s.Max != 1e12 {
		t.Errorf("at most %v", s.Max)
	}
}

func TestRuleText(t *testing.T) {
	var r tune.Rule
	if err := r.UnmarshalText([]byte("proportional")); err != nil || r != tune.Proportional {
		t.Errorf("%v, %v", r, err)
	}
	if err := r.UnmarshalText([]byte("fallback")); err == nil {
		t.Error("fallback is a rule to choose")
	}
	if text, err := tune.Resume.MarshalText(); string(text) != "resume" || err != nil || tune.Rule(9).String() != "Rule(9)" {
		t.Errorf("%s, %v, %v", text, err, tune.Rule(9))
	}
}

// TestConcurrentUse has a dashboard look, and a reload, while readings come.
func TestConcurrentUse(t *testing.T) {
	c := latency(tune.Config{Persist: -1, Reaction: ms})
	tuner := must(tune.New(c))
	var all sync.WaitGroup
	all.Go(func() {
		for i := range 2000 {
			tuner.Read(t0.Add(time.Duration(i)*ms), tuner.Limit(), float64(i%100))
		}
	})
	all.Go(func() {
		for range 500 {
			for _, m := range tuner.Stats(time.Time{}).Moves {
				_ = m.String()
			}
		}
	})
	all.Go(func() {
		for range 500 {
			if err := tuner.Update(c); err != nil {
				t.Error(err)
			}
		}
	})
	all.Wait()
	if s := tuner.Stats(time.Time{}); s.Limit < s.Min || s.Limit > s.Max {
		t.Errorf("limit %v", s.Limit)
	}
}

func TestNoAllocation(t *testing.T) {
	if race.Enabled {
		t.Skip("the race detector allocates")
	}
	tuner := must(tune.New(latency(tune.Config{})))
	now := t0
	for name, value := range map[string]float64{"no move": 50, "moves": 200} {
		if n := testing.AllocsPerRun(1000, func() {
			now = now.Add(time.Second)
			tuner.Read(now, 90, value)
		}); n != 0 {
			t.Errorf("%s: %v allocations", name, n)
		}
	}
}
