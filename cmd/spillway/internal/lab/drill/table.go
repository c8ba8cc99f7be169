package drill

import (
	"fmt"
	"io"
	"math"
	"strconv"
	"strings"
	"text/tabwriter"
)

// nothing stands where there is no number.
const nothing = "-"

// WriteTable writes what r says, for people: the settings, a table, the headline
// and the checks.
func (r *Result) WriteTable(w io.Writer) error {
	var b strings.Builder
	r.writeSettings(&b)
	r.writeRuns(&b)
	fmt.Fprintln(&b, strings.Join(r.Headline, "\n"))
	if caption := r.Caption(); caption != "" {
		fmt.Fprintln(&b, caption)
	}
	if len(r.Checks) > 0 {
		b.WriteByte('\n')
	}
	for _, c := range r.Checks {
		fmt.Fprintf(&b, "%s  %s\n", r.Word(c), c.Text)
	}
	if note := r.Note(); note != "" {
		fmt.Fprintln(&b, note)
	}
	_, err := io.WriteString(w, b.String())
	return err
}

func (r *Result) writeSettings(w io.Writer) {
	if r.Interrupted {
		fmt.Fprint(w, "INTERRUPTED: what follows was measured until then\n\n")
	}
	if r.CapacityRPS == 0 {
		return
	}
	s, p := r.Settings, r.Settings.Phases
	fmt.Fprintf(w, "backend    capacity %.0f/s%s, one CPU; a call %s\n", r.CapacityRPS, r.Drift(), s.Work())
	fmt.Fprintf(w, "load       %.0f/s for %s s, %.0f/s for %s s, %.0f/s for %s s; seed %d, deadline %s ms\n",
		p[0].OfferedRPS, number(p[0].End-p[0].Start), p[1].OfferedRPS, number(p[1].End-p[1].Start),
		p[2].OfferedRPS, number(p[2].End-p[2].Start), s.Seed, number(s.DeadlineMS))
	fmt.Fprintf(w, "without    %s\n", s.Caller)
	fmt.Fprintf(w, "with       %s\n", s.Protected)
	if s.MaxInFlight > 0 {
		fmt.Fprintf(w, "           at most %d in flight (%s)\n", s.MaxInFlight, s.MaxInFlightRule)
	}
	fmt.Fprintf(w, "both       %s, at most %d connections of %s\n\n", s.Wire, s.Connections, callers(s.Clients))
}

// Drift says how far the capacity moved, if it did so notably, and else nothing.
func (r *Result) Drift() string {
	if r.CapacityAfterRPS == 0 || math.Abs(r.CapacityAfterRPS-r.CapacityBeforeRPS) < 0.03*r.CapacityRPS {
		return ""
	}
	return fmt.Sprintf(" (%.0f/s before the run with Spillway, %.0f/s after it)", r.CapacityBeforeRPS, r.CapacityAfterRPS)
}

func callers(n int) string {
	if n == 1 {
		return "1 caller"
	}
	return fmt.Sprintf("%d callers", n)
}

// A row of the table: what it is, and how a run answers.
type row struct {
	label string
	cell  func(*Run) string
}

func (r *Result) writeRuns(w io.Writer) {
	if r.Without == nil {
		return
	}
	tw := tabwriter.NewWriter(w, 0, 0, 3, ' ', tabwriter.AlignRight)
	step := r.Settings.Phases[1]
	fmt.Fprintf(tw, "%-40s\twithout\twith\t\n", fmt.Sprintf("during the %s of %s s", r.Settings.StepName(), number(step.End-step.Start)))
	for _, row := range r.rows() {
		with := nothing
		if r.With != nil {
			with = row.cell(r.With)
		}
		fmt.Fprintf(tw, "%-40s\t%s\t%s\t\n", row.label, row.cell(r.Without), with)
	}
	_ = tw.Flush() // to a strings.Builder
	fmt.Fprintln(w)
}

func (r *Result) rows() []row {
	count := func(of func(*Run) int) func(*Run) string {
		return func(run *Run) string { return strconv.Itoa(of(run)) }
	}
	latency := func(ms float64) string { return fmt.Sprintf("%.1f", ms) }
	rows := []row{
		{"calls offered", count(func(run *Run) int { return run.Offered })},
		{"goodput, per second", func(run *Run) string { return fmt.Sprintf("%.1f", run.GoodputRPS) }},
		{"goodput, share of capacity", func(run *Run) string { return percent(run.GoodputRatio) }},
		{"answered in time (n)", count(func(run *Run) int { return run.Samples })},
		{"  p50 of them, ms", func(run *Run) string { return optional(run.P50MS, latency) }},
		{"  p99 of them, ms", func(run *Run) string { return optional(run.P99MS, latency) }},
		{"answered late", count(func(run *Run) int { return run.Late })},
		{"timed out", count(func(run *Run) int { return run.TimedOut })},
		{"failed", count(func(run *Run) int { return run.Failed })},
		{"rejected remotely (503 or 429)", count(func(run *Run) int { return run.RejectedByBackend })},
		{"rejected locally", count(func(run *Run) int { return run.RejectedLocal })},
		{"dropped sends", count(func(run *Run) int { return run.DroppedSends })},
		{"unfinished", count(func(run *Run) int { return run.Unfinished })},
		{"attempts per call", func(run *Run) string { return fmt.Sprintf("%.2f", run.AttemptsPerCall) }},
		{"processor time of a call, of the usual", func(run *Run) string { return optional(run.Work, number) }},
		{"backend's processor taken by others", func(run *Run) string { return optional(run.Taken, percent) }},
		{"  in the worst quarter of a second", func(run *Run) string { return optional(run.TakenWorst, percent) }},
		{"recovery after the " + r.Settings.StepName(), r.recoveryCell},
		{"  in time, second by second", r.secondsCell},
		{"whole run: late sends", count(func(run *Run) int { return run.LateSends })},
		{"whole run: dropped sends", count(func(run *Run) int { return run.whole().DroppedSends })},
		{"whole run: send lateness p99, ms", func(run *Run) string { return fmt.Sprintf("%.2f", run.LatenessP99MS) }},
	}
	for i, class := range r.Without.Classes {
		rows = append(rows, row{class.Name + ": offered/in time/rejected", func(run *Run) string {
			c := &run.Classes[i]
			return fmt.Sprintf("%d/%d/%d", c.Offered, c.Goodput, c.Rejected())
		}})
	}
	return rows
}

func (r *Result) recoveryCell(run *Run) string {
	switch {
	case run.RecoverS != nil:
		return fmt.Sprintf("%.2f s", *run.RecoverS)
	case run.Seconds < r.Settings.Phases[2].End: // the run was cut short
		return nothing
	}
	return "not in " + r.recoveryPhase()
}

// secondsCell has the share of calls that were answered in time in each second after the step,
// in percent.
func (r *Result) secondsCell(run *Run) string {
	end := r.Settings.Phases[1].End
	var shares []string
	for second := range int(run.Seconds - end) {
		from, share := end+float64(second), nothing
		if offered := r.between(run, offered, from, from+1); offered > 0 {
			share = strconv.Itoa(int(100 * r.between(run, answered, from, from+1) / offered))
		}
		shares = append(shares, share)
	}
	if len(shares) == 0 {
		return nothing
	}
	return strings.Join(shares, " ") + " %"
}

func optional(v *float64, write func(float64) string) string {
	if v == nil {
		return nothing
	}
	return write(*v)
}

// whole returns the offered calls and the dropped sends of the whole run.
func (run *Run) whole() (all Counts) {
	for _, p := range run.Phases {
		all.Offered += p.Offered
		all.DroppedSends += p.DroppedSends
	}
	return all
}

// dropRatio returns the share of the calls of the whole run that the generator could not send.
func (run *Run) dropRatio() float64 {
	whole := run.whole()
	return float64(whole.DroppedSends) / float64(max(1, whole.Offered))
}
