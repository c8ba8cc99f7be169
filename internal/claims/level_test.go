package claims

import (
	"slices"
	"strings"
	"testing"

	"github.com/seed90641741/spillway"
)

func TestReadLevel(t *testing.T) {
	for _, row := range []struct {
		level, progress, baggage []string
		want                     spillway.Level
		steps                    spillway.Progress
	}{
		{nil, nil, nil, 0, 0},
		{[]string{"1"}, nil, nil, 1, 0},
		{[]string{" 128 "}, []string{"255"}, nil, 128, 255},
		{[]string{"007"}, []string{"0"}, nil, 7, 0},
		{[]string{"9", "5", "x", "7"}, []string{"3", "2"}, nil, 5, 2},
		{[]string{"9"}, []string{"3", "x"}, nil, 9, 0},
		{[]string{"9"}, []string{"256"}, nil, 9, 0},
		{[]string{"0"}, []string{"3"}, nil, 0, 0},
		{[]string{"129"}, []string{"3"}, nil, 0, 0},
		{[]string{"-1"}, nil, nil, 0, 0},
		{[]string{"+1"}, nil, nil, 0, 0},
		{[]string{"1e1"}, nil, nil, 0, 0},
		{[]string{""}, nil, nil, 0, 0},
		{[]string{strings.Repeat("0", 1000) + "1"}, nil, nil, 0, 0},
		{nil, []string{"3"}, nil, 0, 0}, // without a level it says nothing
		{nil, nil, []string{"a=1, level = 9 ;p=1,progress=4"}, 9, 4},
		{nil, nil, []string{"level=9,level=3", "progress=4,progress=2,progress=x"}, 3, 2},
		{nil, nil, []string{"level=debug,progress=100%"}, 0, 0},
		{nil, nil, []string{"progress=4"}, 0, 0},
		{[]string{"5"}, nil, []string{"level=9,progress=4"}, 5, 0},
	} {
		s := (&Fields{Level: row.level, Progress: row.progress, Baggage: row.baggage}).Read()
		if s.Level != row.want || s.Progress != row.steps || s.Labelled {
			t.Errorf("%q %q %q: %+v, want level %d, progress %d", row.level, row.progress, row.baggage, s, row.want, row.steps)
		}
	}
}

// The baggage says the class even where another field says the level, and the other way round.
func TestReadBoth(t *testing.T) {
	f := Fields{Level: []string{"5"}, Baggage: []string{"criticality=SHEDDABLE,level=9"}}
	if s := f.Read(); s != (Said{spillway.Sheddable, true, 5, 0}) {
		t.Errorf("%+v", s)
	}
	f = Fields{Criticality: []string{"CRITICAL_PLUS"}, Baggage: f.Baggage}
	if s := f.Read(); s != (Said{spillway.CriticalPlus, true, 9, 0}) {
		t.Errorf("%+v", s)
	}
}

func TestTraceLevel(t *testing.T) {
	for text, want := range map[string]spillway.Level{
		"00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01":   0x1c + 1,
		"00-0af7651916cd43dd8448eb211c8031ff-b7ad6b7169203331-01":   128,
		"cc-0af7651916cd43dd8448eb211c803180-b7ad6b7169203331-01-x": 1,
		"00-0af7651916cd43dd0000000000000000-b7ad6b7169203331-01":   0,
		"00-0af7651916cd43dd8448eb211c80319g-b7ad6b7169203331-01":   0,
		"00-0af7651916cd43dd8448eb211c80319c_b7ad6b7169203331-01":   0,
		"00-0af7651916cd43dd8448eb211c80319c":                       0,
		"":                                                          0,
	} {
		if got := TraceLevel([]string{text}); got != want {
			t.Errorf("%q: level %d, want %d", text, got, want)
		}
	}
	one := "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
	if TraceLevel(nil) != 0 || TraceLevel([]string{one, one}) != 0 {
		t.Error("no trace, or two, have a level")
	}
}

func TestBaggageWithLevel(t *testing.T) {
	const ours = "criticality=SHEDDABLE,level=7"
	for _, row := range []struct{ values, want []string }{
		{nil, []string{ours}},
		{[]string{"a=1,level=9"}, []string{ours + ",a=1"}},
		{[]string{"level=debug,progress=3,a=1"}, []string{ours + ",level=debug,a=1"}},
		{[]string{"level=7,a=1,criticality=SHEDDABLE"}, []string{"level=7,a=1,criticality=SHEDDABLE"}},
		{[]string{"level=7,a=1,criticality=SHEDDABLE,progress=1"}, []string{ours + ",a=1"}},
		{[]string{members(62, 5)}, []string{ours + "," + members(62, 5)}},
		{[]string{members(63, 5)}, []string{members(63, 5)}},
	} {
		got, changed := ReplaceBaggage(row.values, spillway.Sheddable, true, 7)
		if !slices.Equal(got, row.want) || changed == slices.Equal(got, row.values) {
			t.Errorf("%.80q: %.80q, changed %v, want %.80q", row.values, got, changed, row.want)
		}
	}
	keeps := []string{"level=7,criticality=CRITICAL"}
	if got := SetBaggage(keeps, spillway.Sheddable); !slices.Equal(got, []string{ours}) {
		t.Errorf("with another class it is %q", got)
	}
}

// What was not believed is in none of the fields, and what was believed is in the same fields as before.
func TestRestateLevel(t *testing.T) {
	said := Fields{Level: []string{"9"}, Progress: []string{"3"}, Baggage: []string{"level=9,progress=3,a=1"}}
	edge, inside := said, said
	if !edge.Restate(spillway.Critical, false, 0) || edge.Level != nil || edge.Progress != nil || !slices.Equal(edge.Baggage, []string{"a=1"}) {
		t.Errorf("%+v", edge)
	}
	if inside.Restate(spillway.Critical, false, 9) || inside.Level == nil || inside.Progress == nil || !slices.Equal(inside.Baggage, said.Baggage) {
		t.Errorf("%+v", inside)
	}
	if alone := (Fields{Progress: []string{"3"}}); !alone.Restate(spillway.Critical, false, 0) || alone.Progress != nil {
		t.Errorf("%+v", alone)
	}
}
