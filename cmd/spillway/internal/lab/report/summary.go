package report

import (
	"slices"

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

// A row is a measure of some runs, in words.
type row struct {
	Name, About, Fate string
	Cells             []cell
	Change            string // from the first run to the second
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
	return func(r *drill.Run) *float64 { return new(field(r)) }
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
	local := fate("rejected-throttle", "Rejected locally", "by Spillway, never sent",
		func(c *drill.Counts) int { return c.RejectedLocal })
	local.notes = func(r *drill.Run) []note {
		return []note{noteOf("throttle", r.RejectedThrottle, ""), noteOf("in flight", r.RejectedInFlight, "")}
	}
	return []measure{
		local,
		fate("rejected-backend", "Rejected remotely", "last answer 503 or 429",
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
			row := m.row(r, r.Without, r.With)
			row.Change = m.changed(r.Without, r.With)
			rows = append(rows, row)
		}
	}
	return rows
}

// row returns a row with a cell for each run; nil is a run without numbers.
func (m measure) row(r *drill.Result, runs ...*drill.Run) row {
	row := row{Name: m.name, About: m.about, Fate: m.fate}
	for _, run := range runs {
		row.Cells = append(row.Cells, m.cell(r, run))
	}
	return row
}

// of returns the value of a run, and nil where there is no run or nothing was measured.
func (m measure) of(run *drill.Run) *float64 {
	if run == nil {
		return nil
	}
	return m.value(run)
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
	if a, b := m.of(without), m.of(with); a != nil && b != nil {
		return m.change(*a, *b)
	}
	return ""
}

// classes returns a row for each criticality, the highest first.
func classes(r *drill.Result) (rows []row) {
	if r.Without == nil {
		return nil
	}
	for _, c := range r.Without.Classes {
		m := fate("", c.Name, "", func(c *drill.Counts) int { return c.Goodput })
		m.notes = func(r *drill.Run) []note {
			return []note{noteOf("of", r.Offered, ""), noteOf("", r.Rejected(), "rejected")}
		}
		rows = append(rows, m.row(r, part(r.Without, c.Name), part(r.With, c.Name)))
	}
	return rows
}

// phases counts the calls of each phase by outcome, which shows what protection costs without
// overload. Each row has two cells for each phase: without, with.
func phases(r *drill.Result) (rows []row) {
	var runs []*drill.Run
	for _, p := range r.Settings.Phases {
		runs = append(runs, part(r.Without, p.Name), part(r.With, p.Name))
	}
	for _, m := range phaseMeasures() {
		rows = append(rows, m.row(r, runs...))
	}
	return rows
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

// part returns a run with only the counts of one phase or class of r, nil if there are none.
func part(r *drill.Run, name string) *drill.Run {
	if r != nil {
		for _, c := range slices.Concat(r.Phases, r.Classes) {
			if c.Name == name {
				return &drill.Run{Counts: c.Counts}
			}
		}
	}
	return nil
}
