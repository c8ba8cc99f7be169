package decisions

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/seed90641741/spillway"
)

// columns are those of a terminal: longer lines of /debug/decisions are wrapped.
const columns = 100

// sampleRow is the first line of a sample. The customer is the last column, as it may be long.
const sampleRow = "%-23s  %-13s  %-11s  %-7s  %-14s  %s\n"

// writeDecisions writes samples as text, and what to do about each kind of them.
func (l *Log) writeDecisions(w io.Writer, all []Decision, seen uint64) {
	if len(all) > 0 {
		fmt.Fprintf(w, sampleRow, "TIME", "REASON", "POLICY", "MODE", "CLASS", "CUSTOMER")
	}
	for i := range all {
		all[i].write(w)
	}
	fmt.Fprintf(w, "%d samples; %d rejections since the start\n", len(all), seen)
	if len(all) == 0 && seen > 0 {
		text := "No sample matches: the request was not rejected here, or it has no sample."
		if l.library == nil {
			text += " The access log (log.access) has a line for each, up to lines_per_second."
		}
		wrap(w, "", text)
	}
	names, reasons := reasonsOf(all)
	for i, name := range names {
		if i == 0 {
			fmt.Fprintln(w, "\nWHAT TO DO, by policy, reason and setting")
		}
		what := reasons[name]
		fmt.Fprintln(w, name)
		wrap(w, "    do: ", what.Do)
		if len(what.Settings) > 0 {
			wrap(w, "    settings: ", strings.Join(what.Settings, ", "))
		}
		fmt.Fprintln(w, "    link: "+what.Link)
	}
}

// write writes a sample: a line with what it has in common with others, and indented lines with what
// is known of the request, under the names that the fields have in JSON.
func (d *Decision) write(w io.Writer) {
	fmt.Fprintf(w, sampleRow, d.Time.Format("2006-01-02 15:04:05.000"), d.Reason, d.Policy, d.Mode, d.Criticality, orDash(d.Customer))
	wrap(w, "    ", listed("listener", d.Listener, "cluster", d.Cluster, "route", d.Route, "path", d.Path))
	wrap(w, "    ", listed("request_id", d.RequestID, "trace_id", d.TraceID, "caller", d.Caller, "attempt", fmt.Sprint(d.Attempt)))
	if d.Unit != "" {
		setting := ""
		if d.Setting != "" {
			setting = "; setting: " + d.Setting
		}
		if d.Measured == nil {
			wrap(w, "    limit: ", fmt.Sprintf("%.4g %s", d.Limit, d.Unit)+setting)
		} else {
			wrap(w, "    measured: ", d.measured()+setting)
		}
	} else if d.Text != "" {
		wrap(w, "    error: ", d.Text)
	}
}

// listed returns names with their values, without the names that have none: "cluster web, route /".
func listed(namesAndValues ...string) string {
	var all []string
	for pair := range slices.Chunk(namesAndValues, 2) {
		if pair[1] != "" {
			all = append(all, pair[0]+" "+Clean(pair[1]))
		}
	}
	return strings.Join(all, ", ")
}

// wrap writes a text in lines of at most columns runes, if its words are not longer. The first line
// begins with head, and the others with as many spaces as head does, plus two.
func wrap(w io.Writer, head, text string) {
	indent := strings.Repeat(" ", len(head)-len(strings.TrimLeft(head, " "))+2)
	line, used := head, utf8.RuneCountInString(head)
	for i, word := range strings.Fields(text) {
		n := utf8.RuneCountInString(word)
		switch {
		case i == 0:
		case used+1+n > columns:
			fmt.Fprintln(w, line)
			line, used = indent, len(indent)
		default:
			line, used = line+" ", used+1
		}
		line, used = line+word, used+n
	}
	fmt.Fprintln(w, line)
}

// measured returns what the policy has measured, which is not nil, and what it was compared with.
func (d *Decision) measured() string {
	switch {
	case d.Limit == 0: // it has none
		return fmt.Sprintf("%.4g %s", *d.Measured, d.Unit)
	case d.Reason == spillway.ReasonMaxWait.String() && strings.HasPrefix(d.Unit, "ms"):
		waited := "waited"
		if d.Mode == spillway.ModeObserve.String() {
			waited = "would have waited"
		}
		return fmt.Sprintf("%s %.4g ms, and may wait for %.4g ms", waited, *d.Measured, d.Limit)
	default:
		return fmt.Sprintf("%.4g of %.4g %s", *d.Measured, d.Limit, d.Unit)
	}
}
