package main

import (
	"fmt"
	"io"
)

// An explainer exposes the numbers behind its decisions.
type explainer interface{ Explain() []level }

type level struct {
	name  string
	value float64
}

// explained returns the levels of the algorithm, if it has any.
func (p *Process) explained() []level {
	if e, ok := p.algorithm.(explainer); ok {
		return e.Explain()
	}
	return nil
}

// trace prints a line for each interval of a scenario, for each algorithm.
func trace(w io.Writer, o options, list []*Scenario, vs []variant) error {
	list = prefixed(list, o.trace)
	if len(list) == 0 {
		return fmt.Errorf("no scenario starts with %q", o.trace)
	}
	for _, v := range vs {
		fmt.Fprintf(w, "%s, %s, seed %d\n", list[0].Name, v.name, o.seeds.from+1)
		traced := *list[0]
		traced.Fill = func(p *Process) {
			list[0].Fill(p)
			p.each(o.every, func() { p.explain(w) })
		}
		r := simulate(&traced, o.seeds.from+1, v.maker)
		fmt.Fprintf(w, "offered %d, good %d, rejected %d, late %d, left %d\n", r.Offered, r.Good, r.Rejected, r.Late, r.Left)
	}
	return nil
}

// each calls f at intervals until the end of the run.
func (p *Process) each(interval Time, f func()) {
	var again func(at Time)
	again = func(at Time) {
		f()
		if at += interval; at < p.end {
			p.at(at, again)
		}
	}
	p.at(interval, again)
}

// explain prints the counts so far and the levels of the algorithm.
func (p *Process) explain(w io.Writer) {
	r := &p.result
	fmt.Fprintf(w, "%8.3f offered %d good %d rejected %d", p.now.Seconds(), r.Offered, r.Good, r.Rejected)
	for _, l := range p.explained() {
		fmt.Fprintf(w, "  %s %.4g", l.name, l.value)
	}
	fmt.Fprintln(w)
}
