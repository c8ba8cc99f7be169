package admin

import (
	"strings"
	"testing"

	"github.com/seed90641741/spillway"
)

// TestUnprotected: where gates only observe, and would help, the advice begins with how to enforce.
func TestUnprotected(t *testing.T) {
	gone := Figures{Seconds: 10, Offered: 80, GoneSent: 80, Ended: Classes{80}}
	would := func(f Figures) Figures { f.Would = Classes{40}; return f }
	silent := []Gate{{Cluster: "web", Unknown: true}}
	served := Figures{Seconds: 10, Offered: 1000, Goodput: 990, Would: Classes{300}, Ended: Classes{400, 0, 600}}
	byRate := []Reason{{Policy: "ratelimit", Outcome: "rejected", Mode: "observe", Minute: Classes{500}}}
	const proxy, gates = "Run `spillway mode enforce`", "Set the mode of the gates"
	for name, row := range map[string]struct {
		state State
		want  string // the advice begins so, or has a sentence so; empty: it has nothing of modes
		more  string
	}{
		"no limit is known":  {State{Mean: gone, Levels: Levels{Mode: spillway.ModeObserve, Gates: silent}}, proxy, "why it answers no request in time"},
		"clients give up":    {State{Mean: would(gone), Levels: Levels{Mode: spillway.ModeObserve}}, proxy, "the timeout of clients"},
		"and nothing queues": {State{Mean: gone, Levels: Levels{Mode: spillway.ModeObserve}}, "", "the timeout of clients"},
		"overloaded":         {State{Mean: served, Levels: Levels{Mode: spillway.ModeObserve}}, proxy, ""},
		"one gate observes":  {State{Mean: served, Levels: Levels{Mode: spillway.ModeEnforce}}, gates, ""},
		"a rate limit":       {State{Mean: served, Levels: Levels{Mode: spillway.ModeObserve}, Reasons: byRate}, "", ""},
		"it enforces":        {State{Mean: gone, Levels: Levels{Mode: spillway.ModeEnforce, Gates: silent}}, "", "why it answers no request in time"},
		"a library":          {State{Program: library, Mean: gone, Levels: Levels{Mode: spillway.ModeObserve, Gates: silent}}, "spillway.ModeEnforce", "why no handler answers"},
	} {
		v := verdict(&row.state, true)
		first, _, _ := strings.Cut(v.Do, ". ")
		if row.want == "" && strings.Contains(strings.ToLower(v.Do), "enforce") || !strings.Contains(first, row.want) || !strings.Contains(v.Do, row.more) {
			t.Errorf("%s: %s %q, want %q first, and %q", name, v.Headline, v.Do, row.want, row.more)
		}
	}
}
