package main

import (
	"fmt"
	"io"
	"math"

	"github.com/seed90641741/spillway/shed"
)

// ablate prints the change that each variant of ours makes to the mean of the table
// and to each row that moves by more than 2 points. More than 5 points are marked.
func ablate(w io.Writer, list []*Scenario, s seeds, known *cache) {
	vs := append([]variant{{"ours", newOurs(shed.Config{})}}, variants()...)
	rows := evaluate(list, vs, s, known)
	base, _, _ := summary(rows, 0)
	fmt.Fprintf(w, "%-24s mean %.1f\n", "ours", base)
	for i := 1; i < len(vs); i++ {
		mean, _, _ := summary(rows, i)
		fmt.Fprintf(w, "%-24s mean %.1f (%+.1f)%s\n", vs[i].name, mean, mean-base, moved(rows, i))
	}
}

// moved lists the rows that the i-th variant changes.
func moved(rows []*row, i int) (list string) {
	for _, r := range rows {
		by := min(100, r.scores[i].Percent) - min(100, r.scores[0].Percent)
		rejected := r.scores[i].False - r.scores[0].False
		mark := ""
		if math.Abs(by) > 5 {
			mark = " !"
		}
		switch {
		case math.Abs(by) > 2:
			list += fmt.Sprintf("; %s %+.1f%s", r.Name, by, mark)
		case math.Abs(rejected) > 2:
			list += fmt.Sprintf("; %s rejects %+.1f", r.Name, rejected)
		}
	}
	return list
}
