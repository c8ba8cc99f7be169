package drill

import (
	"fmt"
	"io"
	"math"
	"slices"
	"strings"

	"github.com/seed90641741/spillway"
)

// WriteSummary writes the outcome in at most 14 lines: what was offered, the answers in time of each second and of each class,
// and the verdict. [Result.WriteTable] has the rest.
func (r *Result) WriteSummary(w io.Writer) error {
	var b strings.Builder
	if r.Interrupted {
		b.WriteString("INTERRUPTED  there is no verdict; this was measured until then\n")
	}
	b.WriteString(r.Title())
	if r.Without != nil {
		fmt.Fprintf(&b, " A bar is %s s; █ is the capacity.\n\n", number(r.Settings.column()))
		r.writeSeconds(&b)
		r.writeClasses(&b)
	}
	b.WriteByte('\n')
	r.writeVerdict(&b)
	_, err := io.WriteString(w, b.String())
	return err
}

// Title says what was done.
func (r *Result) Title() string {
	if r.CapacityRPS == 0 {
		return "The capacity of the backend was not measured."
	}
	step, what := r.Settings.Phases[1], "for"
	if r.Settings.Scenario == ScenarioStorm {
		what = "and stops for"
	}
	return fmt.Sprintf("A backend that can answer %.0f calls/s gets %.0f/s %s %s s.", r.CapacityRPS, step.OfferedRPS, what, number(step.End-step.Start))
}

// column returns the length of a column of the charts in seconds: half a second, or more if there would be too many columns.
func (s *Settings) column() float64 {
	end := s.Phases[len(s.Phases)-1].End
	if end <= mostColumns/2 {
		return 0.5
	}
	return math.Ceil(end / mostColumns)
}

// labels is the width of the first column.
const labels = 20

// mostColumns bounds the width of the charts.
const mostColumns = 60

// writeSeconds draws the calls of each second that were offered, and that were answered in time.
func (r *Result) writeSeconds(b *strings.Builder) {
	phases, column := r.Settings.Phases, r.Settings.column()
	fmt.Fprintf(b, "%-*s", labels, "answered in time")
	for _, p := range phases {
		word, width := r.phaseWord(p.Name), r.width(p, column)
		if len(word) > width {
			word = ""
		}
		fmt.Fprintf(b, " %-*s", width, word)
	}
	fmt.Fprintf(b, "  in the %s\n", r.phaseWord(phases[r.judged()].Name))
	r.writeChart(b, "offered", r.Without, column, offered, fmt.Sprintf("%6.0f/s", phases[r.judged()].OfferedRPS))
	r.writeChart(b, "without Spillway", r.Without, column, answered, r.rate(r.Without))
	r.writeChart(b, "with Spillway", r.With, column, answered, r.rate(r.With))
}

func offered(s *Series) []int  { return s.Offered }
func answered(s *Series) []int { return s.Goodput }

// judged returns the phase whose goodput is in the headline.
func (r *Result) judged() int {
	if r.Settings.Scenario == ScenarioStorm {
		return 2
	}
	return 1
}

// phaseWord names a phase for readers.
func (r *Result) phaseWord(name string) string {
	switch {
	case name != PhaseStep:
		return name
	case r.Settings.Scenario == ScenarioStorm:
		return "outage"
	case r.Settings.Overload > 1:
		return "overload"
	}
	return name
}

func (r *Result) rate(run *Run) string {
	if run == nil {
		return "     -"
	}
	rps := r.answered(run)
	return fmt.Sprintf("%6.0f/s, %.0f %% of the capacity", rps, 100*rps/r.CapacityRPS)
}

// width returns how many columns a phase has.
func (r *Result) width(p Phase, column float64) int {
	return int(math.Ceil(p.End/column)) - int(math.Ceil(p.Start/column))
}

// writeChart writes a line with a bar for each column. A bar of full height is the capacity, or more.
func (r *Result) writeChart(b *strings.Builder, label string, run *Run, column float64, of func(*Series) []int, text string) {
	fmt.Fprintf(b, "  %-*s", labels-2, label)
	at := 0
	for _, p := range r.Settings.Phases {
		b.WriteByte(' ')
		for range r.width(p, column) {
			b.WriteRune(bar(r.between(run, of, float64(at)*column, float64(at+1)*column)))
			at++
		}
	}
	b.WriteString("  " + text + "\n")
}

// between returns the mean of a series from one time to another, in capacities. It is negative where the run was not made.
func (r *Result) between(run *Run, of func(*Series) []int, from, to float64) float64 {
	if run == nil {
		return -1
	}
	sum, n := 0, 0
	for i, at := range run.Series.T {
		if at >= from && at < to {
			sum, n = sum+of(&run.Series)[i], n+1
		}
	}
	if n == 0 {
		return -1
	}
	return float64(sum) / float64(n) / run.Series.StepS / r.CapacityRPS
}

// bar returns the character for a share of the capacity.
func bar(share float64) rune {
	bars := []rune("▁▂▃▄▅▆▇█")
	switch {
	case share < 0:
		return ' '
	case share == 0:
		return '·'
	}
	return bars[min(int(share*float64(len(bars))), len(bars)-1)]
}

// writeClasses writes the calls per second of each class during the step.
func (r *Result) writeClasses(b *strings.Builder) {
	fmt.Fprintf(b, "%-*s", labels, "calls/s by class")
	for i := range spillway.Criticalities {
		fmt.Fprintf(b, "%16s", spillway.CriticalPlus-spillway.Criticality(i))
	}
	b.WriteByte('\n')
	r.writeClassCounts(b, "offered", r.Without, func(c *Counts) int { return c.Offered })
	good := func(c *Counts) int { return c.Goodput }
	r.writeClassCounts(b, "without Spillway", r.Without, good)
	r.writeClassCounts(b, "with Spillway", r.With, good)
}

func (r *Result) writeClassCounts(b *strings.Builder, label string, run *Run, of func(*Counts) int) {
	fmt.Fprintf(b, "  %-*s", labels-2, label)
	for i := range spillway.Criticalities {
		cell := nothing
		if run != nil && i < len(run.Classes) {
			step := r.Settings.Phases[1]
			cell = fmt.Sprintf("%.0f", float64(of(&run.Classes[i].Counts))/(step.End-step.Start))
		}
		fmt.Fprintf(b, "%16s", cell)
	}
	b.WriteByte('\n')
}

// writeVerdict writes one line if all checks passed, and else one for each that did not.
func (r *Result) writeVerdict(b *strings.Builder) {
	switch failed := r.failed(); {
	case r.Interrupted:
	case len(failed) == 0:
		fmt.Fprintf(b, "PASS  %s\n", names(r.Checks))
	default:
		fmt.Fprintf(b, "%s  %s\n", r.Word(failed[0]), failed[0].Text)
		if more := failed[1:]; len(more) > 0 {
			fmt.Fprintf(b, "%s  also: %s\n", r.Word(more[0]), names(more))
		}
	}
	if note := r.Note(); note != "" {
		b.WriteString(note + "\n")
	}
}

// Note says what a busy machine did to the drill. It is empty if that was nothing.
func (r *Result) Note() string {
	switch {
	case r.Inconclusive != "":
		return "This machine was too busy to measure: " + r.Inconclusive + ". Close other programs, and run the drill again."
	case r.Repeated != "":
		return "This is the second run with Spillway. In the first one the machine was too busy: " + r.Repeated + "."
	}
	return ""
}

func names(checks []Check) string {
	all := make([]string, len(checks))
	for i, c := range checks {
		all[i] = c.Name
	}
	return strings.Join(all, ", ")
}

func (r *Result) failed() []Check {
	return slices.DeleteFunc(slices.Clone(r.Checks), func(c Check) bool { return c.Pass })
}

// Word returns the verdict on a check: a check that failed says nothing where the machine was too busy to measure.
func (r *Result) Word(c Check) string {
	switch {
	case c.Pass:
		return "PASS"
	case r.Inconclusive != "":
		return "INCONCLUSIVE"
	}
	return "FAIL"
}
