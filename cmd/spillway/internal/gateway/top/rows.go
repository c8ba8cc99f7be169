package top

import (
	"cmp"
	"strings"

	"github.com/seed90641741/spillway/internal/admin/human"
)

// table returns the table of the worst processes, in at most so many rows, with the sums before them.
func (p *Page) table(wide, most int) []string {
	if len(p.Processes) == 0 {
		return nil
	}
	shown := p.Processes[:min(most, len(p.Processes))]
	t := newTable(wide, shown)
	if len(p.Processes) > 1 {
		t.sums(p)
	}
	spans := make(map[int]string)
	for i := range shown {
		x := &shown[i]
		if x.Problem != nil {
			spans[len(t.columns[0].cells)] = strings.TrimSpace(x.Problem.Text + ". " + x.Problem.Do + " " + x.Problem.Detail)
		}
		t.add(x)
	}
	all := lines(t.columns, spans, wide)
	if more := len(p.Processes) - len(shown); more > 0 {
		all = append(all, "and "+count(more)+" more")
	}
	return all
}

// A table has the columns of the processes.
type table struct {
	byName    bool // else by address
	mostLabel int

	columns []column // that of the processes is the first
}

// leastLabel is the least width for the name of a process: an IPv4 address with a port fits.
const leastLabel = 21

// newTable returns the table of some processes, without rows. Processes have their names if these tell them apart.
func newTable(wide int, shown []Process) *table {
	t := &table{byName: true, mostLabel: max(leastLabel, wide/4)}
	names := make(map[string]bool)
	for i := range shown {
		name := shown[i].Name
		t.byName = t.byName && (name == "" || !names[name])
		names[name] = true
	}
	other := "ADDRESS"
	if !t.byName {
		other = "NAME"
	}
	t.columns = []column{
		{head: "PROCESS", left: true}, {head: other, left: true, worth: 1}, {head: "MODE", left: true, worth: 2},
		{head: "OFFERED", worth: 8}, {head: "SERVED", worth: 7}, {head: "REJECTED", worth: 10}, {head: "LOST", worth: 9}, {head: "GONE", worth: 6},
		{head: "P99", worth: 5}, {head: "IN FLIGHT/LIMIT", worth: 4}, {head: "SAYS", left: true},
	}
	return t
}

// row adds a row.
func (t *table) row(cells ...string) {
	for i := range t.columns {
		t.columns[i].cells = append(t.columns[i].cells, cells[i])
	}
}

// sums adds the row of all processes.
func (t *table) sums(p *Page) {
	says := ""
	if p.Measured < p.Asked {
		says = "of " + count(p.Measured) + " processes"
	}
	cells := append([]string{"all " + count(p.Asked), "", ""}, rateCells(&p.Rates, p.Measured > 0)...)
	t.row(append(cells, "", "", says)...)
}

// rateCells returns the cells of the rates, if they are known.
func rateCells(r *Rates, known bool) []string {
	if !known {
		return []string{unknown, unknown, unknown, unknown, unknown}
	}
	rejected := human.PerSecond(r.Rejected.Sum())
	if r.Rejected.Sum() == 0 && r.Would.Sum() > 0 {
		rejected = "(" + human.PerSecond(r.Would.Sum()) + ")" // in observe mode
	}
	return []string{human.PerSecond(r.Offered), human.PerSecond(r.Served), rejected, human.PerSecond(r.Lost), human.PerSecond(r.Gone)}
}

// add adds the row of a process.
func (t *table) add(x *Process) {
	p99 := unknown
	if x.P99 != nil {
		p99 = human.Duration(*x.P99)
	}
	flight := human.Grouped(x.InFlight)
	if x.Limit != nil {
		flight += "/" + human.Grouped(*x.Limit)
	}
	label, other := x.Address, cmp.Or(x.Name, unknown)
	if t.byName && x.Name != "" {
		label, other = other, label
	}
	cells := append([]string{middle(label, t.mostLabel), other, cmp.Or(x.Mode, unknown)}, rateCells(&x.Rates, x.Seconds > 0)...)
	t.row(append(cells, p99, flight, x.says())...)
}

// says returns what the process says of itself, with the note about that.
func (x *Process) says() string {
	switch {
	case x.Note == "":
		return x.Headline
	case x.stale:
		return "Now: " + x.Note + ". Before: " + x.Headline
	}
	return strings.TrimSpace(x.Headline + " It was " + x.Note + ".")
}
