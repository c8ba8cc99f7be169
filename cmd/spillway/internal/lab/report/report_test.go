package report

import (
	"bytes"
	"encoding/json"
	"fmt"
	"html"
	"math"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/seed90641741/spillway/cmd/spillway/internal/lab/drill"
	"github.com/seed90641741/spillway/internal/admin/page"
)

func render(t *testing.T, r *drill.Result) string {
	t.Helper()
	var b bytes.Buffer
	if err := Write(&b, r); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

func TestSelfContained(t *testing.T) {
	out := render(t, fixture())
	for _, bad := range []string{`(?i)(src|href|action|poster|srcset)\s*=\s*["']?\s*(https?:)?//`, `(?i)url\(\s*["']?(https?:)?//`, `@import`, ` on[a-z]+="`, ` style="`} {
		// Only the parts of scripts and styles that could load something are checked.
		text := out
		if strings.HasPrefix(bad, " ") {
			text = regexp.MustCompile(`(?s)<(script|style).*?</(script|style)>`).ReplaceAllString(out, "")
		}
		if found := regexp.MustCompile(bad).FindString(text); found != "" {
			t.Errorf("the page has %q", found)
		}
	}
	if len(out) > 300_000 {
		t.Errorf("the page has %d bytes, want at most 300,000", len(out))
	}
	if !strings.Contains(out, "Copyright (c) 2022 Leon Sorokin") {
		t.Error("the page has a copy of uPlot without its licence")
	}
}

// TestPolicy: the content security policy allows exactly the styles and scripts of the page.
func TestPolicy(t *testing.T) {
	out := render(t, fixture())
	m := regexp.MustCompile(`Content-Security-Policy" content="([^"]*)"`).FindStringSubmatch(out)
	if m == nil {
		t.Fatal("the page has no policy")
	}
	csp := html.UnescapeString(m[1])
	inline := regexp.MustCompile(`(?s)<(?:script|style)>(.*?)</(?:script|style)>`).FindAllStringSubmatch(out, -1)
	for _, in := range inline {
		if !strings.Contains(csp, page.Hash(in[1])) {
			t.Errorf("the policy does not allow %.40q", in[1])
		}
	}
	if got := strings.Count(csp, "sha256-"); got != 4 || len(inline) != 4 {
		t.Errorf("the policy allows %d of %d, want 4 of 4", got, len(inline))
	}
	if !strings.HasPrefix(csp, "default-src 'none';") || strings.Contains(csp, "unsafe") {
		t.Errorf("the policy is %q", csp)
	}
}

func TestDataRoundTrip(t *testing.T) {
	for name, r := range map[string]*drill.Result{"fixture": fixture(), "hostile": hostile(), "page": withPage(t, fixture()), "incomplete": {Interrupted: true}} {
		var got drill.Result
		if err := json.Unmarshal([]byte(pageData(t, render(t, r))), &got); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if !reflect.DeepEqual(&got, r) {
			t.Errorf("%s: the result in the page is\n%+v, want\n%+v", name, &got, r)
		}
	}
}

func pageData(t *testing.T, out string) string {
	t.Helper()
	_, data, ok := strings.Cut(out, `<script type="application/json" id="data">`)
	if !ok {
		t.Fatal("the page has no data")
	}
	data, _, _ = strings.Cut(data, "</script>")
	return data
}

// summaryKeys says which numbers of the JSON each row of the summary shows.
var summaryKeys = map[string][]string{
	"Goodput":           {"goodput_rps", "goodput", "offered"},
	"Share of capacity": {"goodput_ratio"},
	"Latency p50":       {"p50_ms", "samples"},
	"Latency p99":       {"p99_ms", "samples"},
	"Attempts per call": {"attempts_per_call", "attempts"},
	"Recovery":          {"recover_s"},
	"Rejected locally":  {"rejected_local", "rejected_throttle", "rejected_inflight"},
	"Rejected remotely": {"rejected_by_backend"},
	"Late":              {"late"},
	"Timed out":         {"timed_out"},
	"Failed":            {"failed"},
	"Dropped sends":     {"dropped_sends"},
}

var (
	rowPattern  = regexp.MustCompile(`<tr><th scope="row">(?:<i [^>]*></i>)?([^<]*?) <small>[^<]*</small></th><td>(.*?)</td><td>(.*?)</td><td class="change">(.*?)</td></tr>`)
	dataPattern = regexp.MustCompile(`<data value="([^"]*)">([^<]*)</data>`)
)

// TestSummary: the table shows the numbers of the JSON. The value of each data element is
// equal, and its text is that value, rounded.
func TestSummary(t *testing.T) {
	r := fixture()
	var all map[string]map[string]any
	raw, _ := json.Marshal(map[string]any{"without": r.Without, "with": r.With})
	if err := json.Unmarshal(raw, &all); err != nil {
		t.Fatal(err)
	}
	rows := rowPattern.FindAllStringSubmatch(render(t, r), -1)
	if len(rows) != len(summaryKeys) {
		t.Fatalf("the summary has %d rows, want %d", len(rows), len(summaryKeys))
	}
	for _, row := range rows {
		for i, run := range []string{"without", "with"} {
			cells := dataPattern.FindAllStringSubmatch(row[2+i], -1)
			keys := summaryKeys[row[1]]
			if len(cells) != len(keys) || len(keys) == 0 {
				t.Errorf("row %q has %d numbers, want %q", row[1], len(cells), keys)
				continue
			}
			for k, key := range keys {
				checkNumber(t, run+" "+key, cells[k][1], html.UnescapeString(cells[k][2]), all[run][key])
			}
		}
	}
}

func checkNumber(t *testing.T, what, value, text string, want any) {
	t.Helper()
	if want == nil {
		if value != "null" || regexp.MustCompile(`^[\d.,]`).MatchString(text) {
			t.Errorf("%s is %s, shown as %q, want null", what, value, text)
		}
		return
	}
	if got, err := strconv.ParseFloat(value, 64); err != nil || got != want {
		t.Errorf("%s is %s, want %v", what, value, want)
	}
	digits := regexp.MustCompile(`^[\d.,]+`).FindString(text)
	shown, err := strconv.ParseFloat(strings.ReplaceAll(digits, ",", ""), 64)
	if err != nil {
		t.Errorf("%s is shown as %q", what, text)
		return
	}
	if strings.HasSuffix(text, "%") {
		shown /= 100
	}
	if math.Abs(shown-want.(float64)) > 0.02*want.(float64) {
		t.Errorf("%s is shown as %q, want %v", what, text, want)
	}
}

var classPattern = regexp.MustCompile(`<tr><th scope="row">(CRITICAL|CRITICAL_PLUS|SHEDDABLE|SHEDDABLE_PLUS)</th><td>(.*?)</td><td>(.*?)</td></tr>`)

// TestClasses: the table has a row for each class, with the values of the JSON.
func TestClasses(t *testing.T) {
	r := fixture()
	rows := classPattern.FindAllStringSubmatch(render(t, r), -1)
	if len(rows) != len(r.With.Classes) {
		t.Fatalf("there are %d rows, want %d", len(rows), len(r.With.Classes))
	}
	for i, row := range rows {
		for k, run := range []*drill.Run{r.Without, r.With} {
			c := run.Classes[i]
			cells := dataPattern.FindAllStringSubmatch(row[2+k], -1)
			if row[1] != c.Name || len(cells) != 3 {
				t.Fatalf("row %q has %d numbers, want 3 of %s", row[1], len(cells), c.Name)
			}
			for n, want := range []int{c.Goodput, c.Offered, c.Rejected()} {
				checkNumber(t, c.Name, cells[n][1], html.UnescapeString(cells[n][2]), float64(want))
			}
		}
	}
	for _, classless := range []*drill.Result{{}, {Without: &drill.Run{}}} {
		if strings.Contains(render(t, classless), "By class") {
			t.Error("the page has a table of classes that were not counted")
		}
	}
}

func TestWords(t *testing.T) {
	r := fixture()
	text := html.UnescapeString(regexp.MustCompile(`<[^>]*>`).ReplaceAllString(render(t, r), ""))
	want := []string{r.Headline[0], r.Headline[1], "FAIL 1 of 3 checks do not hold", "not within 6\u00a0s", "seed 1", "capacity 612/s measured",
		"deadline 100\u00a0ms", "linux/amd64, 2 CPUs", "overload 10× capacity for 8\u00a0s", r.Settings.Caller, r.Settings.Protected, "1.30 ms at the 99th"}
	for _, c := range r.Checks {
		want = append(want, c.Text)
	}
	for _, w := range want {
		if !strings.Contains(text, w) {
			t.Errorf("the page does not say %q", w)
		}
	}
}

func TestWordsOfARetryStorm(t *testing.T) {
	r := fixture()
	r.Settings.Scenario, r.Settings.Overload = drill.ScenarioStorm, 0.8
	for _, want := range []string{"During the outage", "Useful answers after the outage", fmt.Sprintf("%.0f/s</span>", float64(r.With.Phases[2].Goodput)/6), "Time to recover after the outage", "outage 0.8× capacity for 8\u00a0s"} {
		if !strings.Contains(html.UnescapeString(render(t, r)), want) {
			t.Errorf("the page does not say %q", want)
		}
	}
}

func hostile() *drill.Result {
	const evil = `"></script><script>alert(1)</script><!-- ' & {{.}} ` + "\u2028 `"
	r := fixture()
	r.Headline[0], r.Machine.OS, r.Settings.Caller, r.Settings.MaxInFlightRule = evil, evil, evil, evil
	r.Checks[0].Text, r.Checks[0].Name, r.Settings.Phases[0].Name = evil, evil, evil
	return r
}

func TestHostileStrings(t *testing.T) {
	plain, out := render(t, fixture()), render(t, hostile())
	for _, tag := range []string{"<script", "</script", "<!--"} {
		if a, b := strings.Count(plain, tag), strings.Count(out, tag); a != b {
			t.Errorf("%s is in the page %d times, want %d", tag, b, a)
		}
	}
	if strings.Contains(out, "alert(1)</script>") {
		t.Error("a string of the result ends a script")
	}
}

func TestIncomplete(t *testing.T) {
	begun := fixture()
	begun.Interrupted, begun.With, begun.Checks, begun.Without.Seconds = true, nil, nil, 5
	busy := fixture()
	busy.Inconclusive = "something lacked a CPU"
	for _, test := range []struct {
		name string
		r    *drill.Result
		want []string
	}{
		{"nothing", &drill.Result{}, []string{"NO VERDICT", "There is nothing to compare.", "capacity not measured"}},
		{"capacity only", &drill.Result{Interrupted: true, CapacityRPS: 500}, []string{"INTERRUPTED", "capacity 500/s"}},
		{"one run", begun, []string{"INTERRUPTED", "not seen", "Unfinished", `<data value="null">–</data>`}},
		{"a busy machine", busy, []string{"INCONCLUSIVE", "this machine was too busy to measure: something lacked a CPU"}},
		{"empty runs", &drill.Result{Without: &drill.Run{}, With: &drill.Run{}}, []string{"no answer in time", "too few"}},
	} {
		out := render(t, test.r)
		for _, w := range test.want {
			if !strings.Contains(out, w) {
				t.Errorf("%s: the page does not say %q", test.name, w)
			}
		}
		if test.r.CapacityRPS == 0 && strings.Contains(out, "capacity 0/s") {
			t.Errorf("%s: the page has a capacity", test.name)
		}
		if strings.Contains(out, "NaN") && !strings.Contains(page.UPlot+reportJS, "NaN") || strings.Contains(out, "Inf%") {
			t.Errorf("%s: the page has a number that is none", test.name)
		}
	}
}

func TestNotWritten(t *testing.T) {
	nan := fixture()
	nan.With.GoodputRPS = math.NaN()
	for name, r := range map[string]*drill.Result{"nil": nil, "NaN": nan} {
		var b bytes.Buffer
		if err := Write(&b, r); err == nil || b.Len() > 0 {
			t.Errorf("%s: wrote %d bytes and returned %v, want none and an error", name, b.Len(), err)
		}
	}
}

// TestFixture checks that the counts of the fixture add up: other tests rely on its charts.
func TestFixture(t *testing.T) {
	for _, run := range []*drill.Run{fixture().Without, fixture().With} {
		for _, p := range run.Phases {
			if ends := p.Goodput + p.Late + p.RejectedLocal + p.RejectedByBackend + p.TimedOut + p.Failed + p.DroppedSends; ends != p.Offered || p.TimedOut < 0 {
				t.Errorf("%s: %d of %d calls have an end, %d timed out", p.Name, ends, p.Offered, p.TimedOut)
			}
		}
		if !slices.IsSorted(run.Series.T) {
			t.Error("time does not go on")
		}
	}
}

func TestNumbers(t *testing.T) {
	for _, test := range []struct{ got, want string }{
		{number(0), "0"}, {number(0.04), "0.04"}, {number(8.4), "8.4"}, {number(9.96), "10"}, {number(1234567), "1,234,567"},
		{number(-1234), "−1,234"}, {count(999.6), "1,000"}, {perSecond(612.4), "612/s"}, {percent(0.933), "93.3\u00a0%"},
		{millis(61.25), "61.2\u00a0ms"}, {millis(999.6), "1.00\u00a0s"}, {seconds(1.25), "1.25\u00a0s"}, {asSet(1.5, "×"), "1.5×"},
		{ratio(2, 2), "same"}, {ratio(0, 2), "from 0"}, {ratio(2, 0), "to 0"}, {ratio(1, 1.04), "about the same"},
		{ratio(8.4, 607.9), "×\u00a072"}, {ratio(4, 1.5), "÷\u00a02.7"}, {ratio(1, 5000), "×\u00a05,000"},
		{difference(count)(5, 5), "same"}, {difference(count)(5, 7005), "+7,000"}, {difference(count)(7005, 5), "−7,000"},
		{difference(points)(0.013, 0.933), "+92.0 points"}, {plain(1e7), "10000000"}, {plain(0.1), "0.1"},
	} {
		if test.got != test.want {
			t.Errorf("got %q, want %q", test.got, test.want)
		}
	}
}
