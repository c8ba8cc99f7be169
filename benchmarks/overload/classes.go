package main

import (
	"fmt"
	"io"
	"time"

	"github.com/seed90641741/spillway"
)

// A ClassStep counts the calls of one class in a [Step].
type ClassStep struct {
	Class   string `json:"class"`
	Offered int    `json:"offered"`
	Good    int    `json:"good"`
	// P50MS and P99MS are of the answers in time; the second of 1,000 or more.
	P50MS *float64 `json:"p50_ms"`
	P99MS *float64 `json:"p99_ms"`
}

// byClass counts calls by their class, the most critical first.
func byClass(calls []call) (classes []ClassStep) {
	for class := spillway.CriticalPlus; class >= spillway.Sheddable; class-- {
		c := ClassStep{Class: class.String()}
		var latencies []time.Duration
		for i := range calls {
			if calls[i].class != class {
				continue
			}
			c.Offered++
			if calls[i].outcome == good {
				c.Good++
				latencies = append(latencies, calls[i].latency())
			}
		}
		c.P50MS, c.P99MS = middleAndTail(latencies)
		classes = append(classes, c)
	}
	return classes
}

const classesLegend = `
Overload by class, a quarter of the calls each: answered in time, in % of the calls of that class that were offered (p50/p99 of these
answers in ms). With four equal classes, CRITICAL is just at the edge of what can be served at 2 C. The p99 is of 1,000 answers or
more: at 2 C choose --step=5s.
`

// writeClasses writes a table of the overloads of the rows whose front reads the class of a call.
func (r *Result) writeClasses(w io.Writer) {
	cells := [][]string{{"wire", "backend", "front", "load"}}
	for _, c := range byClass(nil) {
		cells[0] = append(cells[0], c.Class)
	}
	for i := range r.Rows {
		row := &r.Rows[i]
		if f, _ := frontNamed(row.Front); !f.spillway {
			continue
		}
		for _, s := range row.Steps {
			if s.Load > 1 && len(s.Classes) > 0 {
				cells = append(cells, classCells(row, &s))
			}
		}
	}
	if len(cells) > 1 {
		fmt.Fprintf(w, "%s\n", classesLegend)
		writeCells(w, cells)
	}
}

func classCells(row *Row, s *Step) []string {
	cells := []string{row.Wire, row.Backend, row.Front, fmt.Sprintf("%g C", s.Load)}
	for _, c := range s.Classes {
		share := 100 * float64(c.Good) / float64(max(1, c.Offered))
		cells = append(cells, fmt.Sprintf("%.1f (%s/%s)", share, latency(c.P50MS), latency(c.P99MS)))
	}
	return cells
}
