package sim

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/seed90641741/spillway"
	"github.com/seed90641741/spillway/internal/race"
)

// chain is a client that makes one call of a front service, which calls a back service five times. A call waits 100 ms for the only slot.
func chain(atOnce bool) Config {
	return Config{
		Duration: 10 * time.Second,
		Services: []Service{
			{Name: "back", Slots: 1, Wait: Constant(100 * ms)},
			{Name: "front", Calls: []Edge{{To: "back", Times: 5, AtOnce: atOnce, Latency: Constant(ms), Leave: true}}},
		},
		Clients: []Clients{{Name: "web", Trace: []time.Duration{0}, Call: Edge{To: "front", Latency: Constant(ms)}}},
	}
}

// All calls of a task have its level, and the number of those that were served before.
func TestTasksHaveProgress(t *testing.T) {
	race.SkipOneGoroutine(t)
	for atOnce, want := range map[bool][]spillway.Progress{false: {0, 1, 2, 3, 4}, true: {0, 0, 0, 0, 0}} {
		s, err := New(chain(atOnce))
		if err != nil {
			t.Fatal(err)
		}
		var levels []spillway.Level
		var got []spillway.Progress
		s.witness.attempt = func(c *call) {
			levels = append(levels, c.call.Level)
			if c.edge.group == nil {
				got = append(got, c.call.Progress)
			}
		}
		r, err := s.Run(context.Background())
		if err != nil {
			t.Fatal(err)
		}
		check(t, s, r)
		if !slices.Equal(got, want) || len(levels) != 6 || !levels[0].Valid() || slices.Max(levels) != slices.Min(levels) {
			t.Errorf("at once %v: progress %v, want %v; levels %v", atOnce, got, want, levels)
		}
		if n := r.Clients[0].Windows[0].Good; n != 1 {
			t.Errorf("at once %v: %d tasks done, want 1", atOnce, n)
		}
	}
}

// With the first call that fails, and when the client leaves, the calls that wait are given up.
func TestTasksLetGo(t *testing.T) {
	full := chain(true)
	full.Services[0].Queue = 3
	full.Services[1].Calls[0].Retry.Budgeted.Ratio = -1
	left := chain(true)
	left.Clients[0].Deadline, left.Clients[0].Call.Leave = 150*ms, true
	stays := chain(true)
	stays.Clients[0].Deadline, stays.Services[1].Calls[0].Leave = 150*ms, false
	for name, row := range map[string]struct {
		config Config
		served int
	}{"one is rejected": {full, 1}, "the client leaves": {left, 2}, "servers do not notice": {stays, 5}} {
		r := run(t, row.config)
		if got := int(r.Services[0].Windows[0].Served); got != row.served {
			t.Errorf("%s: the back service has served %d of 5 calls, want %d", name, got, row.served)
		}
	}
}

func TestTimesIsChecked(t *testing.T) {
	of := func(change func(c *Config)) error {
		c := chain(false)
		change(&c)
		return c.Validate()
	}
	if of(func(*Config) {}) != nil || of(func(c *Config) { c.Services[1].Calls[0].Times = 1001 }) == nil ||
		of(func(c *Config) { c.Services[1].Calls[0].Times = -1 }) == nil || of(func(c *Config) { c.Clients[0].Call.Times = 2 }) == nil {
		t.Error("a number of calls that is not allowed is accepted")
	}
}
