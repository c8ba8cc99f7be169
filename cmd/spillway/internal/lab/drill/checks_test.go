package drill

import (
	"fmt"
	"io"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/seed90641741/spillway/cmd/spillway/internal/lab/process"
)

// sample is a result of numbers that are easy to tell apart.
func sample() *Result {
	r := &Result{
		CapacityRPS: 641, CapacityBeforeRPS: 642, CapacityAfterRPS: 640, WorkBefore: 1, WorkAfter: 1.02,
		Settings: Settings{Clients: 1, Protect: ProtectCallers, Backend: process.KindCPU, Overload: 10, DeadlineMS: 100, ServiceMS: 1.5, MaxInFlight: 21, Connections: 257, Phases: threePhases()},
		Without: &Run{GoodputRPS: 8.75, GoodputRatio: 0.01365, P50MS: new(51.51), Samples: 70, AttemptsPerCall: 3.996, Seconds: 18,
			LatenessP99MS: 26.43, Counts: Counts{Offered: 51316, Goodput: 70, Late: 3, TimedOut: 51141, Failed: 2, DroppedSends: 100, Unfinished: 4},
			Phases: []NamedCounts{{PhaseCalm, Counts{Offered: 1281}}, {PhaseStep, Counts{Offered: 51316, DroppedSends: 100}}, {PhaseRecovery, Counts{DroppedSends: 11}}}},
		With: &Run{Work: new(1.002), Taken: new(0.01552), TakenWorst: new(0.12), LateSends: 7, GoodputRPS: 639.1, GoodputRatio: 0.99704, P50MS: new(50.27), P99MS: new(65.04), Samples: 5113, AttemptsPerCall: 1.004, Seconds: 18,
			RecoverS: new(0.25), LatenessP99MS: 1.09, Counts: Counts{Offered: 51316, Goodput: 5113, RejectedLocal: 46167, RejectedByBackend: 5, TimedOut: 36},
			Phases: []NamedCounts{{PhaseCalm, Counts{Offered: 1281}}, {PhaseStep, Counts{Offered: 51316}}, {PhaseRecovery, Counts{}}}},
	}
	for i, name := range []string{"CRITICAL_PLUS", "CRITICAL", "SHEDDABLE_PLUS", "SHEDDABLE"} {
		r.Without.Classes = append(r.Without.Classes, NamedCounts{name, Counts{Offered: 12829, Goodput: 20 - i, TimedOut: 12809 + i}})
		r.With.Classes = append(r.With.Classes, NamedCounts{name, Counts{Offered: 12829, RejectedLocal: 12800, RejectedByBackend: 29}})
	}
	for _, run := range []*Run{r.Without, r.With} {
		run.Series.StepS = 0.5
		for at := 0.0; at < 18; at += 0.5 {
			run.Series.T = append(run.Series.T, at)
			run.Series.Offered = append(run.Series.Offered, 160)
			run.Series.Goodput = append(run.Series.Goodput, 0)
		}
	}
	step := r.Settings.Phases[1].End
	for i, at := range r.With.Series.T {
		switch {
		case at == step:
			r.With.Series.Goodput[i] = 128 // of the first second 90 %
		case at > step:
			r.With.Series.Goodput[i] = 160
		}
	}
	r.With.Classes[0].Counts = Counts{Offered: 12829, Goodput: 5113, RejectedLocal: 7711, RejectedByBackend: 5}
	r.conclude()
	return r
}

func TestHeadline(t *testing.T) {
	for _, row := range []struct {
		name   string
		change func(*Result)
		want   string
	}{
		{"both", func(*Result) {}, "Without: 9/s. With: 639/s."},
		{"in the first run", func(r *Result) { r.Interrupted, r.Without.Seconds, r.With = true, 9, nil }, "Without: 9/s."},
		{"before the first run", func(r *Result) { r.Interrupted, r.Without, r.With = true, nil, nil }, "Interrupted before the first run."},
		{"at once", func(r *Result) { *r = Result{Interrupted: true} }, "Interrupted before the first run."},
		{"a retry storm", func(r *Result) { *r = *storm() }, "Without: 10/s. With: 500/s."},
	} {
		r := sample()
		row.change(r)
		r.conclude()
		if got := strings.Join(r.Headline, " "); got != row.want {
			t.Errorf("%s: %s, want %s", row.name, got, row.want)
		}
	}
}

// storm is a sample of a retry storm.
func storm() *Result {
	r := sample()
	r.Settings.Scenario, r.Settings.Overload = ScenarioStorm, stormLoad
	c := Config{Scenario: ScenarioStorm, Calm: 4 * time.Second, Step: 2 * time.Second, Recovery: 6 * time.Second}
	r.Settings.Phases = c.phases(r.CapacityRPS)
	r.Without.Seconds, r.With.Seconds = 12, 12
	r.Without.Phases[2].Goodput, r.With.Phases[2].Goodput = 60, 3000
	r.conclude()
	return r
}

// Of an outage only the end is promised.
func TestChecksOfARetryStorm(t *testing.T) {
	for protect, want := range map[string]string{
		ProtectCallers: "recovery retries generator", ProtectServer: "recovery generator", ProtectNone: "generator",
	} {
		r := storm()
		r.Settings.Protect = protect
		r.conclude()
		var names []string
		for _, c := range r.Checks {
			names = append(names, c.Name)
			if strings.Contains(c.Text, "the step") {
				t.Errorf("the outage is called a step: %s", c.Text)
			}
		}
		if got := strings.Join(names, " "); got != want {
			t.Errorf("%s: checks %q, want %q", protect, got, want)
		}
	}
	var b strings.Builder
	if err := storm().WriteTable(&b); err != nil || !hasLine(b.String(), [3]string{"recovery after the outage", "not in 6 s", "0.25 s"}) {
		t.Errorf("%v, or no line for the recovery in\n%s", err, b.String())
	}
}

func TestChecks(t *testing.T) {
	for _, row := range []struct {
		name   string
		change func(*Result)
		broken string // the names of the checks that fail
	}{
		{"all is well", func(*Result) {}, ""},
		{"goodput at the bound", func(r *Result) { r.With.GoodputRatio = 0.90 }, ""},
		{"goodput below", func(r *Result) { r.With.GoodputRatio = 0.8999 }, "goodput"},
		{"all of less than the capacity", func(r *Result) { r.Settings.Overload, r.With.GoodputRatio = 0.5, 0.5 }, ""},
		{"little of less than the capacity", func(r *Result) { r.Settings.Overload, r.With.GoodputRatio = 0.5, 0.4 }, "goodput"},
		{"slow recovery", func(r *Result) { r.With.RecoverS = new(2.25) }, "recovery"},
		{"no recovery", func(r *Result) { r.With.RecoverS = nil }, "recovery"},
		{"too many retries", func(r *Result) { r.With.Phases[1].Attempts, r.With.Phases[1].Retries = 1110, 110 }, "retries"},
		{"retries that the calm time paid", func(r *Result) {
			r.With.Phases[0].Attempts, r.With.Phases[1].Attempts, r.With.Phases[1].Retries = 100, 1110, 110
		}, ""},
		{"the first retries of a budget", func(r *Result) { r.With.Phases[1].Attempts, r.With.Phases[1].Retries = 1103, 103 }, ""},
		{"no throttle", func(r *Result) { r.With.Attempts = 10 * r.With.Goodput }, "sent"},
		{"a generator that cannot", func(r *Result) { r.With.Phases[0].DroppedSends = 600 }, "generator"},
		{"a collapse without Spillway is no breach", func(r *Result) { r.Without.GoodputRatio = 0 }, ""},
	} {
		r := sample()
		row.change(r)
		r.conclude()
		var broken []string
		for _, c := range r.Checks {
			if !c.Pass {
				broken = append(broken, c.Name)
			}
			if c.Got != nil && c.Pass != (*c.Got <= c.Want) && c.Name != "goodput" && c.Name != "retries" {
				t.Errorf("%s: %s is %v of %v, but pass is %v", row.name, c.Name, *c.Got, c.Want, c.Pass)
			}
		}
		if got := strings.Join(broken, " "); got != row.broken {
			t.Errorf("%s: broken %q, want %q", row.name, got, row.broken)
		}
		if r.Passed() != (row.broken == "") {
			t.Errorf("%s: passed is %v", row.name, r.Passed())
		}
	}
	interrupted := sample()
	interrupted.Interrupted, interrupted.Checks = true, nil
	interrupted.conclude()
	if len(interrupted.Checks) != 0 || interrupted.Passed() {
		t.Error("an interrupted drill judges, or passes")
	}
}

// What is promised depends on who is protected.
func TestPromises(t *testing.T) {
	for _, row := range []struct {
		protect, backend string
		retries          int
		names            string
		goodput, recover float64
	}{
		{ProtectCallers, process.KindCPU, 3, "goodput recovery retries sent generator", 0.9, 2},
		{ProtectBoth, process.KindMixed, 3, "goodput recovery retries sent order highest generator", 0.9, 4},
		{ProtectServer, process.KindBlocking, 3, "goodput recovery order highest generator", 0.9, 2},
		{ProtectServer, process.KindCPU, 0, "goodput recovery order highest generator", 0.9, 2},
		{ProtectServer, process.KindMixed, 3, "goodput recovery order highest generator", 0.9, 2},
		{ProtectProxy, process.KindCPU, 3, "goodput recovery order highest generator", 0.9, 2},
		{ProtectNone, process.KindCPU, 3, "generator", 0, 0},
	} {
		r := sample()
		r.Settings.Protect, r.Settings.Backend, r.Settings.Retries = row.protect, row.backend, row.retries
		r.conclude()
		var names []string
		for _, c := range r.Checks {
			names = append(names, c.Name)
			if c.Name == "goodput" && math.Abs(c.Want-row.goodput) > 1e-9 || c.Name == "recovery" && c.Want != row.recover {
				t.Errorf("%s, %s: %s of %v is promised", row.protect, row.backend, c.Name, c.Want)
			}
		}
		if got := strings.Join(names, " "); got != row.names {
			t.Errorf("%s: checks %q, want %q", row.protect, got, row.names)
		}
	}
}

// A server that degrades its answers promises more than the capacity of full ones.
func TestPromiseOfDegradation(t *testing.T) {
	for _, row := range []struct {
		overload, goodput float64
	}{{0.5, 0.45}, {1, 0.9}, {1.5, 1.125}, {2, 1.5}, {10, 1.5}} {
		r := sample()
		r.Settings.Scenario, r.Settings.Protect, r.Settings.Backend, r.Settings.Retries = ScenarioDegradation, ProtectServer, process.KindCPU, 0
		r.Settings.Overload = row.overload
		r.conclude()
		for _, c := range r.Checks {
			if c.Name == "goodput" && math.Abs(c.Want-row.goodput) > 1e-3 || c.Name == "highest" && c.Want > promiseGoodput {
				t.Errorf("overload %v: %s of %v is promised, want %v", row.overload, c.Name, c.Want, row.goodput)
			}
		}
	}
}

// A check that fails on a busy machine, or because the load was not sent, says nothing about Spillway. If all checks
// hold, the result counts.
func TestInconclusive(t *testing.T) {
	for _, row := range []struct {
		name    string
		goodput float64
		change  func(*Result)
		want    string
	}{
		{"nothing is known", 0.5, func(r *Result) { r.With.Taken, r.With.TakenWorst, r.With.Work = nil, nil, nil }, ""},
		{"a quiet machine", 0.5, func(*Result) {}, ""},
		{"taken", 0.85, func(r *Result) { r.With.Taken = new(0.31) }, "other programs took 31.0 % of the backend's processor"},
		{"taken, and all checks hold", 0.95, func(r *Result) { r.With.Taken = new(0.31) }, ""},
		{"taken for a moment", 0.85, func(r *Result) { r.With.TakenWorst = new(0.9) }, "other programs took 90.0 % of the backend's processor for a quarter of a second"},
		{"a little slower", 0.82, func(r *Result) { r.With.Work = new(1.05) }, ""},
		{"a little slower, and little is missing", 0.895, func(r *Result) { r.With.Work = new(1.02) }, "in all 2.7 % of the capacity was taken, and 0.5 % is missing"},
		{"a little slower, and other checks fail", 0.95, func(r *Result) { r.With.Work, r.With.RecoverS = new(1.02), nil }, ""},
		{"slower", 0.85, func(r *Result) { r.With.Work = new(1.212) }, "the processor of the backend took 20.0 % longer for a call than in the capacity measurements"},
		{"as slow as before", 0.85, func(r *Result) { r.WorkBefore, r.WorkAfter, r.With.Work = 1.2, 1.2, new(1.21) }, ""},
		{"a capacity that falls", 0.85, func(r *Result) { r.CapacityAfterRPS = 500 }, "the capacity changed from 642/s to 500/s"},
		{"a generator that is late", 0.95, func(r *Result) { r.With.LateSends, r.With.Phases[1].DroppedSends = 5200, 5000 }, "the load generator sent 9.9 % of the calls late"},
		{"more is missing than was taken", 0.4, func(r *Result) { r.With.Taken = new(0.31) }, ""},
		{"as much is missing as was taken", 0.5, func(r *Result) { r.With.Taken = new(0.31) }, "other programs took 31.0 % of the backend's processor"},
		{"a small machine", 0.85, func(r *Result) { r.Settings.Saturated = true }, "callers and rejections need too much of its processors; try --backend=blocking or a lower --overload"},
	} {
		r := sample()
		r.With.GoodputRatio = row.goodput
		row.change(r)
		r.conclude()
		if r.Inconclusive != row.want {
			t.Errorf("%s: inconclusive because of %q, want %q", row.name, r.Inconclusive, row.want)
		}
		for _, write := range []func(io.Writer) error{r.WriteTable, r.WriteSummary} {
			var b strings.Builder
			if err := write(&b); err != nil {
				t.Fatal(err)
			}
			last := "This machine was too busy to measure: " + row.want + ". Close other programs, and run the drill again.\n"
			if strings.HasSuffix(b.String(), last) != (row.want != "") || strings.Contains(b.String(), "INCONCLUSIVE  ") != (row.want != "") ||
				row.want != "" && strings.Contains(b.String(), "FAIL") {
				t.Errorf("%s: the output is\n%s", row.name, b.String())
			}
		}
	}
}

// A result that counts takes back what was said of an earlier run.
func TestConclusionOfASecondRun(t *testing.T) {
	r := sample()
	r.With.GoodputRatio, r.With.Taken = 0.5, new(0.5)
	r.conclude()
	r.Repeated, r.With.GoodputRatio = r.Inconclusive, 0.95
	r.conclude()
	var b strings.Builder
	if err := r.WriteSummary(&b); err != nil || r.Inconclusive != "" || !r.Passed() ||
		!strings.HasSuffix(b.String(), "\nThis is the second run with Spillway. In the first one the machine was too busy: other programs took 50.0 % of the backend's processor.\n") {
		t.Errorf("%v, inconclusive %q:\n%s", err, r.Inconclusive, b.String())
	}
}

// The table shows each number once, in the column of its run.
func TestTable(t *testing.T) {
	var b strings.Builder
	if err := sample().WriteTable(&b); err != nil {
		t.Fatal(err)
	}
	table := b.String()
	for _, row := range [][3]string{
		{"calls offered", "51316", "51316"},
		{"goodput, per second", "8.8", "639.1"},
		{"goodput, share of capacity", "1.4 %", "99.7 %"},
		{"answered in time (n)", "70", "5113"},
		{"p50 of them, ms", "51.5", "50.3"},
		{"p99 of them, ms", "-", "65.0"},
		{"answered late", "3", "0"},
		{"timed out", "51141", "36"},
		{"failed", "2", "0"},
		{"rejected remotely (503 or 429)", "0", "5"},
		{"rejected locally", "0", "46167"},
		{"dropped sends", "100", "0"},
		{"unfinished", "4", "0"},
		{"attempts per call", "4.00", "1.00"},
		{"processor time of a call, of the usual", "-", "1.002"},
		{"backend's processor taken by others", "-", "1.6 %"},
		{"in the worst quarter of a second", "-", "12.0 %"},
		{"recovery after the step", "not in 6 s", "0.25 s"},
		{"in time, second by second", "0 0 0 0 0 0 %", "90 100 100 100 100 100 %"},
		{"whole run: late sends", "0", "7"},
		{"whole run: dropped sends", "111", "0"},
		{"whole run: send lateness p99, ms", "26.43", "1.09"},
		{"CRITICAL_PLUS: offered/in time/rejected", "12829/20/0", "12829/5113/7716"},
		{"SHEDDABLE: offered/in time/rejected", "12829/17/0", "12829/0/12829"},
	} {
		if !hasLine(table, row) {
			t.Errorf("no line with %q in\n%s", row, table)
		}
	}
	for _, c := range sample().Checks {
		if !strings.Contains(table, fmt.Sprintf("\nPASS  %s\n", c.Text)) {
			t.Errorf("no line for %q", c.Text)
		}
	}
	if !strings.Contains(table, "\nWithout: 9/s.\nWith: 639/s.\nCalls answered in time during the step; capacity 641/s.\n") {
		t.Error("the headline is missing")
	}
}

func hasLine(table string, want [3]string) bool {
	for line := range strings.Lines(table) {
		if strings.Join(strings.Fields(line), " ") == want[0]+" "+want[1]+" "+want[2] {
			return true
		}
	}
	return false
}

func TestTableOfWhatThereIs(t *testing.T) {
	for _, change := range []func(*Result){
		func(r *Result) { r.With = nil },
		func(r *Result) { r.Without, r.With = nil, nil },
		func(r *Result) { *r = Result{} },
	} {
		r := sample()
		change(r)
		r.Interrupted, r.Checks = true, nil
		r.conclude()
		var b strings.Builder
		if err := r.WriteTable(&b); err != nil {
			t.Fatal(err)
		}
		if strings.Contains(b.String(), "0/s") && r.CapacityRPS == 0 || strings.Contains(b.String(), "\n\n\n") {
			t.Errorf("the table has a number or a gap of what was not measured:\n%s", b.String())
		}
		if !strings.HasPrefix(b.String(), "INTERRUPTED") || !strings.Contains(b.String(), r.Headline[0]) {
			t.Errorf("the table does not say that it is partial:\n%s", b.String())
		}
	}
}

func TestDrift(t *testing.T) {
	for _, row := range []struct {
		before, after float64
		want          string
	}{
		{600, 0, ""},
		{600, 615, ""},
		{600, 640, " (600/s before the run with Spillway, 640/s after it)"},
		{640, 600, " (640/s before the run with Spillway, 600/s after it)"},
	} {
		r := Result{CapacityRPS: (row.before + row.after) / 2, CapacityBeforeRPS: row.before, CapacityAfterRPS: row.after}
		if got := r.Drift(); got != row.want {
			t.Errorf("from %v to %v: %q, want %q", row.before, row.after, got, row.want)
		}
	}
}
