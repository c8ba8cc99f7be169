package main

import (
	"time"

	"github.com/seed90641741/spillway/quota"
	"github.com/seed90641741/spillway/quota/fleet"
)

// A scenario is a service, its demand, and what happens to its boards.
type scenario struct {
	Name  string
	Seed  uint64
	Tasks int
	Zones int // each has a board and an equal part of the limit; zero means 1
	End   time.Duration
	Spans []span // what is measured

	Limit    float64                          // of the main customer, in calls per second in all tasks
	Demand   float64                          // of the main customer, in limits
	Load     func(w *world, task int) float64 // the part of it that comes to a task
	Interval time.Duration                    // zero means the default, 200 ms

	Customers int // besides the main one
	Spread    int // tasks that each of them comes to

	Latency time.Duration // one way; a quarter more on average, exponentially distributed
	Loss    float64       // of messages
	Slow    time.Duration // how late publications are
	Traced  bool          // whether the result has a trace, for the picture
	Events  func(w *world)
}

// A span is a part of a scenario.
type span struct {
	Name     string
	From, To time.Duration
}

func (s *scenario) zones() int { return max(s.Zones, 1) }

func (s *scenario) interval() time.Duration {
	if s.Interval == 0 {
		return 200 * ms
	}
	return s.Interval
}

// config is that of tasks whose zone has a part of the main customer's limit.
func (s *scenario) config(limit float64) fleet.Config {
	return fleet.Config{
		Tasks: s.Tasks / s.zones(), Interval: s.Interval, MaxUnlisted: maxUnlisted,
		Limits: quota.LocalConfig{
			Customers:    map[string]quota.Limit{"main": {Rate: limit}},
			DefaultLimit: quota.Limit{Rate: otherLimit},
		},
	}
}

const second = time.Second

// sizes are the columns of the table.
var sizes = []int{10, 100, 1000, 10_000}

// settled is when levels have followed the demand.
const settled = 4 * second

// belowLimit is the name of the scenario in which no call should be rejected.
const belowLimit = "demand 0.8"

// perTask is the main customer's limit for each task, in calls per second.
const perTask = 10

// scenarios returns the rows of the table for a number of tasks.
func scenarios(tasks int) []*scenario {
	all := []*scenario{
		{Name: belowLimit, Demand: 0.8},
		{Name: "demand 3"},
		{Name: "limit of 1,000/s at any size", Limit: 1000},
		{Name: "round trip of 50 ms", Latency: 25 * ms},
		{Name: "round trip of 300 ms", Latency: 150 * ms},
		{Name: "5 % of messages are lost", Loss: 0.05},
		{Name: "levels reach the board 500 ms late", Slow: 500 * ms},
		{Name: "interval of 1 s", Interval: second, End: 50 * second, Spans: []span{{"", 30 * second, 50 * second}}},
		moves(), frozen(), empty(), cut(), crash(),
		zones("4 zones, equal parts", 0), zones("4 zones, parts move every 5 s", 5*second), zones("4 zones, parts move every 30 s", 30*second),
	}
	for _, s := range all {
		s.Tasks, s.Seed = tasks, 1
		if s.Limit == 0 {
			s.Limit = perTask * float64(tasks)
		}
		if s.Demand == 0 {
			s.Demand = 3
		}
		if s.Load == nil {
			s.Load = zipf(tasks)
		}
		if s.End == 0 {
			s.End = 14 * second
		}
		if s.Spans == nil {
			s.Spans = []span{{"", settled, 14 * second}}
		}
	}
	return all
}

// costName is the name of the scenario whose costs are all on the page.
const costName = "100,000 customers"

// costly returns the scenarios with many customers.
func costly(tasks int) []*scenario {
	all := []*scenario{costs(tasks, 20)}
	if tasks == 1000 {
		other := costs(tasks, tasks)
		other.Name = "each comes to all tasks"
		all = append(all, other)
	}
	return all
}

// costs is 100,000 customers and the main one. Each comes to a number of tasks.
func costs(tasks, spread int) *scenario {
	return &scenario{
		Name: costName, Seed: 1, Tasks: tasks, Limit: perTask * float64(tasks), Demand: 3, Load: zipf(tasks),
		Customers: 100_000, Spread: min(spread, tasks), End: 18 * second,
	}
}

// zipf is uneven demand; the first task has the most.
func zipf(tasks int) func(*world, int) float64 {
	sum := 0.
	for i := range tasks {
		sum += 1 / float64(i+1)
	}
	return func(_ *world, i int) float64 { return 1 / float64(i+1) / sum }
}

// moves is demand that moves from one half of the tasks to the other.
func moves() *scenario {
	return &scenario{
		Name: "all demand moves", Demand: 1.5, End: 10 * second,
		Spans: []span{{"from then on", 5 * second, 10 * second}},
		Load: func(w *world, i int) float64 {
			if (i < w.Tasks/2) == (w.now < 5*second) {
				return 2 / float64(w.Tasks)
			}
			return 0
		},
	}
}

// frozen is a leader that stops, and continues when another one leads.
func frozen() *scenario {
	return &scenario{
		Name: "the leader stops for 3 s", End: 12 * second, Spans: []span{{"", 4 * second, 12 * second}},
		Events: func(w *world) {
			if w.now != 5*second {
				return
			}
			for _, k := range w.tasks {
				if k.fleet.Stats(w.clock()).Leader {
					k.frozen = 8 * second
				}
			}
		},
	}
}

// empty is a board that is away, and comes back without data.
func empty() *scenario {
	return &scenario{
		Name: "the board is away for 3 s, comes back empty", End: 14 * second, Traced: true, Spans: []span{{"", 4 * second, 14 * second}},
		Events: func(w *world) {
			if w.now == 5*second {
				w.boards[0] = nil
			}
			if w.now == 8*second {
				w.boards[0] = fleet.NewMemory(w.clock)
			}
		},
	}
}

// cut is a partition: every second task is off the board for longer than Grace.
func cut() *scenario {
	return &scenario{
		Name: "half of the tasks are cut off for 15 s", End: 26 * second, Load: even,
		Spans: []span{{"until Grace", 5 * second, 15 * second}, {"after Grace", 16 * second, 20 * second}, {"healed", 22 * second, 26 * second}},
		Events: func(w *world) {
			for i, k := range w.tasks {
				k.cut = i%2 == 0 && w.now >= 5*second && w.now < 20*second
			}
		},
	}
}

// crash ends a quarter of the tasks without a goodbye; their load goes to the others.
func crash() *scenario {
	return &scenario{
		Name: "a quarter of the tasks crash", End: 22 * second,
		Spans: []span{{"until Grace", 5 * second, 15 * second}, {"after Grace", 18 * second, 22 * second}},
		Load: func(w *world, i int) float64 {
			if w.now < 5*second {
				return even(w, i)
			}
			return even(w, i) / float64(w.Tasks-w.Tasks/4) * float64(w.Tasks)
		},
		Events: func(w *world) {
			for i, k := range w.tasks {
				k.down = i < w.Tasks/4 && w.now >= 5*second
			}
		},
	}
}

func even(w *world, _ int) float64 { return 1 / float64(w.Tasks) }
