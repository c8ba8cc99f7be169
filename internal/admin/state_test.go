package admin

import (
	"encoding/json"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/seed90641741/spillway"
)

// TestFigures checks all figures after ten seconds of known events.
func TestFigures(t *testing.T) {
	s := newScene(spillway.ModeEnforce)
	g := &s.proxy.levels.Gates[0]
	for i := range 10 {
		s.now = s.now.Add(time.Second)
		call := spillway.Call{Criticality: spillway.CriticalPlus, Deadline: s.now.Add(250 * time.Millisecond)}
		retried := call // 14 served, 2 late, 1 failed, 1 rejected upstream, 1 rejected at an attempt, 1 gone
		retried.Attempt = 2
		for j, e := range []spillway.Event{
			{Outcome: spillway.OutcomeTimedOut}, {Outcome: spillway.OutcomeTimedOut}, {Outcome: spillway.OutcomeFailed}, {Outcome: spillway.OutcomeOverloaded, Call: retried},
			{Outcome: spillway.OutcomeAbandoned, Err: errHigherClass}, {Outcome: spillway.OutcomeAbandoned},
		} {
			e.Policy, e.Time, e.Latency = "retry", s.now, 250*time.Millisecond
			if j != 3 {
				e.Call = call
			}
			s.say(e)
		}
		for range 14 {
			s.say(spillway.Event{Time: s.now, Call: call, Policy: "retry", Outcome: spillway.OutcomeServed, Latency: 10 * time.Millisecond})
		}
		for range 5 {
			e := rejected("shed", spillway.ModeEnforce, errQueueFull)
			e.Call.Criticality = spillway.Sheddable
			s.say(e)
		}
		for range 3 {
			s.say(spillway.Event{Policy: "quota", Rejected: true, Mode: spillway.ModeObserve})
			s.say(spillway.Event{Policy: "throttle", Rejected: true, Mode: spillway.ModeObserve})
		}
		g.InFlight, g.Peak = 7, 8+i
		s.sampler.tick(s.now)
	}
	for name, f := range map[string]Figures{"last": s.sampler.state.Load().Last, "mean": s.sampler.state.Load().Mean} {
		for _, row := range []struct {
			what      string
			got, want float64
		}{
			{"offered", f.Offered, 25},
			{"goodput", f.Goodput, 14},
			{"late", f.Late, 2},
			{"failed", f.Failed, 1},
			{"declined", f.RejectedUpstream, 1},
			{"gone", f.GoneSent, 1},
			{"rejected of the lowest", f.Rejected[0], 5},
			{"rejected of the highest", f.Rejected[3], 1},
			{"would be rejected", f.Would[2], 3},
			{"ended", f.Ended.sum(), 25},
			{"answers", float64(f.Answers), 160},
			{"retry ratio", *f.RetryRatio, 2.0 / 18},
			{"deadline", *f.Deadline, 250},
			{"p50", math.Round(*f.P50), 10},
			{"p99", math.Round(*f.P99 / 10), 25},
			{"in flight", float64(f.InFlight), 7},
			{"peak", float64(f.Peak), 17},
			{"limit", *f.Limit, 24},
			{"budget", *f.Budget, 1},
		} {
			if math.Abs(row.got-row.want) > 1e-9 {
				t.Errorf("%s: %s is %v, want %v", name, row.what, row.got, row.want)
			}
		}
	}
	if got := s.sampler.state.Load().Gates[0].Peak; got != 17 {
		t.Errorf("the peak of the gate is %d, want 17", got)
	}
}

func TestUnknownFigures(t *testing.T) {
	s := newScene(spillway.ModeEnforce)
	s.proxy.levels.Gates[0].Limit, s.proxy.levels.Clusters[0].Budget = 0, nil
	s.offered = [...]int{0, 0, 4, 0}
	s.seconds(2)
	f := s.sampler.state.Load().Mean
	if f.P99 != nil || f.P50 == nil || f.Limit != nil || f.Budget != nil || f.RetryRatio != nil {
		t.Errorf("known of %d answers: %+v", f.Answers, f)
	}
}

// An endpoint that left and came again counts from zero.
func TestCountersThatBeginAgain(t *testing.T) {
	s := newScene(spillway.ModeEnforce)
	s.seconds(20)
	s.proxy.levels.Clusters[0].Endpoints[0].Attempts = 3
	s.sampler.tick(s.now.Add(time.Second))
	st := s.sampler.state.Load()
	if rate := st.Clusters[0].Endpoints[0].Rate; rate < 0 || rate > 1 {
		t.Errorf("%v attempts per second", rate)
	}
}

// TestAllAgree holds that the tiles, the sentence, the stream and the JSON say the
// same.
func TestAllAgree(t *testing.T) {
	for _, mode := range []spillway.Mode{spillway.ModeEnforce, spillway.ModeObserve} {
		s := newScene(mode)
		s.seconds(5)
		s.overload()
		s.seconds(15)
		st := s.sampler.state.Load()
		f := st.Mean
		rejected := f.Rejected.sum()
		if mode == spillway.ModeObserve {
			rejected = f.Would.sum()
		}
		for id, want := range map[string]float64{
			"offered": f.Offered, "goodput": f.Goodput, "rejected": rejected, "lost": f.Late + f.Failed + f.RejectedUpstream,
			"p99": *f.P99, "in-flight": float64(f.InFlight), "retry-ratio": *f.RetryRatio, "throttle": f.Throttle[0],
		} {
			tile := tileOf(t, st, id)
			if *tile.Value != want {
				t.Errorf("%v: the tile %s is %v, want %v", mode, id, *tile.Value, want)
			}
			if id == "offered" || id == "goodput" || id == "rejected" || id == "p99" {
				if !strings.Contains(st.Verdict.Text, tile.Text) {
					t.Errorf("%v: the sentence %q does not say %s", mode, st.Verdict.Text, tile.Text)
				}
			}
		}
		var fromJSON, fromStream any
		decode(t, get(t, s.Handler(), "/api/v1/state").Body.Bytes(), &fromJSON)
		history := struct {
			Rows  []Figures `json:"rows"`
			State any       `json:"state"`
		}{}
		first, ticks, err := s.sampler.follow("192.0.2.1")
		if err != nil {
			t.Fatal(err)
		}
		_, data, _ := strings.Cut(string(first), "data: ")
		decode(t, []byte(data), &history)
		if fromStream = history.State; !equalJSON(fromJSON, fromStream) || !equalJSON(history.Rows[len(history.Rows)-1], st.Last) || len(history.Rows) != 20 {
			t.Errorf("%v: the stream and the JSON differ", mode)
		}
		s.second()
		_, data, _ = strings.Cut(string(<-ticks), "data: ")
		decode(t, []byte(data), &fromStream)
		decode(t, get(t, s.Handler(), "/api/v1/state").Body.Bytes(), &fromJSON)
		if !equalJSON(fromJSON, fromStream) {
			t.Errorf("%v: the stream and the JSON differ after a tick", mode)
		}
		s.sampler.leave(ticks)
	}
}

func tileOf(t *testing.T, st *State, id string) Tile {
	t.Helper()
	for _, tile := range st.Tiles {
		if tile.ID == id || id == "rejected" && tile.ID == "would-reject" {
			return tile
		}
	}
	t.Fatalf("there is no tile %s", id)
	return Tile{}
}

func decode(t *testing.T, text []byte, into any) {
	t.Helper()
	if err := json.Unmarshal(text, into); err != nil {
		t.Fatal(err)
	}
}

func equalJSON(a, b any) bool {
	x, _ := json.Marshal(a)
	y, _ := json.Marshal(b)
	return len(x) > 100 && string(x) == string(y)
}
