package top

import (
	"math"
	"strings"
	"testing"
	"time"

	"github.com/seed90641741/spillway/cmd/spillway/internal/gateway/top/query"
)

func second(n float64) time.Time { return noon.Add(time.Duration(n * float64(time.Second))) }

// TestRates replays the answers of one process on one history.
func TestRates(t *testing.T) {
	h := history{window: 10 * time.Second}
	for i, row := range []struct {
		here, there      float64 // seconds after noon, by the two clocks
		started, offered int
		fresh, again     bool
		rate, seconds    float64
	}{
		{0, 0, 0, 1000, true, false, 0, 0},
		{1, 0, 0, 1000, false, false, 0, 0}, // the same second again
		{2, 2, 0, 1200, true, false, 100, 2},
		{3.4, 3, 0, 1600, true, false, 200, 3}, // the time between two samples is that of the process
		{10, 10, 0, 2000, true, false, 100, 10},
		{13, 13, 0, 3000, true, false, 1400.0 / 10, 10},              // the first samples are too old
		{14, 3614, 0, 3100, true, false, (3100 - 1600) / 10.6, 10.6}, // its clock was set
		{15, 3615, 1, 50, true, true, 0, 0},                          // it was started again
		{16, 3616, 1, 150, true, false, 100, 1},
		{17, 3617, 1, 100, true, true, 0, 0}, // and again, by its counts alone
		{19, 3619, 1, 100, true, false, 0, 2},
	} {
		s := &query.State{Time: second(row.there), Started: second(float64(row.started)), Counts: &query.Counts{Offered: uint64(row.offered)}}
		fresh, again := h.take(second(row.here), s)
		then, now, seconds := h.span()
		rate := 0.0
		if seconds > 0 {
			rate = ratesOf(&then.counts, &now.counts, seconds).Offered
		}
		if fresh != row.fresh || again != row.again || math.Abs(rate-row.rate) > 0.01 || math.Abs(seconds-row.seconds) > 0.01 {
			t.Errorf("row %d: fresh %v, again %v, %v/s over %v s; want %+v", i, fresh, again, rate, seconds, row)
		}
	}
}

// TestMemory: a history has a bounded number of samples, and still spans its window.
func TestMemory(t *testing.T) {
	h := history{window: 10 * time.Second}
	for i := range 10_000 {
		h.take(second(float64(i)/100), &query.State{Time: second(float64(i) / 100), Counts: &query.Counts{Offered: uint64(i)}})
		if _, _, seconds := h.span(); len(h.samples) > samplesPerWindow+2 || seconds > 11.1 || i > 2000 && seconds < 9.5 {
			t.Fatalf("%d samples over %v s after %d", len(h.samples), seconds, i)
		}
	}
}

// TestNames replays lists of names on one history: a rate is never more than the truth.
func TestNames(t *testing.T) {
	h := history{window: time.Minute}
	for i, row := range []struct {
		others uint64
		counts map[string]uint64
		want   map[string]uint64 // growth since the first list
	}{
		{0, map[string]uint64{"a": 100, "b": 50}, map[string]uint64{"a": 0, "b": 0}},
		{0, map[string]uint64{"a": 130, "b": 50, "c": 20}, map[string]uint64{"a": 30, "b": 0, "c": 20}}, // all are listed: c is new
		{40, map[string]uint64{"a": 140, "c": 45}, map[string]uint64{"a": 40, "c": 45}},                 // b has left the list
		{40, map[string]uint64{"a": 140, "d": 60}, map[string]uint64{"a": 40, "d": 15}},                 // d had 45 at most
		{40, map[string]uint64{"a": 20, "d": 70}, map[string]uint64{"a": 40, "d": 25}},                  // a new list has begun
		{40, map[string]uint64{"a": 25, "c": 71}, map[string]uint64{"a": 45, "c": 51}},                  // c had 20 at most
	} {
		var list query.List
		for _, name := range []string{"a", "b", "c", "d"} {
			if n, ok := row.counts[name]; ok {
				list.Rows = append(list.Rows, query.Row{Name: name, Count: n})
			}
		}
		if n := len(list.Rows); n == 2 && list.Rows[0].Count < list.Rows[1].Count {
			list.Rows[0], list.Rows[1] = list.Rows[1], list.Rows[0]
		}
		list.Others = row.others
		s := &query.State{Time: second(float64(i)), Counts: new(query.Counts)}
		s.Top.Customers = list
		h.take(second(float64(i)), s)
		got := h.samples[len(h.samples)-1].names[customers]
		for who, want := range row.want {
			if got[name{name: who}] != want {
				t.Errorf("row %d: %s has grown by %d, want %d", i, who, got[name{name: who}], want)
			}
		}
		if len(got) != len(row.want) {
			t.Errorf("row %d: %v", i, got)
		}
	}
}

// TestTrouble replays the answers of one process, and what its line says.
func TestTrouble(t *testing.T) {
	f := newFake(t, "p1", 100, 0)
	f.verdict = calm
	m := &member{history: history{window: 10 * time.Second}, asked: noon, fresh: noon}
	rejected := &query.Problem{Kind: query.Unreachable, Text: "connection refused", Do: "Start it."}
	for _, row := range []struct {
		at            int
		state         int // the second that its state is of; -1: it has a problem; -2: no answer
		problem, note string
		offered       float64
	}{
		{0, -2, "no answer for 0s", "", 0},
		{1, -1, "connection refused", "", 0},
		{2, 2, "", "", 0},
		{3, 3, "", "", 100},
		{4, -1, "", "connection refused", 100}, // it keeps its figures for a while
		{8, -1, "", "connection refused", 100},
		{9, -1, "connection refused", "", 0},
		{10, 10, "", "", 100},
		{16, 10, "its figures have not changed for 6s", "", 0},
		{17, 17, "", "", 100},
		{30, -2, "", "", 100}, // it was not asked
	} {
		switch {
		case row.state == -1:
			m.hear(second(float64(row.at)), nil, rejected)
		case row.state >= 0:
			m.hear(second(float64(row.at)), decoded(t, f.at(row.state)), nil)
		}
		p := m.process(second(float64(row.at)))
		problem := ""
		if p.Problem != nil {
			problem = p.Problem.Text
			if p.Problem.Do == "" {
				t.Errorf("at %d s: nothing to do", row.at)
			}
		}
		if problem != row.problem || p.Note != row.note || math.Abs(p.Offered-row.offered) > 0.01 {
			t.Errorf("at %d s: problem %q, note %q, %v/s; want %+v", row.at, problem, p.Note, p.Offered, row)
		}
	}
	f.started = second(18)
	m.hear(second(23), decoded(t, f.at(23)), nil)
	if p := m.process(second(23)); p.Note != "started again 5s ago" || p.Seconds != 0 || !strings.Contains(p.says(), "started again") {
		t.Errorf("after a restart: %+v", p)
	}
}
