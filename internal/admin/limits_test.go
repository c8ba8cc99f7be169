package admin

import (
	"strings"
	"testing"
	"time"

	"github.com/seed90641741/spillway"
	"github.com/seed90641741/spillway/internal/admin/limits"
)

// TestUsualRange: a limit that leaves ten times its usual range is a notice; one that adapts after
// the start, moves within the range, or holds nothing back, is not.
func TestUsualRange(t *testing.T) {
	s := newScene(spillway.ModeEnforce)
	s.proxy.levels = Levels{
		Gates: []Gate{{Listener: "public", Cluster: "web", Adaptive: true, Least: 1, Most: 500}, {Listener: "public", Cluster: "fixed", Limit: 7}},
		Tuned: []Tuned{{Name: "db rate", Value: 1000, Least: 10, Most: 100_000}},
	}
	seconds := func(n int, limit, tuned float64) *State {
		s.proxy.mu.Lock()
		s.proxy.levels.Gates[0].Limit, s.proxy.levels.Tuned[0].Value = limit, tuned
		s.proxy.mu.Unlock()
		for range n {
			s.now = s.now.Add(time.Second)
			s.sampler.tick(s.now)
		}
		return s.sampler.state.Load()
	}
	for _, row := range []struct {
		name  string
		n     int
		limit float64
		tuned float64
		odd   string
	}{
		{"a start", 30, 1, 1000, ""},
		{"adapts", 100, 60, 1000, ""},
		{"few seconds with a limit", 120, 0, 1200, ""},
		{"usual", 120, 40, 1500, ""},
		{"within ten times", 5, 5, 9000, ""},
		{"collapsed", 5, 3, 1500, "web in flight is far below"},
		{"holds nothing back", 5, 0, 1500, ""},
		{"back", 5, 50, 1500, ""},
		{"tuned away", 5, 50, 16_000, "db rate is far above"},
	} {
		st := seconds(row.n, row.limit, row.tuned)
		text := ""
		for _, n := range st.Notices {
			text += n.Headline
		}
		if !strings.Contains(text, row.odd) || row.odd == "" && text != "" {
			t.Errorf("%s: notices %q, want %q; limits %+v", row.name, text, row.odd, st.Limits)
		}
		if len(st.Limits) != 2 || st.Limits[0].Most != 500 || st.Last.Limits["db rate"] != row.tuned {
			t.Errorf("%s: %+v, %+v", row.name, st.Limits, st.Last.Limits)
		}
	}
	last := seconds(1, 50, 1500).Limits
	if u := last[0].Usual; u == nil || u.Low < 1 || u.High != 60 {
		t.Errorf("the usual range of %+v is %+v", last[0], u)
	}
}

// TestManyLimits: the number of charts has a bound.
func TestManyLimits(t *testing.T) {
	l := Levels{Gates: make([]Gate, 2*limits.Most)}
	for i := range l.Gates {
		l.Gates[i] = Gate{Listener: "l", Cluster: strings.Repeat("x", i), Adaptive: true}
	}
	if all := limitsOf(&l); len(all) != limits.Most {
		t.Errorf("%d limits, want %d", len(all), limits.Most)
	}
}
