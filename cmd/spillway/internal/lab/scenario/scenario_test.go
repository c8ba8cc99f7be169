package scenario

import (
	"bytes"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/seed90641741/spillway/cmd/spillway/internal/strict"
	"github.com/seed90641741/spillway/internal/race"
	"github.com/seed90641741/spillway/internal/thorough"
	"github.com/seed90641741/spillway/sim"
)

// small is a scenario that is right.
//
//go:embed testdata/small.yaml
var small string

func TestErrorsNameTheLineAndTheField(t *testing.T) {
	replaced := func(old, with string) string { return strings.Replace(small, old, with, 1) }
	for name, row := range map[string]struct{ text, want string }{
		"unknown field":       {replaced("rate: 10", "rte: 10"), "f.yaml:5: clients[0].rte is no field here"},
		"unknown at the top":  {small + "clints: 1\n", "f.yaml:10: clints is no field here"},
		"unknown in JSON":     {`{"name": "a", "durtion": "1s"}`, "f.yaml:1: durtion is no field here"},
		"no number":           {replaced("rate: 10", "rate: ten"), `f.yaml:5: clients[0].rate is "ten": must be a number`},
		"no whole number":     {replaced("rate: 10", "count: 5.5"), `f.yaml:5: clients[0].count is "5.5": must be a whole number`},
		"no number of seeds":  {small + "seed: -1\n", `f.yaml:10: seed is "-1": must be a whole number that is not negative`},
		"fault after the end": {small + "faults:\n  - {kind: outage, service: db, at: 2s}\n", "f.yaml:11: faults[0].at is 2s, must be before the end (1s)"},
		"no duration":         {replaced("1s", "1q"), `f.yaml:2: duration is "1q": must be a length of time, such as 150ms or 1m30s`},
		"no distribution":     {replaced("1ms", "exp 1ms"), `f.yaml:9: services[0].cpu is "exp 1ms": must be one such as 10ms,`},
		"bad distribution":    {replaced("1ms", "pareto 1ms 0.5"), `f.yaml:9: services[0].cpu is "pareto 1ms 0.5": must be of an alpha above 1`},
		"twice":               {small + "name: b\n", `f.yaml:10: name is given twice`},
		"no YAML":             {"name: [\n", "f.yaml:1: "},
		"impossible value":    {replaced("rate: 10", "rate: -1"), "f.yaml:5: clients[0].rate is -1, must be 0 to 1e7"},
		"missing duration":    {replaced("duration: 1s\n", ""), "f.yaml:1: duration is 0s, must be 1ms to a year"},
		"policy":              {replaced("to: db", "to: db, throttle: {k: 1}"), "f.yaml:6: clients[0].call.throttle.k is 1, must be above 1 and at most 100"},
		"in-flight limit":     {replaced("to: db", "to: db, inflight: {max_in_flight: 3000000000}"), "f.yaml:6: clients[0].call.inflight.max_in_flight is 3000000000, must be at most"},
		"retries":             {replaced("to: db", "to: db, retry: {max_attempts: -1}"), "f.yaml:6: clients[0].call.retry.max_attempts is -1, must be 0 or more"},
		"budget":              {replaced("to: db", "to: db, retry: {budget: {capacity: -3}}"), "f.yaml:6: clients[0].call.retry.budget.capacity is -3, must be positive and at most"},
		"field of another":    {replaced("to: db", "to: db, retry: {strategy: aws_standard, ratio: 1}"), "f.yaml:6: clients[0].call.retry.ratio is given, but aws_standard retries have none"},
		"shedder":             {small + "    ingress:\n      shed:\n        max_wait: 1us\n", "f.yaml:12: services[0].ingress.shed.max_wait is 1µs, must be 1ms to 10s"},
		"rate limit":          {small + "    ingress:\n      rate_limit: {rate: 1e9}\n", "f.yaml:11: services[0].ingress.rate_limit.rate is 1e+09, must be"},
		"quota":               {small + "    ingress:\n      quota: {capacity: -1}\n", "f.yaml:11: services[0].ingress.quota.capacity is -1, must be 0 or more"},
		"target":              {small + "    ingress:\n      shed: {load: {targets: {cpu: -1}}}\n", "f.yaml:11: services[0].ingress.shed.load.targets.cpu is -1, must be 0 to 1"},
		"target of the proxy": {small + "    ingress:\n      shed: {load: {targets: {queue: 1s}}}\n", "f.yaml:11: services[0].ingress.shed.load.targets.queue is given, but only the configuration of the proxy has it"},
		"concurrency":         {small + "    ingress:\n      shed: {min_in_flight: -1}\n", "f.yaml:11: services[0].ingress.shed.min_in_flight is -1, must be 1 to 1000000"},
		"learned costs":       {small + "    ingress:\n      learn_costs: true\n", "f.yaml:11: services[0].ingress.learn_costs is true, must be false where there are no Customers"},
		"factor":              {replaced("rate: 10", "cpu_factor: -1"), "f.yaml:5: clients[0].cpu_factor is -1, must be 0"},
		"customer":            {small + "    ingress:\n      quota: {customers: {a: {weight: -1}}}\n", "f.yaml:11: services[0].ingress.quota.customers.a.weight is -1, must be"},
		"attempts":            {small + "    ingress:\n      attempts: {share: 1}\n", "f.yaml:11: services[0].ingress.attempts.share is 1, must be below 1"},
		"no such service":     {replaced("to: db", "to: bd"), `f.yaml:6: clients[0].call.to is "bd", must be the name of a service`},
		"a circle":            {small + "    calls:\n      - to: b\n  - name: b\n    calls:\n      - to: db\n", `f.yaml:14: services[1].calls[0].to is "db", must be a service that does not call this one: db → b → db`},
		"a circle of one":     {small + "    calls: [{to: db}]\n", `f.yaml:10: services[0].calls[0].to is "db", must be a service that does not call this one: db → db`},
		"no such mode":        {replaced("to: db", "to: db, throttle: {mode: on}"), `f.yaml:6: clients[0].call.throttle.mode is "on", must be off, observe or enforce`},
		"no such balance":     {replaced("to: db", "to: db, balance: best"), `f.yaml:6: clients[0].call.balance is "best", must be one of`},
		"fault":               {small + "faults:\n  - {kind: slow, service: db}\n", "f.yaml:11: faults[0].factor is 0, must be above 0"},
		"fault of nobody":     {small + "faults:\n  - kind: outage\n    service: x\n", `f.yaml:12: faults[0].service is "x", must be the name of a service`},
		"window":              {small + "windows:\n  - {name: a, from: 3s}\n", "f.yaml:11: windows[0].from is 3s, must be 0 to before To (1s)"},
		"two of a name":       {replaced("name: db", "name: web"), `f.yaml:4: clients[0].name is "web", must be different`},
		"setting":             {small + "variants:\n  - name: v\n    set: [{field: throtle.k, value: \"2\"}]\n", `f.yaml:12: variants[0].set[0] is wrong: "throtle.k" names no field`},
		"value of a setting":  {small + "variants:\n  - name: v\n    set: [{field: throttle.k, value: x}]\n", `f.yaml:12: variants[0].set[0] is wrong: clients[web].call.throttle.k cannot be "x"`},
		"variant's value":     {small + "variants:\n  - {name: v, set: [{field: throttle.k, value: 1}]}\n", `f.yaml:6: clients[0].call.throttle.k is 1, must be above 1 and at most 100 (in "v")`},
		"variant twice":       {small + "variants:\n  - {name: v}\n  - {name: v}\n", "f.yaml:12: variants[1].name is v, must be different from the others"},
		"variant of no name":  {small + "variants:\n  - {set: [{field: rate, value: 1}]}\n", "f.yaml:11: variants[0].name is missing"},
		"class":               {replaced("rate: 10", "classes: {critical_plus: -1}"), "f.yaml:5: clients[0].classes.critical_plus is -1, must be 0 to 1e9"},
		"wait of standard":    {replaced("to: db", "to: db, retry: {strategy: aws_standard, max: -1s}"), "f.yaml:6: clients[0].call.retry.max is -1s, must be 0 or more"},
		"ratio":               {replaced("to: db", "to: db, retry: {ratio: .nan}"), "f.yaml:6: clients[0].call.retry.ratio is NaN, must be"},
		"no number in a band": {small + "expect:\n  - {measure: web.success, least: .nan}\n", "f.yaml:11: expect[0] has a least or a most that is no number"},
		"empty band":          {small + "expect:\n  - {measure: web.success, least: 2, most: 1}\n", "f.yaml:11: expect[0].least is 2, must not be above most (1)"},
		"measure":             {small + "expect:\n  - {measure: db.speed, least: 1}\n", `f.yaml:11: expect[0].measure is wrong: measure "db.speed": there is no "speed"`},
		"measure of nobody":   {small + "expect:\n  - {measure: x.success, least: 1}\n", `f.yaml:11: expect[0].measure is wrong: measure "x.success" names neither`},
		"no band":             {small + "expect:\n  - {measure: web.success}\n", "f.yaml:11: expect[0] has neither a least nor a most"},
		"variant of a band":   {small + "expect:\n  - {measure: web.success, least: 1, variant: v}\n", `f.yaml:11: expect[0].variant is "v", which is no variant`},
		"window of a measure": {small + "expect:\n  - {measure: web.success, least: 1, window: w}\n", `f.yaml:11: expect[0].measure is wrong: there is no window "w"`},
		"no name":             {replaced("name: small\n", ""), "f.yaml:1: name is missing"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := Parse("f.yaml", []byte(row.text))
			if err == nil || !strings.HasPrefix(err.Error(), row.want) {
				t.Errorf("got  %v\nwant %s", err, row.want)
			}
			if _, ok := errors.AsType[*strict.Error](err); err != nil && !ok {
				t.Errorf("the error is a %T", err)
			}
		})
	}
}

func FuzzParse(f *testing.F) {
	f.Add(small)
	f.Add("{}")
	f.Add("a: &a [*a]")
	f.Fuzz(func(t *testing.T, text string) {
		s, err := Parse("f.yaml", []byte(text))
		if err == nil && len(s.Clients) == 0 {
			t.Errorf("a scenario without clients:\n%s", text)
		}
	})
}

func parse(t *testing.T, text string) *Scenario {
	t.Helper()
	s, err := Parse("f.yaml", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestSweepsAndSeedsMultiply(t *testing.T) {
	s := parse(t, small+"variants:\n  - {name: slow, set: [{field: db.cpu, value: 5ms}]}\n  - {name: fast, set: [{field: cpu, value: exponential 1ms}]}\n")
	var sweeps []Sweep
	for _, text := range []string{"throttle.K=1.1, 1.5", "web.rate=5"} {
		sweep, err := ParseSweep(text)
		if err != nil {
			t.Fatal(err)
		}
		sweeps = append(sweeps, sweep)
	}
	runs, err := s.Runs(Options{Sweep: sweeps, Seeds: 3, Seed: 10})
	if err != nil || len(runs) != 2*2*1*3 {
		t.Fatalf("%d runs, %v", len(runs), err)
	}
	last := runs[11]
	if last.Variant != "fast, throttle.K=1.5, web.rate=5" || last.Config.Seed != 12 ||
		last.Config.Clients[0].Call.Egress.Throttle.K != 1.5 || last.Config.Clients[0].Rate != 5 || last.Config.Services[0].CPU != sim.Exponential(1e6) {
		t.Errorf("%+v", last)
	}
	for _, bad := range []string{"throttle.K", "=1", "throttle.K="} {
		if _, err := ParseSweep(bad); err == nil {
			t.Errorf("%q is a sweep", bad)
		}
	}
	if _, err := s.Runs(Options{Sweep: []Sweep{{"throttle.Q", []string{"1"}}}}); err == nil {
		t.Error("a field that is none was swept")
	}
	if _, err := s.Runs(Options{Seeds: maxRuns}); err == nil {
		t.Error("too many runs")
	}
}

// The built-in scenarios keep what they claim, in their short versions and as they are.
func TestBuiltinScenariosComeOutAsTheyClaim(t *testing.T) {
	race.SkipOneGoroutine(t)
	all, err := Builtin()
	if err != nil {
		t.Fatal(err)
	}
	if len(all) != 14 {
		t.Errorf("%d scenarios", len(all))
	}
	for _, s := range all {
		t.Run(s.Name, func(t *testing.T) {
			t.Parallel()
			if s.Name == "partial-overload" && !thorough.Enabled() {
				t.Skip("takes as long as all others: -tags thorough; package balance tests the same quickly")
			}
			if s.Source == "" || s.Claim == "" || len(s.Expect) < 2 {
				t.Error("it does not say what is claimed, by whom, and what is expected")
			}
			for _, quick := range []bool{true, false} {
				if !quick && !thorough.Enabled() {
					continue
				}
				o := outcome(t, s, Options{Quick: quick})
				for i := range o.Judgements {
					if !o.Judgements[i].Pass {
						t.Errorf("quick %v: %s", quick, o.Judgements[i].Text())
					}
				}
				if !quick && s.Name == "autoscaling" {
					isDocumented(t, o)
				}
			}
		})
	}
}

// isDocumented compares the table of docs/kubernetes.md with the scenario.
func isDocumented(t *testing.T, o *Outcome) {
	t.Helper()
	var b strings.Builder
	for i := range o.Cases {
		c := &o.Cases[i]
		fmt.Fprintf(&b, "| %s | %.0f %% | %.0f %% | %.0f | %.0f |\n", c.Name, 100**c.mean("readers.success", "after"), 100**c.mean("counters.success", "after"),
			*c.mean("pool.serving", "end"), *c.mean("processors.serving", "end"))
	}
	text, err := os.ReadFile("../../../../../docs/kubernetes.md")
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(text), "|---|---|---|---|---|\n"+b.String()+"\n<!-- end of table -->") {
		t.Errorf("docs/kubernetes.md has another table than\n%s", b.String())
	}
}

func outcome(t *testing.T, s *Scenario, o Options) *Outcome {
	t.Helper()
	runs, err := s.Runs(o)
	if err != nil {
		t.Fatal(err)
	}
	results, err := Execute(t.Context(), runs, nil)
	if err != nil {
		t.Fatal(err)
	}
	return s.Conclude(runs, results)
}

// A band that cannot be met is not met.
func TestExpectationsCanFail(t *testing.T) {
	s := parse(t, small+"expect:\n  - {measure: web.success, least: 2}\n  - {measure: web.success, most: 1}\n  - {measure: web.late, least: 0, most: 0}\n")
	o := outcome(t, s, Options{Seeds: 2})
	if o.Passed() || o.Judgements[0].Pass || !o.Judgements[1].Pass || !o.Judgements[2].Pass {
		t.Errorf("%+v", o.Judgements)
	}
}

func TestSameRunsSameBytes(t *testing.T) {
	var texts [2]bytes.Buffer
	for i := range texts {
		o := outcome(t, parse(t, small), Options{Seeds: 3})
		if err := json.NewEncoder(&texts[i]).Encode([]*Outcome{o}); err != nil {
			t.Fatal(err)
		}
		if err := o.WriteTable(&texts[i]); err != nil {
			t.Fatal(err)
		}
	}
	if !bytes.Equal(texts[0].Bytes(), texts[1].Bytes()) || texts[0].Len() == 0 {
		t.Error("two runs differ")
	}
	var back []Outcome
	if err := json.NewDecoder(&texts[0]).Decode(&back); err != nil || len(back[0].Cases[0].Results) != 3 {
		t.Errorf("%+v, %v", back, err)
	}
}

// Numbers that are the same have no spread, whatever their sum is rounded to.
func TestNoSpread(t *testing.T) {
	c := Case{}
	for range 3 {
		c.Results = append(c.Results, &sim.Result{Windows: []sim.Span{{}}, Clients: []sim.ClientsResult{{Name: "web", Windows: []sim.CallsSummary{{Success: 0.1}}}}})
	}
	if e := c.over("web.success"); *e.Mean != 0.1 || *e.Error != 0 {
		t.Errorf("%v ± %v", *e.Mean, *e.Error)
	}
}

// Whole numbers may be written as YAML has them.
func TestWholeNumbers(t *testing.T) {
	for text, want := range map[string]int{"7": 7, "1_000": 1000, "0x10": 16, "1e3": 1000, "5.0": 5, "+3": 3} {
		if s := parse(t, strings.Replace(small, "rate: 10", "count: "+text, 1)); s.Clients[0].Count != want {
			t.Errorf("%s reads as %d", text, s.Clients[0].Count)
		}
	}
}

func TestConfidence(t *testing.T) {
	result := func(v float64) *sim.Result {
		return &sim.Result{Windows: []sim.Span{{}}, Clients: []sim.ClientsResult{{Name: "web", Windows: []sim.CallsSummary{{Success: v}}}}}
	}
	c := Case{Results: []*sim.Result{result(1), result(2), result(3)}}
	e := c.over("web.success")
	// The deviation is 1, and t for two degrees of freedom 4.303.
	if *e.Mean != 2 || *e.Error < 2.48 || *e.Error > 2.49 {
		t.Errorf("%v ± %v", *e.Mean, *e.Error)
	}
	c.Results = c.Results[:1]
	if e := c.over("web.success"); *e.Mean != 1 || e.Error != nil {
		t.Errorf("%+v", e)
	}
	if got := student(1000); got < 1.96 || got > 1.964 {
		t.Errorf("t for 1000 degrees of freedom is %v", got)
	}
	if a, b := student(30), student(31); b >= a || a-b > 0.01 {
		t.Errorf("t for 30 and 31: %v, %v", a, b)
	}
}

// With several windows, the table names the window that it shows.
func TestTableNamesItsWindow(t *testing.T) {
	for windows, want := range map[string]string{
		"": "",
		"windows: [{name: early, to: 500ms}, {name: late, from: 500ms}]\n": "window late, 0.5 s to 1 s:",
		"windows: [{name: early, to: 500ms}]\n":                            "window early, 0 s to 0.5 s:",
	} {
		var b strings.Builder
		o := outcome(t, parse(t, small+windows), Options{})
		if err := o.WriteTable(&b); err != nil {
			t.Fatal(err)
		}
		if has := strings.Contains(b.String(), "window "); has != (want != "") || !strings.Contains(b.String(), want) {
			t.Errorf("%q: the table does not say %q:\n%s", windows, want, b.String())
		}
	}
}

func TestMeasures(t *testing.T) {
	none := (*float64)(nil)
	r := &sim.Result{StepS: 0.5, Windows: []sim.Span{{Name: "a", From: 1, To: 3}, {Name: "b", From: 0, To: 3}},
		Clients: []sim.ClientsResult{{
			Name: "web", Fairness: 0.9,
			Windows: []sim.CallsSummary{
				{Counts: sim.Counts{Offered: 10, Good: 4}, P50MS: new(7.5), Classes: []sim.ClassSummary{{Name: "CRITICAL_PLUS", Success: 0.25}}}, {},
			},
			Series: sim.ClientSeries{Offered: []int{9, 9, 10, 10, 10, 10}, Good: []int{9, 0, 10, 9, 10, 10}, Attempts: []int{1, 1, 1, 1, 1, 7}},
		}},
		Services: []sim.ServiceResult{{Name: "db", CapacityRPS: 100, Windows: []sim.LoadSummary{{Load: sim.Load{Arrived: 15}, LoadRatio: 2}, {}}}},
	}
	for _, row := range []struct {
		measure, window string
		want            *float64
	}{
		{"web.good", "a", new(4.0)},
		{"web.p50_ms", "a", new(7.5)},
		{"web.p50_ms", "", none},
		{"web.fairness", "a", new(0.9)},
		{"web.critical_plus.success", "a", new(0.25)},
		{"web.recovery_s", "a", new(1.0)},
		{"web.peak", "a", new(2.8)},
		{"db.load_ratio", "a", new(2.0)},
		{"db.capacity_rps", "", new(100.0)},
		{"db.arrived_per_call", "a", new(1.5)},
		{"db.arrived_per_call", "b", none},
	} {
		got, err := Measure(r, row.measure, row.window)
		if err != nil || (got == nil) != (row.want == nil) || got != nil && *got != *row.want {
			t.Errorf("%s in %q: %v, %v", row.measure, row.window, got, err)
		}
	}
}

// The slots of a window are found where its times and the step have no exact quotient.
func TestSlotsOfAWindow(t *testing.T) {
	r := &sim.Result{StepS: 0.1, Windows: []sim.Span{{Name: "a", From: 0.3, To: 0.6}}, Clients: []sim.ClientsResult{{
		Name: "web", Windows: []sim.CallsSummary{{}},
		Series: sim.ClientSeries{Offered: []int{5, 5, 5, 5, 5, 5}, Good: []int{5, 5, 5, 5, 5, 5}, Attempts: []int{9, 9, 9, 1, 1, 2}},
	}}}
	for measure, want := range map[string]float64{"web.recovery_s": 0, "web.peak": 1.5} {
		if got, err := Measure(r, measure, "a"); err != nil || got == nil || *got != want {
			t.Errorf("%s: %v, %v, want %v", measure, *got, err, want)
		}
	}
}

// A sweep runs no variants, so expectations that compare variants are not checked.
func TestSweepsAreNotCompared(t *testing.T) {
	s := parse(t, small+"variants:\n  - {name: a}\n  - {name: b}\nexpect:\n  - {measure: web.good, over: a, least: 0.5}\n  - {measure: web.success, least: 0.5}\n")
	if o := outcome(t, s, Options{}); len(o.Judgements) != 4 || !o.Passed() {
		t.Errorf("%+v", o.Judgements)
	}
	sweep := Options{Sweep: []Sweep{{"rate", []string{"5", "6"}}}}
	if o := outcome(t, s, sweep); len(o.Judgements) != 4 || !o.Passed() {
		t.Errorf("a sweep: %+v", o.Judgements)
	}
}

func TestOpen(t *testing.T) {
	if s, err := Open("deep-stack"); err != nil || s.Name != "deep-stack" {
		t.Errorf("%v, %v", s, err)
	}
	for _, name := range []string{"deep", "./none.yaml", "../deep-stack"} {
		if _, err := Open(name); err == nil {
			t.Errorf("%q was opened", name)
		}
	}
	all, err := Builtin()
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range all {
		text, err := Text(s.Name) // so that the name is that of the file
		if err != nil || !bytes.Equal(text, s.source.Text) {
			t.Errorf("%s: %v", s.Name, err)
		}
	}
}
