package admin

import (
	"github.com/seed90641741/spillway"
	"github.com/seed90641741/spillway/internal/admin/human"
)

// A Tile is one figure of [State].Mean, formatted for people.
type Tile struct {
	ID    string   `json:"id"`
	Name  string   `json:"name"`
	Value *float64 `json:"value"` // as it stands in the mean; null where it is not known
	Text  string   `json:"text"`
	Note  string   `json:"note"`
	Level string   `json:"level"` // warn, bad, or empty
}

// unknown represents a figure that is not known.
const unknown = "–"

func tiles(s *State) []Tile {
	f := &s.Mean
	if s.Service != nil {
		return serviceTiles(s)
	}
	all := []Tile{
		rateTile("offered", "Offered", f.Offered, "without retries"),
		goodputTile(f),
		rejectedTile(s),
		rateTile("lost", "Late or failed", f.lost(), "of what was sent").
			ofLosses(f, human.PerSecond(f.Late)+" late, "+human.PerSecond(f.Failed+f.RejectedUpstream)+" failed"),
		rateTile("gone", "Client gone", f.gone(), "clients that gave up").
			ofLosses(f, human.PerSecond(f.GoneWaiting)+" waiting here, "+human.PerSecond(f.GoneSent)+" sent"),
		latencyTile(f), flightTile(s), retryTile(f), throttleTile(f),
	}
	if s.Program == library {
		return libraryTiles(s, all)
	}
	return all
}

func rateTile(id, name string, rate float64, note string) Tile {
	return Tile{ID: id, Name: name, Value: &rate, Text: human.PerSecond(rate), Note: note}
}

// ofLosses adds the note and the level of lost requests to a tile, if there are any.
func (t Tile) ofLosses(f *Figures, note string) Tile {
	if *t.Value > 0 {
		t.Note = note
	}
	if f.matters(*t.Value, lostShare) {
		t.Level = "bad"
	}
	return t
}

func goodputTile(f *Figures) Tile {
	t := rateTile("goodput", "Goodput", f.Goodput, "answered in time")
	if f.Offered > 0 {
		t.Note = human.Percent(min(1, f.Goodput/f.Offered)) + " of offered"
	}
	return t
}

// rejectedTile shows the rejected requests; if all gates observe, the requests that would be
// rejected.
func rejectedTile(s *State) Tile {
	f := &s.Mean
	rate, would := f.Rejected.sum(), f.Would.sum()
	t := rateTile("rejected", "Rejected", rate, "nothing")
	switch {
	case rate == 0 && would > 0:
		t = rateTile("would-reject", "Would be rejected", would, "nothing is: gates observe")
	case rate > 0 && f.Offered > 0:
		t.Note = human.Percent(min(1, rate/f.Offered)) + " of offered"
	case s.Mode == spillway.ModeObserve:
		t.Note = "mode observe rejects nothing"
	case s.Mode == spillway.ModeOff:
		t.Note = "mode off rejects nothing"
	}
	if f.matters(*t.Value, rejectedShare) {
		t.Level = "warn"
	}
	return t
}

func latencyTile(f *Figures) Tile {
	t := Tile{ID: "p99", Name: "p99 of the admitted", Value: f.P99, Text: unknown, Note: "no answers"}
	switch {
	case f.P99 != nil:
		t.Text, t.Note = human.Duration(*f.P99), "p50 "+human.Duration(*f.P50)
	case f.P50 != nil:
		t.Note = "p50 " + human.Duration(*f.P50) + ", of " + human.Counted(int(f.Answers), "answer")
	}
	if f.Deadline != nil {
		t.Note += ", deadline " + human.Duration(*f.Deadline)
	}
	if f.overdue() {
		t.Level = "warn"
	}
	return t
}

func flightTile(s *State) Tile {
	f := &s.Mean
	n := float64(f.InFlight)
	note := human.Grouped(float64(f.Waiting)) + " waiting; together " + human.Grouped(float64(f.Peak)) + " at most"
	t := Tile{ID: "in-flight", Name: "In flight", Value: &n, Text: human.Grouped(n), Note: note}
	if f.Limit != nil {
		t.Name, t.Text = "In flight / limit", human.Grouped(n)+" / "+human.Grouped(*f.Limit)
	} else if len(s.unanswered()) > 0 {
		t.Note = "limit unknown; " + note
	}
	return t
}

func retryTile(f *Figures) Tile {
	t := Tile{ID: "retry-ratio", Name: "Retry ratio", Value: f.RetryRatio, Text: unknown, Note: "nothing is retried"}
	if f.RetryRatio != nil {
		t.Text, t.Note = human.Percent(*f.RetryRatio), "of what was sent"
	}
	if f.Budget != nil {
		t.Note = "budget " + human.Percent(*f.Budget) + " full"
	}
	return t
}

func throttleTile(f *Figures) Tile {
	most, class := 0.0, spillway.Critical
	for i, p := range f.Throttle {
		if p > most {
			most, class = p, spillway.Criticality(i)+spillway.Sheddable
		}
	}
	t := Tile{ID: "throttle", Name: "Throttle", Value: &most, Text: human.Percent(most), Note: "nothing held back"}
	if most > 0 {
		t.Note, t.Level = "of "+class.String(), "warn"
	}
	return t
}
