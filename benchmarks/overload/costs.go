package main

import (
	"fmt"
	"io"
	"slices"
	"strings"
)

const costsLegend = `
What a rejection costs: processor time of the server when it rejects every call, beside that of a call that it serves with
nothing before the handler. Record layer: what TLS adds to a rejection by net/http alone. Line: 1 - (load-1) · rejection / call,
which is the goodput if nothing else is lost.
`

// writeCosts writes a table of the rows whose rejections were measured.
func (r *Result) writeCosts(w io.Writer) {
	cells := [][]string{{"wire", "front", "rejection µs", "record layer µs", "call µs", "load", "line %", "measured %", "apart"}}
	rows := slices.Clone(r.Rows)
	slices.SortStableFunc(rows, func(a, b Row) int { return slices.Index(wireNames(), a.Wire) - slices.Index(wireNames(), b.Wire) })
	for i := range rows {
		if row := &rows[i]; row.RejectionUS != nil {
			cells = append(cells, r.cost(row))
		}
	}
	if len(cells) == 1 {
		return
	}
	fmt.Fprintf(w, "%s\n", costsLegend)
	writeCells(w, cells)
}

func (r *Result) cost(row *Row) []string {
	cells := []string{row.Wire, row.Front, fmt.Sprintf("%.1f", *row.RejectionUS), r.recordLayer(row.Wire), fmt.Sprintf("%.0f", row.CallUS)}
	step, ok := row.highest()
	if !ok || step.Load <= 1 || row.Front == frontNone || row.CallUS <= 0 {
		return append(cells, "", "", "", "")
	}
	line := row.line(step.Load)
	return append(cells, fmt.Sprintf("%g C", step.Load), fmt.Sprintf("%.1f", 100*line), fmt.Sprintf("%.1f", 100*step.GoodputRatio),
		fmt.Sprintf("%+.1f", 100*(step.GoodputRatio-line)))
}

// recordLayer says what TLS adds to a rejection by net/http alone; nothing where that was
// not measured both with and without TLS.
func (r *Result) recordLayer(name string) string {
	plain, over := strings.CutPrefix(name, "tls-")
	with, without := r.bare(name), r.bare(plain)
	if !over || with == nil || without == nil {
		return ""
	}
	return fmt.Sprintf("%.1f", *with-*without)
}

// bare returns what a rejection by net/http alone costs on a wire.
func (r *Result) bare(wire string) *float64 {
	for i := range r.Rows {
		if r.Rows[i].Wire == wire && r.Rows[i].Front == frontNone && r.Rows[i].RejectionUS != nil {
			return r.Rows[i].RejectionUS
		}
	}
	return nil
}
