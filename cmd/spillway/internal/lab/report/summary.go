package report

import (
	"fmt"

	"github.com/seed90641741/spillway/cmd/spillway/internal/lab/drill"
)

// A measure is one figure of a run: its place in the result and its format.
type measure struct {
	name  string
	about string // one line under the name
	fate  string // CSS class of the colour that the charts give it
	// value returns nil where nothing was measured, and missing says why.
	value   func(*drill.Run) *float64
	missing func(*drill.Result, *drill.Run) string
	text    func(float64) string
	notes   func(*drill.Run) []note
	change  func(without, with float64) string
}

// A row is a measure of both runs, in words.
type row struct {
	Name, About, Fate string
	Without, With     cell
	Change            string
}

// A cell is one number, as in the result and formatted.
type cell struct {
	Value string // as in the JSON; "null" where nothing was measured
	Text  string
	Notes []note
}

// A note is a lesser number that belongs to a cell.
type note struct{ Before, Value, Text, After string }

func noteOf(before string, v int, after string) note {
	return note{before, plain(float64(v)), count(float64(v)), after}
}

func some(field func(*drill.Run) float64) func(*drill.Run) *float64 {
	return func(r *drill.Run) *float64 { v := field(r); return &v }
}

// fate returns the measure that counts the calls with one end.
func fate(class, name, about string, field func(*drill.Counts) int) measure {
	return measure{
		name: name, about: about, fate: class,
		value:  some(func(r *drill.Run) float64 { return float64(field(&r.Counts)) }),
		text:   count,
		change: difference(count),
	}
}

// felt returns the measures of the callers' experience during and after the overload.
func felt() []measure {
	return []measure{
		{
			name: "Goodput", about: "useful answers", fate: "goodput", text: perSecond, change: ratio,
			value: some(func(r *drill.Run) float64 { return r.GoodputRPS }),
			notes: func(r *drill.Run) []note { return []note{noteOf("", r.Goodput, ""), noteOf("of", r.Offered, "")} },
		},
		{
			name: "Share of capacity", about: "goodput over capacity", text: percent, change: difference(points),
			value: capacityShare, missing: because("capacity not measured"),
		},
		{
			name: "Latency p50", about: "of answers in time", text: millis, change: ratio, notes: samples,
			value: func(r *drill.Run) *float64 { return r.P50MS }, missing: because("no answer in time"),
		},
		{
			name: "Latency p99", about: "of answers in time", text: millis, change: ratio, notes: samples,
			value: func(r *drill.Run) *float64 { return r.P99MS }, missing: because("too few"),
		},
		{
			name: "Attempts per call", about: "of calls that were sent", text: times, change: ratio,
			value: some(func(r *drill.Run) float64 { return r.AttemptsPerCall }),
			notes: func(r *drill.Run) []note { return []note{noteOf("", r.Attempts, "attempts")} },
		},
		{
			name: "Recovery", about: "after it", text: seconds, change: difference(seconds),
			value: func(r *drill.Run) *float64 { return r.RecoverS }, missing: notRecovered,
		},
	}
}

// ends returns the outcomes of calls that do not count as goodput.
func ends() []measure {
	local := fate("refused-throttle", "Rejected locally", "by Spillway, never sent",
		func(c *drill.Counts) int { return c.RejectedLocal })
	local.notes = policies
	return []measure{
		local,
		fate("refused-backend", "Rejected remotely", "last answer 503 or 429",
			func(c *drill.Counts) int { return c.RejectedByBackend }),
		fate("late", "Late", "answered after the deadline", func(c *drill.Counts) int { return c.Late }),
		fate("timed-out", "Timed out", "no answer in time", func(c *drill.Counts) int { return c.TimedOut }),
		fate("failed", "Failed", "connection errors, other statuses", func(c *drill.Counts) int { return c.Failed }),
		fate("dropped", "Dropped sends", "by the load generator", func(c *drill.Counts) int { return c.DroppedSends }),
		fate("unfinished", "Unfinished", "cut short by the interruption", func(c *drill.Counts) int { return c.Unfinished }),
	}
}

func capacityShare(r *drill.Run) *float64 {
	if r.GoodputRatio == 0 && r.GoodputRPS > 0 {
		return nil
	}
	return &r.GoodputRatio
}

func samples(r *drill.Run) []note { return []note{noteOf("n =", r.Samples, "")} }

func policies(r *drill.Run) []note {
	return []note{noteOf("throttle", r.RejectedThrottle, ""), noteOf("in flight", r.RejectedInflight, "")}
}

func because(why string) func(*drill.Result, *drill.Run) string {
	return func(*drill.Result, *drill.Run) string { return why }
}

// notRecovered says how long the service was watched without recovering.
func notRecovered(r *drill.Result, run *drill.Run) string {
	if end := len(r.Settings.Phases) - 1; end < 0 || run.Seconds < r.Settings.Phases[end].End {
		return "not seen"
	}
	return "not within " + asSet(lengthOf(r, drill.PhaseRecovery), nbsp+"s")
}

// summary returns a row for each measure; calls are unfinished only in a drill
// that was interrupted.
func summary(r *drill.Result) []row {
	var rows []row
	for _, m := range append(felt(), ends()...) {
		if m.fate != "unfinished" || r.Interrupted {
			rows = append(rows, m.row(r))
		}
	}
	return rows
}

func (m measure) row(r *drill.Result) row {
	return row{
		Name: m.name, About: m.about, Fate: m.fate,
		Without: m.cell(r, r.Without), With: m.cell(r, r.With),
		Change: m.changed(r.Without, r.With),
	}
}

func (m measure) cell(r *drill.Result, run *drill.Run) cell {
	if run == nil {
		return cell{Value: "null", Text: none}
	}
	c := cell{Value: "null"}
	if v := m.value(run); v != nil {
		c.Value, c.Text = plain(*v), m.text(*v)
	} else {
		c.Text = m.missing(r, run)
	}
	if m.notes != nil {
		c.Notes = m.notes(run)
	}
	return c
}

func (m measure) changed(without, with *drill.Run) string {
	if without == nil || with == nil {
		return ""
	}
	a, b := m.value(without), m.value(with)
	if a == nil || b == nil {
		return ""
	}
	return m.change(*a, *b)
}

// A phaseTable counts the calls of each phase by outcome. It shows what protection costs
// without overload.
type phaseTable struct {
	Phases []string
	Rows   []phaseRow
}

// A phaseRow has two cells for each phase: without, with.
type phaseRow struct {
	Name, Fate string
	Cells      []cell
}

func phases(r *drill.Result) phaseTable {
	var t phaseTable
	for _, p := range r.Settings.Phases {
		t.Phases = append(t.Phases, fmt.Sprintf("%s, %s capacity", p.Name, asSet(p.Load, "×")))
	}
	for _, m := range phaseMeasures() {
		row := phaseRow{Name: m.name, Fate: m.fate}
		for _, p := range r.Settings.Phases {
			row.Cells = append(row.Cells, m.cell(r, phaseOf(r.Without, p.Name)), m.cell(r, phaseOf(r.With, p.Name)))
		}
		t.Rows = append(t.Rows, row)
	}
	return t
}

// phaseMeasures returns the counts: offered calls, calls by outcome, and attempts sent.
func phaseMeasures() []measure {
	ms := []measure{
		fate("", "Offered", "", func(c *drill.Counts) int { return c.Offered }),
		fate("goodput", "Goodput", "", func(c *drill.Counts) int { return c.Goodput }),
	}
	ms = append(ms, ends()...)
	return append(ms,
		fate("", "Attempts", "", func(c *drill.Counts) int { return c.Attempts }),
		fate("", "Retries", "", func(c *drill.Counts) int { return c.Retries }))
}

// phaseOf returns a run with only the counts of one phase of r.
func phaseOf(r *drill.Run, phase string) *drill.Run {
	if r == nil {
		return nil
	}
	for _, p := range r.Phases {
		if p.Name == phase {
			return &drill.Run{Counts: p.Counts}
		}
	}
	return nil
}
