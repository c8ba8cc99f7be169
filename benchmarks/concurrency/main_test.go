package main

import (
	"encoding/json"
	"encoding/xml"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// output runs the command.
func output(t *testing.T, args ...string) string {
	t.Helper()
	var b strings.Builder
	if err := run(&b, args); err != nil {
		t.Fatalf("%q: %v", args, err)
	}
	return b.String()
}

func TestBadFlags(t *testing.T) {
	for _, row := range []struct{ args, want string }{
		{"-scenario Z", `no scenario starts with "Z"`},
		{"-trace Z", `no scenario starts with "Z"`},
		{"-algorithm ours,other", `no algorithm is called "other"`},
		{"-seeds 0", "seeds is 0, must be 1 or more"},
	} {
		err := run(nil, strings.Fields(row.args))
		if err == nil || err.Error() != row.want {
			t.Errorf("%s: error %v, want %s", row.args, err, row.want)
		}
	}
}

// The file has what the table shows.
func TestJSON(t *testing.T) {
	path := filepath.Join(t.TempDir(), "rows.json")
	table := output(t, "-scenario", "S19", "-algorithm", "none,vegas", "-seeds", "1", "-json", path)
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var rows []jsonRow
	if err := json.Unmarshal(b, &rows); err != nil {
		t.Fatal(err)
	}
	if len(rows) != 1 || rows[0].Scenario != "S19 pool 2 x 50ms, 3x" || len(rows[0].Algorithms) != 2 {
		t.Fatalf("%+v", rows)
	}
	r := &row{Scenario: prefixed(scenarios, "S19")[0], oracle: rows[0].Oracle}
	for _, a := range rows[0].Algorithms {
		r.scores = append(r.scores, score{Percent: a.Percent, False: a.FalseRejections, P99: a.P99, Worst: a.Worst})
	}
	var again strings.Builder
	printTable(&again, []*row{r}, []variant{{name: "none"}, {name: "vegas"}}, seeds{n: 1})
	if table != again.String() {
		t.Errorf("the table was\n%sand is from the file\n%s", table, again.String())
	}
}

// An oracle from the cache is the same as one without it.
func TestCache(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	args := []string{"-scenario", "S19", "-algorithm", "none", "-seeds", "1"}
	want := output(t, args...)
	for range 2 {
		if got := output(t, append(args, "-cache")...); got != want {
			t.Errorf("with a cache\n%swithout\n%s", got, want)
		}
	}
	known := openCache(cacheFile()).known
	if len(known) != 1 {
		t.Fatalf("%d oracles in the cache", len(known))
	}
	for name, o := range known {
		o.Good *= 2
		known[name] = o
	}
	c := openCache(cacheFile())
	c.known = known
	c.put(nil, seeds{})
	if got := output(t, append(args, "-cache")...); got == want {
		t.Error("the cache is not used")
	}
	changed := *prefixed(scenarios, "S19")[0]
	changed.End += sec
	r := oracles([]*Scenario{&changed}, seeds{n: 1}, nil)[0]
	if openCache(cacheFile()).get(r, seeds{n: 1}) {
		t.Error("a changed scenario has the oracle of the old one")
	}
}

// A trace has a line for each interval, and the picture is XML.
func TestTraceAndPicture(t *testing.T) {
	lines := strings.Split(strings.TrimSpace(output(t, "-trace", "S19", "-every", "5s", "-algorithm", "ours")), "\n")
	if len(lines) != 5 || !strings.Contains(lines[2], "  10.000 offered ") || !strings.Contains(lines[2], "in flight") {
		t.Errorf("%q", lines)
	}
	path := filepath.Join(t.TempDir(), "picture.svg")
	output(t, "-picture", path)
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var picture struct {
		Panels []struct {
			Lines []struct {
				Path string `xml:"d,attr"`
			} `xml:"path"`
		} `xml:"g"`
	}
	if err := xml.Unmarshal(b, &picture); err != nil || len(picture.Panels) != 4 {
		t.Fatalf("%d panels, error %v", len(picture.Panels), err)
	}
	for i, p := range picture.Panels {
		if last := p.Lines[len(p.Lines)-2].Path; i%2 == 0 && strings.Count(last, "L") < 20 {
			t.Errorf("panel %d has no line: %q", i, last)
		}
	}
}
