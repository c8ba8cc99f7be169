package main

import (
	"fmt"
	"io"
	"math"
	"strconv"

	"github.com/seed90641741/spillway"
)

// printTable prints a line for each scenario and the means at the end.
func printTable(w io.Writer, rows []*row, vs []variant, s seeds) {
	fmt.Fprintf(w, "%-28s %-17s", "", "oracle")
	for _, v := range vs {
		fmt.Fprintf(w, "  %-22s", v.name)
	}
	fmt.Fprintf(w, "\n%-28s %6s@%-5s %4s", "scenario", "good", "limit", "p99")
	for range vs {
		fmt.Fprintf(w, "  %5s %5s %6s %3s", "good%", "rej%", "p99ms", "5s")
	}
	fmt.Fprintln(w)
	for _, r := range rows {
		fmt.Fprintf(w, "%-28s %6d@%-5s %4.0f", r.Name, r.oracle.Good/int(s.n), limitName(r.oracle.Limit), r.oracle.P99)
		for _, x := range r.scores {
			fmt.Fprintf(w, "  %5.1f %5.1f %6.0f %3.0f", x.Percent, x.False, x.P99, x.Worst)
		}
		fmt.Fprintln(w)
	}
	fmt.Fprintf(w, "%-46s", "mean, least good, most rejected")
	for i := range vs {
		mean, least, most := summary(rows, i)
		fmt.Fprintf(w, "  %5.1f %5.1f %6.1f    ", mean, least, most)
	}
	fmt.Fprintf(w, "\n%-46s", "rows below 95% good, above 1% rejected")
	for i := range vs {
		fmt.Fprintf(w, "  %5d %5d %6s    ", below(rows, i, 95), above(rows, i, 1), "")
	}
	fmt.Fprintf(w, "\n%-46s", "rejected where none need be, worst 5 s in mean")
	for i := range vs {
		fmt.Fprintf(w, "  %5s %5.2f %6.1f    ", "", falseMean(rows, i), worstMean(rows, i))
	}
	fmt.Fprintln(w)
}

// falseMean returns the mean share of rejections in the rows in which none is needed.
func falseMean(rows []*row, i int) float64 {
	sum, n := 0.0, 0.0
	for _, r := range rows {
		if r.free {
			sum += r.scores[i].False
			n++
		}
	}
	return sum / max(n, 1)
}

// worstMean returns the mean over the rows of the worst five seconds of each.
func worstMean(rows []*row, i int) float64 {
	sum := 0.0
	for _, r := range rows {
		sum += r.scores[i].Worst
	}
	return sum / float64(len(rows))
}

// below counts rows with a smaller share of the oracle.
func below(rows []*row, i int, percent float64) (n int) {
	for _, r := range rows {
		if r.scores[i].Percent < percent {
			n++
		}
	}
	return n
}

// above counts rows with more false rejections, of those for which the oracle has no
// limit.
func above(rows []*row, i int, percent float64) (n int) {
	for _, r := range rows {
		if r.oracle.Limit == unlimited && r.scores[i].False > percent {
			n++
		}
	}
	return n
}

func limitName(limit int) string {
	if limit == unlimited {
		return "none"
	}
	return strconv.Itoa(limit)
}

// summary returns the mean and the least share of the oracle, and the most false
// rejections, of the i-th algorithm. More than the oracle counts as the oracle.
func summary(rows []*row, i int) (mean, least, most float64) {
	least = math.Inf(1)
	for _, r := range rows {
		mean += min(100, r.scores[i].Percent) / float64(len(rows))
		least = min(least, r.scores[i].Percent)
		most = max(most, r.scores[i].False)
	}
	return mean, least, most
}

// printAbout prints the description of each scenario.
func printAbout(w io.Writer, rows []*row) {
	fmt.Fprintln(w)
	for _, r := range rows {
		fmt.Fprintf(w, "%-10s %s\n", r.Name, r.About)
	}
}

// printScenarios prints the name and the load of each scenario, and whether any rejection is needed.
func printScenarios(w io.Writer, all []*Scenario) error {
	for _, sc := range all {
		needed := "no rejection is needed"
		if sc.Overload {
			needed = "overload"
		}
		if _, err := fmt.Fprintf(w, "%-28s %s (%s)\n", sc.Name, sc.About, needed); err != nil {
			return err
		}
	}
	return nil
}

// printKeys prints offered/good/rejected requests by key and by criticality.
func printKeys(w io.Writer, rows []*row, vs []variant) {
	for _, r := range rows {
		for i, v := range vs {
			fmt.Fprintf(w, "\n%s, %s:\n", r.Name, v.name)
			for k, t := range r.scores[i].Keys {
				printTally(w, fmt.Sprint("key ", k), t)
			}
			for c, t := range r.scores[i].Classes {
				printTally(w, (spillway.Sheddable + spillway.Criticality(c)).String(), t)
			}
		}
	}
}

func printTally(w io.Writer, name string, t Tally) {
	if t.Offered > 0 {
		fmt.Fprintf(w, "  %-14s offered %7d  good %7d (%5.1f%%)  rejected %7d (%5.1f%%)\n", name,
			t.Offered, t.Good, t.percent(t.Good), t.Rejected, t.percent(t.Rejected))
	}
}
