package decisions

import (
	"cmp"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/seed90641741/spillway/internal/admin/textpage"
)

const (
	usualShown = 100  // samples, and
	mostShown  = 2000 // that can be asked for: more than there are
	usualTop   = 10   // rows of each top list, and
	mostTop    = 100  // that can be asked for

	mostSettings = 8 // fields of the configuration for a reason
)

// A samplesPage is the JSON of /debug/decisions.
type samplesPage struct {
	// Seen is how many rejections there were since the start for the reason that was asked for,
	// with and without a sample.
	Seen      uint64             `json:"seen"`
	Decisions []Decision         `json:"decisions"` // the latest first
	Reasons   map[string]whatNow `json:"reasons"`   // of the decisions, by policy, reason and setting: what to do
}

type whatNow struct {
	Do       string   `json:"do"`
	Settings []string `json:"settings"` // of the clusters, listeners and routes of the decisions
	Link     string   `json:"link"`
}

// ServeSamples writes samples of rejections that match, the latest first.
func (l *Log) ServeSamples(w http.ResponseWriter, r *http.Request) {
	n, asJSON, wrongShape := shape(r, usualShown, mostShown)
	f, wrongFilter := newFilter(r.URL.Query(), "n", "format")
	if err := cmp.Or(wrongShape, wrongFilter); err != nil {
		textpage.Serve(w, http.StatusBadRequest, err.Error()+"\n")
		return
	}
	all, seen := l.Read(f, n)
	if !asJSON {
		var text strings.Builder
		l.writeDecisions(&text, all, seen)
		textpage.Serve(w, http.StatusOK, text.String())
		return
	}
	_, reasons := reasonsOf(all)
	textpage.ServeJSON(w, samplesPage{Seen: seen, Decisions: append([]Decision{}, all...), Reasons: reasons})
}

// reasonsOf returns what to do about decisions by policy, reason and setting, and the names in the order of
// the decisions.
func reasonsOf(all []Decision) (names []string, reasons map[string]whatNow) {
	reasons = make(map[string]whatNow)
	for i := range all {
		e, name := all[i].Entry(), all[i].kind()
		if _, known := reasons[name]; !known {
			names = append(names, name)
		}
		fields := reasons[name].Settings
		for _, field := range all[i].Settings() {
			if !slices.Contains(fields, field) && len(fields) < mostSettings {
				fields = append(fields, field)
			}
		}
		reasons[name] = whatNow{e.Do, fields, e.Link()}
	}
	return names, reasons
}

// kind names the decisions with the same advice, by policy, reason and setting: "quota quota capacity".
func (d *Decision) kind() string {
	return strings.TrimSuffix(d.Policy+" "+d.Reason+" "+d.limitedBy(), " ")
}

// shape returns how many rows a request asks for, and whether as JSON.
func shape(r *http.Request, usual, most int) (n int, asJSON bool, err error) {
	query := r.URL.Query()
	n = usual
	if text := query.Get("n"); text != "" {
		if n, err = strconv.Atoi(text); err != nil || n < 1 || n > most {
			return 0, false, fmt.Errorf("n must be 1 to %d", most)
		}
	}
	switch format := query.Get("format"); format {
	case "", "text":
		return n, false, nil
	case "json":
		return n, true, nil
	default:
		return 0, false, fmt.Errorf("format is %.40q, must be text or json", format)
	}
}

// ServeTop writes the top lists of rejections.
func (l *Log) ServeTop(w http.ResponseWriter, r *http.Request) {
	n, asJSON, err := shape(r, usualTop, mostTop)
	if err != nil {
		textpage.Serve(w, http.StatusBadRequest, err.Error()+"\n")
		return
	}
	all := l.Top(time.Now(), n)
	if asJSON {
		textpage.ServeJSON(w, all)
		return
	}
	textpage.Serve(w, http.StatusOK, textpage.Aligned(func(w io.Writer) { l.writeTop(w, &all) }))
}

func (l *Log) writeTop(w io.Writer, all *Tops) {
	route, explained, routes := "ROUTE (CLUSTER)", topExplained, routeText
	if l.library != nil {
		route, explained, routes = "ROUTE", libraryTopExplained, orDash
	}
	for _, list := range []struct {
		name string
		Top
		text func(key string) string
	}{{route, all.Routes, routes}, {"CUSTOMER", all.Customers, customerText}, {"CALLER", all.Callers, orDash}} {
		textpage.Row(w, list.name, "REASON", "CLASS", "MODE", "REJECTED")
		for _, r := range list.Rows {
			textpage.Row(w, list.text(r.Name), r.Reason, r.Criticality, r.Mode, r.Count)
		}
		textpage.Row(w, fmt.Sprintf("all others: %d. %s", list.Others, exactness(list.Error)))
		textpage.Row(w)
	}
	fmt.Fprintln(w, explained+"REJECTED: in the last 5 to 10 minutes. In the MODE observe the requests were let through.")
}

// exactness says how far counts may be from the truth.
func exactness(missing uint64) string {
	if missing == 0 {
		return "The counts are exact."
	}
	return fmt.Sprintf("There are too many names to count them all: a count may be %d too low, and is never too high.", missing)
}

// routeText returns the route of a name as the samples have it, and its cluster.
func routeText(name string) string {
	cluster, route := Split(name)
	return fmt.Sprintf("%s (%s)", Clean(route), Clean(cluster))
}

// NoCustomer stands for requests without a customer on pages for people.
const NoCustomer = "(no customer)"

func customerText(name string) string { return NameOf(name, NoCustomer) }

func orDash(text string) string { return cmp.Or(Clean(text), "–") }
