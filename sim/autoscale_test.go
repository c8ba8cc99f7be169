package sim

import (
	"strings"
	"testing"
	"time"

	"github.com/seed90641741/spillway"
	"github.com/seed90641741/spillway/egress"
)

// TestAutoscaler: tasks grow by four or to twice as many in 15 s, up to what is offered, and shrink 300 s after it fell.
func TestAutoscaler(t *testing.T) {
	c := Config{
		Seed: 1, Duration: 20 * time.Minute, Step: 15 * time.Second,
		Clients: []Clients{{Name: "web", Rate: 20, Rates: []Rate{{At: 5 * time.Minute, Rate: 300}, {At: 10 * time.Minute, Rate: 20}}, Call: Edge{To: "api", Egress: egress.Config{ThrottleMode: spillway.ModeOff}}}},
		Services: []Service{{Name: "api", Tasks: 2, Queue: 10, CPU: Constant(50 * time.Millisecond),
			Autoscale: Autoscaler{Max: 40, Start: 20 * time.Second, Offered: 10}}},
	}
	s, err := New(c)
	if err != nil {
		t.Fatal(err)
	}
	r, err := s.Run(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	serving := func(at time.Duration) int { return s.services[0].series[at/c.Step].Serving }
	for _, row := range []struct {
		at          time.Duration
		least, most int
	}{
		{5 * time.Minute, 2, 3},
		{5*time.Minute + 30*time.Second, 2, 3}, // the first decision is at 5 min 15 s, and tasks take 20 s to start
		{5*time.Minute + 45*time.Second, 6, 7}, // four more
		{6 * time.Minute, 12, 14},              // twice as many
		{6*time.Minute + 15*time.Second, 24, 28},
		{7 * time.Minute, 27, 33},
		{14*time.Minute + 30*time.Second, 27, 33}, // 270 s after the load fell
		{16 * time.Minute, 2, 3},
	} {
		if n := serving(row.at); n < row.least || n > row.most {
			t.Errorf("at %v: %d tasks serve, want %d to %d", row.at, n, row.least, row.most)
		}
	}
	end := r.Services[0].Series
	for i := int(7 * time.Minute / c.Step); i < int(10*time.Minute/c.Step); i++ {
		if end.Rejected[i]*50 > end.Arrived[i] {
			t.Errorf("slot %d: %d of %d rejected by tasks that are twice what is needed", i, end.Rejected[i], end.Arrived[i])
		}
	}
}

// TestAutoscalerSignals: each signal has its own arithmetic.
func TestAutoscalerSignals(t *testing.T) {
	for name, row := range map[string]struct {
		scaler Autoscaler
		want   int // of 4 tasks, with 200 arrivals per second of which 120 are rejected, and half of each task busy
	}{
		"nothing":           {Autoscaler{}, 0},
		"cpu":               {Autoscaler{CPU: 0.25}, 8},
		"cpu near target":   {Autoscaler{CPU: 0.54}, 4},
		"in flight":         {Autoscaler{InFlight: 2}, 6},
		"offered":           {Autoscaler{Offered: 30}, 7},
		"overload":          {Autoscaler{Overload: 1}, 10},
		"the largest":       {Autoscaler{CPU: 0.25, Offered: 30, InFlight: 2}, 8},
		"overload near one": {Autoscaler{Overload: 2.4}, 4},
	} {
		s, err := New(Config{Seed: 1, Duration: time.Minute, Clients: []Clients{{Name: "web", Rate: 1, Call: Edge{To: "api"}}}, Services: []Service{{Name: "api", Tasks: 4, Processors: 2}}})
		if err != nil {
			t.Fatal(err)
		}
		v := s.services[0]
		s.pass(int64(45 * time.Second))
		for _, task := range v.tasks {
			task.present = 3
		}
		sum := Load{Arrived: 6000, Rejected: 3600, BusyNS: int64(4 * 30 * time.Second)}
		if got := v.wanted(&row.scaler, sum); got != row.want {
			t.Errorf("%s: %d tasks, want %d", name, got, row.want)
		}
		if few := (Load{Arrived: 6000, Rejected: 200}); row.scaler.Overload > 0 && v.wanted(&row.scaler, few) != 0 {
			t.Errorf("%s: asks for tasks though little is rejected", name)
		}
	}
}

func TestAutoscalerIsChecked(t *testing.T) {
	for _, row := range []struct {
		scaler Autoscaler
		want   string
	}{
		{Autoscaler{CPU: 1}, "Services[0].Autoscale.Max"},
		{Autoscaler{Max: 1, CPU: 1}, "Services[0].Autoscale.Max"},
		{Autoscaler{Max: 9, CPU: -1}, "Services[0].Autoscale.CPU"},
		{Autoscaler{Max: 9, Start: -1}, "Services[0].Autoscale.Start"},
	} {
		_, err := New(Config{Duration: time.Minute, Clients: []Clients{{Name: "web", Rate: 1, Call: Edge{To: "api"}}}, Services: []Service{{Name: "api", Tasks: 2, Autoscale: row.scaler}}})
		if err == nil || !strings.Contains(err.Error(), row.want) {
			t.Errorf("%+v: %v", row.scaler, err)
		}
	}
}
