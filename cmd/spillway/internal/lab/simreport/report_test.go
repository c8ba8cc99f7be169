package simreport

import (
	"bytes"
	"encoding/xml"
	"errors"
	"html"
	"io"
	"math"
	"strings"
	"testing"

	"github.com/seed90641741/spillway/cmd/spillway/internal/lab/scenario"
	"github.com/seed90641741/spillway/internal/admin/page"
)

func outcomes(t *testing.T, names ...string) (all []*scenario.Outcome) {
	t.Helper()
	for _, name := range names {
		s, err := scenario.Open(name)
		if err != nil {
			t.Fatal(err)
		}
		runs, err := s.Runs(scenario.Options{Quick: true})
		if err != nil {
			t.Fatal(err)
		}
		results, err := scenario.Execute(t.Context(), runs, nil)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, s.Conclude(runs, results))
	}
	return all
}

func write(t *testing.T, all []*scenario.Outcome) string {
	t.Helper()
	var b bytes.Buffer
	if err := Write(&b, all); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// TestOneVerdictOfOneScenario: a page of one scenario has its verdict and its name once, at the top.
func TestOneVerdictOfOneScenario(t *testing.T) {
	for names, want := range map[string]int{"retry-growth": 1, "retry-growth deep-stack": 3} {
		out := write(t, outcomes(t, strings.Fields(names)...))
		if n := strings.Count(out, `<p class="verdict`); n != want {
			t.Errorf("%s: %d verdicts, want %d", names, n, want)
		}
		if n := strings.Count(out, "<h2>retry-growth</h2>"); n != want/2 {
			t.Errorf("%s: %d headings", names, n)
		}
	}
}

func TestPageTellsAll(t *testing.T) {
	all := outcomes(t, "deep-stack", "metastable-failure")
	page := write(t, all)
	for _, o := range all {
		if window := o.Window(); !strings.Contains(page, "Figures of the "+window) {
			t.Errorf("the page does not say that its figures are of the %s", window)
		}
		for i := range o.Judgements {
			if text := strings.NewReplacer("'", "&#39;").Replace(o.Judgements[i].Text()); !strings.Contains(page, text) {
				t.Errorf("the page does not say: %s", text)
			}
		}
		for i := range o.Cases {
			for _, m := range o.Measures() {
				if cell := "<td>" + o.Cases[i].Cell(m) + "</td>"; !strings.Contains(page, cell) {
					t.Errorf("the page has no %s of %s", cell, m)
				}
			}
		}
	}
	if n := strings.Count(page, "<figure>"); n != 3*(2+4)+2*(2+1) {
		t.Errorf("%d charts", n)
	}
	if page != write(t, all) {
		t.Error("the same outcomes gave another page")
	}
}

// TestShares: the first chart has the share of answered calls in each window, so that a case that fails in one of them is
// not taken for a good one by the figures of the last.
func TestShares(t *testing.T) {
	s := sharesOf(outcomes(t, "metastable-failure")[0])
	var texts []string
	for _, r := range s.Rows {
		text := r.Name + ":"
		for _, b := range r.Bars {
			text += " " + b.Text
		}
		texts = append(texts, text)
	}
	if len(s.Windows) != 3 || !strings.HasPrefix(s.Windows[1], "after, ") || len(texts) != 2 || !strings.Contains(texts[0], " 0 % ") || strings.Contains(texts[1], " 0 % ") {
		t.Errorf("%q, %q", s.Windows, texts)
	}
	for want, b := range map[string]bar{
		"0 %": barOf(0, 9), "100 %": barOf(9, 9), "no calls": barOf(0, 0), "<0.1 %": barOf(1, 1e6), ">99.9 %": barOf(1e6-1, 1e6), "50.0 %": barOf(1, 2),
	} {
		if b.Text != want {
			t.Errorf("%q, want %q", b.Text, want)
		}
	}
}

// What the charts leave out, the page says.
func TestPageSaysWhatItDoesNotDraw(t *testing.T) {
	s, err := scenario.Open("deep-stack")
	if err != nil {
		t.Fatal(err)
	}
	for want, o := range map[string]scenario.Options{
		"Charts of seed 7, the first of 2.":                                  {Quick: true, Seed: 7, Seeds: 2},
		"Charts of the first 8 of 9 rows.":                                   {Quick: true, Sweep: []scenario.Sweep{{Field: "user.rate", Values: []string{"1", "2", "3"}}}},
		"Charts of seed 1, the first of 2. Charts of the first 8 of 9 rows.": {Quick: true, Seeds: 2, Sweep: []scenario.Sweep{{Field: "user.rate", Values: []string{"1", "2", "3"}}}},
	} {
		runs, err := s.Runs(o)
		if err != nil {
			t.Fatal(err)
		}
		results, err := scenario.Execute(t.Context(), runs, nil)
		if err != nil {
			t.Fatal(err)
		}
		if page := write(t, []*scenario.Outcome{s.Conclude(runs, results)}); !strings.Contains(page, want) {
			t.Errorf("the page does not say: %s", want)
		}
	}
	if page := write(t, outcomes(t, "deep-stack")); strings.Contains(page, "Charts of") {
		t.Error("the page draws all, and says that it does not")
	}
}

func TestPageNeedsNothing(t *testing.T) {
	text := write(t, outcomes(t, "deep-stack"))
	for _, bad := range []string{"http:", "https:", "<script", "<link rel=\"stylesheet\"", "@import", "url(", "NaN", "Inf"} {
		if strings.Contains(text, bad) {
			t.Errorf("the page has %q", bad)
		}
	}
	if !strings.Contains(html.UnescapeString(text), page.Policy([]string{style}, nil)) || !strings.Contains(text, style) {
		t.Error("the policy of the page is not that of its style")
	}
}

func TestPictureIsWellFormed(t *testing.T) {
	page := write(t, outcomes(t, "metastable-failure"))
	for page != "" {
		_, rest, found := strings.Cut(page, "<svg")
		if !found {
			break
		}
		svg, after, _ := strings.Cut("<svg"+rest, "</svg>")
		page = after
		d := xml.NewDecoder(strings.NewReader(svg + "</svg>"))
		for {
			_, err := d.Token()
			if errors.Is(err, io.EOF) {
				break
			}
			if err != nil {
				t.Fatal(err)
			}
		}
	}
}

func TestNamesCannotBreakThePage(t *testing.T) {
	all := outcomes(t, "deep-stack")
	all[0].Name, all[0].Cases[0].Name = `<script>alert(1)</script>`, `"><u>`
	all[0].Cases[0].Results[0].Clients[0].Name = `</svg><i>`
	if page := write(t, all); strings.Contains(page, "<script>") || strings.Contains(page, `"><u>`) || strings.Contains(page, "</svg><i>") {
		t.Error("a name was written as it is")
	}
}

func TestNothingToWrite(t *testing.T) {
	var b bytes.Buffer
	if err := Write(&b, nil); err == nil || b.Len() > 0 {
		t.Errorf("%v, %d bytes", err, b.Len())
	}
}

func TestRoundNumbersEndTheScale(t *testing.T) {
	for v, want := range map[float64]float64{0: 1, 1: 1, 1.1: 2, 2.4: 2.5, 3: 5, 7: 10, 4999: 5000, 10000: 10000, 0.3: 0.5} {
		if got := round(v, 1, 2, 2.5, 5); math.Abs(got/want-1) > 1e-9 {
			t.Errorf("round(%v) = %v, want %v", v, got, want)
		}
	}
}
