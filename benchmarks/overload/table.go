package main

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"unicode/utf8"
)

const legend = `Cells: answered in time, in % of the capacity of the server with nothing before it (p50/p99 of these answers in ms;
rejected/lost, in % of what was offered: a reset connection is a rejection, and lost calls were neither answered in time
nor rejected). Reaction: from a sudden step to the highest load until each second had half of the capacity or more.
Recovery: from the end of the last overload until 95 % of all calls were answered in time again.
`

// writeTables writes a table for each kind of server, in Markdown that can be
// read as it is.
func (r *Result) writeTables(w io.Writer) error {
	var b strings.Builder
	b.WriteString(legend)
	for _, t := range r.tables() {
		t.write(&b)
	}
	r.writeClasses(&b)
	r.writeCosts(&b)
	_, err := io.WriteString(w, b.String())
	return err
}

// A table has the rows of one kind of server.
type table struct {
	rows  []Row // never empty
	loads []float64
}

// A kind is what the rows of a table have in common.
type kind struct {
	backend, wire string
	procs         int
	slowAcceptMS  float64
}

func (r *Row) kind() kind { return kind{r.Backend, r.Wire, r.Procs, r.SlowAcceptMS} }

// tables sorts the rows into tables, which stand in the order of their first rows.
func (r *Result) tables() []*table {
	var all []*table
	for _, row := range r.Rows {
		same := func(t *table) bool { return t.rows[0].kind() == row.kind() }
		i := slices.IndexFunc(all, same)
		if i < 0 {
			i, all = len(all), append(all, &table{})
		}
		all[i].add(row)
	}
	return all
}

func (t *table) add(row Row) {
	t.rows = append(t.rows, row)
	names := frontNames()
	slices.SortStableFunc(t.rows, func(a, b Row) int { return slices.Index(names, a.Front) - slices.Index(names, b.Front) })
	for i := range row.Steps {
		t.loads = append(t.loads, row.Steps[i].Load)
	}
	slices.Sort(t.loads)
	t.loads = slices.Compact(t.loads)
}

func (t *table) write(w io.Writer) {
	fmt.Fprintf(w, "\n%s\n\n", t.title())
	header := []string{""}
	for _, load := range t.loads {
		header = append(header, fmt.Sprintf("%g C", load))
	}
	cells := [][]string{append(header, "reaction", "recovery")}
	for i := range t.rows {
		cells = append(cells, t.cells(&t.rows[i]))
	}
	writeCells(w, cells)
	for _, note := range t.notes() {
		fmt.Fprintf(w, "\n%s\n", note)
	}
}

func (t *table) title() string {
	first := t.rows[0]
	w, _ := wireNamed(first.Wire)
	processors := "one processor"
	if first.Procs > 1 {
		processors = fmt.Sprintf("%d processors", first.Procs)
	}
	accept := ""
	if first.SlowAcceptMS > 0 {
		accept = fmt.Sprintf(", %g ms before each connection is accepted", first.SlowAcceptMS)
	}
	return fmt.Sprintf("**%s**, %s%s: a call %s; %s, C = %s, deadline %g ms", first.Backend, w.about, accept, words(first.Backend),
		processors, t.capacity(), first.DeadlineMS)
}

// capacity is a range if the rows are of several runs.
func (t *table) capacity() string {
	low, high := t.rows[0].CapacityRPS, t.rows[0].CapacityRPS
	for i := range t.rows {
		low, high = min(low, t.rows[i].CapacityRPS), max(high, t.rows[i].CapacityRPS)
	}
	if from, to := fmt.Sprintf("%.0f", low), fmt.Sprintf("%.0f", high); from != to {
		return from + " to " + to + "/s"
	}
	return fmt.Sprintf("%.0f/s", low)
}

func (t *table) cells(r *Row) []string {
	cells := []string{r.Front}
	for _, load := range t.loads {
		i := slices.IndexFunc(r.Steps, func(s Step) bool { return s.Load == load })
		if i < 0 {
			cells = append(cells, "")
			continue
		}
		cells = append(cells, cell(&r.Steps[i]))
	}
	return append(cells, after(r.ReactionS, r.ReactionWithin), after(r.RecoveryS, r.RecoveryWithin))
}

func cell(s *Step) string {
	offered := float64(max(1, s.Offered))
	rejections := s.Rejected + s.Reset
	return fmt.Sprintf("%.1f (%s/%s; %.0f/%.0f)", 100*s.GoodputRatio, latency(s.P50MS), latency(s.P99MS),
		100*float64(rejections)/offered, 100*float64(s.Offered-s.Good-rejections)/offered)
}

func latency(ms *float64) string {
	switch {
	case ms == nil:
		return "-"
	case *ms < 10:
		return fmt.Sprintf("%.1f", *ms)
	}
	return fmt.Sprintf("%.0f", *ms)
}

// after says how long something took, or that it did not come within so long.
func after(took *float64, within float64) string {
	switch {
	case took != nil:
		return fmt.Sprintf("%.2g s", *took)
	case within == 0:
		return ""
	}
	return fmt.Sprintf("> %.2g s", within)
}

// lateSends and busy are from where on a figure may be that of the machine.
const (
	lateSends = 5 // ms
	busy      = 0.15
)

// notes says what to know before the table is believed.
func (t *table) notes() []string {
	var notes []string
	for i := range t.rows {
		r := &t.rows[i]
		if r.WholeMachine != "" {
			notes = append(notes, fmt.Sprintf("%s read the CPU use of the whole machine, callers included: there is no container (%s).", r.Front, r.WholeMachine))
		}
		if r.LatenessP99MS > lateSends {
			notes = append(notes, fmt.Sprintf("%s: the p99 of the sends was %.1f ms late.", r.Front, r.LatenessP99MS))
		}
		if r.CPUPressure != nil && *r.CPUPressure > busy {
			notes = append(notes, fmt.Sprintf("%s: threads of this machine lacked a processor for %.0f %% of the time.", r.Front, 100**r.CPUPressure))
		}
	}
	return notes
}

// writeCells writes a Markdown table whose first row is its header.
func writeCells(w io.Writer, cells [][]string) {
	widths := make([]int, len(cells[0]))
	for _, row := range cells {
		for i, cell := range row {
			widths[i] = max(widths[i], utf8.RuneCountInString(cell))
		}
	}
	rule := make([]string, len(widths))
	for i, width := range widths {
		rule[i] = strings.Repeat("-", width)
	}
	for _, row := range slices.Insert(cells, 1, rule) {
		for i, cell := range row {
			fmt.Fprintf(w, "| %-*s ", widths[i], cell)
		}
		fmt.Fprint(w, "|\n")
	}
}
