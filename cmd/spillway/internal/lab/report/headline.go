package report

import (
	"fmt"
	"math"
	"strings"

	"github.com/seed90641741/spillway/cmd/spillway/internal/lab/drill"
	"github.com/seed90641741/spillway/internal/admin/page"
)

func verdictOf(r *drill.Result) page.Verdict {
	if r.Interrupted {
		return page.Verdict{Class: "stopped", Word: "INTERRUPTED", Text: "no verdict: the drill was stopped before its end"}
	}
	if r.Inconclusive != "" {
		return page.Verdict{Class: "stopped", Word: "INCONCLUSIVE", Text: "this machine was too busy to measure: " + r.Inconclusive}
	}
	return page.VerdictOf(r.Checks, func(c drill.Check) bool { return c.Pass }, "checks", "checked")
}

// A panel compares one measure of both runs by the length of two bars.
type panel struct {
	Title string
	Bars  []bar
	// Mark is the position of a bound, in percent of the width; 0: no bound.
	Mark      float64
	MarkLabel string

	full float64 // the value that a bar of full width represents
}

type bar struct {
	Name string
	Cell cell
	// Width is in percent. The bar of a measure that was not reached has the width of the
	// time that was waited for it, and is Open.
	Width float64
	Open  bool
}

// headline returns the three main comparisons: goodput, attempts per call, and time to
// recover.
func headline(r *drill.Result) []panel {
	ms := felt()
	useful, when := ms[0], "during"
	if r.Settings.Scenario == drill.ScenarioStorm { // during the outage there is nothing to compare
		useful.value, when = some(r.Afterwards), "after"
	}
	goodput := panelOf(r, useful, "Useful answers "+when+" the "+stepName(r), r.CapacityRPS)
	if r.CapacityRPS > 0 {
		goodput.Mark = 100 * r.CapacityRPS / goodput.full
		goodput.MarkLabel = "capacity " + perSecond(r.CapacityRPS)
	}
	return []panel{
		goodput,
		panelOf(r, ms[4], "Attempts for each call that was sent", 1),
		panelOf(r, ms[5], "Time to recover after the "+stepName(r), lengthOf(r, drill.PhaseRecovery)),
	}
}

func panelOf(r *drill.Result, m measure, title string, least float64) panel {
	p := panel{Title: title, full: max(least, math.SmallestNonzeroFloat64)}
	for _, c := range callers(r) {
		if v := m.of(c.Run); v != nil {
			p.full = max(p.full, *v)
		}
	}
	for _, c := range callers(r) {
		b := bar{Name: c.Name, Cell: m.cell(r, c.Run)}
		if v := m.of(c.Run); v != nil {
			b.Width = 100 * *v / p.full
		} else if c.Run != nil {
			b.Width, b.Open = 100, true
		}
		p.Bars = append(p.Bars, b)
	}
	return p
}

// lengthOf returns how many seconds the phase of that name lasts.
func lengthOf(r *drill.Result, phase string) float64 {
	for _, p := range r.Settings.Phases {
		if p.Name == phase {
			return p.End - p.Start
		}
	}
	return 0
}

func stepName(r *drill.Result) string {
	if r.Settings.Overload > 1 {
		return "overload"
	}
	return r.Settings.StepName()
}

func service(s drill.Settings) string {
	if s.ServiceMS == 0 {
		return s.Backend + " backend"
	}
	return strings.TrimSpace(s.Backend + " service time " + asSet(s.ServiceMS, nbsp+"ms"))
}

// facts returns the settings and the environment of the drill, one fact each.
func facts(r *drill.Result) []string {
	capacity := "capacity not measured"
	if r.CapacityRPS > 0 {
		capacity = "capacity " + perSecond(r.CapacityRPS) + " measured" + r.Drift()
	}
	s, m := r.Settings, r.Machine
	return []string{
		fmt.Sprintf("%s %s capacity for %s", stepName(r), asSet(s.Overload, "×"), asSet(lengthOf(r, drill.PhaseStep), nbsp+"s")),
		capacity,
		"deadline " + asSet(s.DeadlineMS, nbsp+"ms"),
		service(s),
		fmt.Sprintf("seed %d", s.Seed),
		fmt.Sprintf("%s/%s, %d CPUs (%d for the caller, 1 for the backend)", m.OS, m.Arch, m.CPUs, m.CallerCPUs),
		m.GoVersion,
	}
}
