package decisions

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"text/tabwriter"
	"time"

	"github.com/seed90641741/spillway/cmd/spillway/internal/gateway/runbook"
)

const (
	usualShown = 100  // samples, and
	mostShown  = 2000 // that can be asked for: more than there are
	usualTop   = 10   // rows of each top list, and
	mostTop    = 100  // that can be asked for
)

// A samplesPage is the JSON of /debug/decisions.
type samplesPage struct {
	// Seen is how many rejections there were since the start for the reason that was asked for,
	// with and without a sample.
	Seen      uint64             `json:"seen"`
	Decisions []Decision         `json:"decisions"` // the latest first
	Reasons   map[string]whatNow `json:"reasons"`   // of the decisions: what to do
}

type whatNow struct {
	Do      string `json:"do"`
	Setting string `json:"setting"`
	Link    string `json:"link"`
}

// ServeSamples writes samples of rejections that match, the latest first.
func (l *Log) ServeSamples(w http.ResponseWriter, r *http.Request) {
	n, asJSON, err := shape(r, usualShown, mostShown)
	if err != nil {
		plainText(w, http.StatusBadRequest, err.Error()+"\n")
		return
	}
	f, err := NewFilter(r.URL.Query(), "n", "format")
	if err != nil {
		plainText(w, http.StatusBadRequest, err.Error()+"\n")
		return
	}
	all, seen := l.Read(f, n)
	if !asJSON {
		plainText(w, http.StatusOK, aligned(func(w io.Writer) { writeDecisions(w, all, seen) }))
		return
	}
	page := samplesPage{Seen: seen, Decisions: append([]Decision{}, all...), Reasons: make(map[string]whatNow)}
	for i := range all {
		e := runbook.Of(all[i].Policy, all[i].Reason)
		page.Reasons[all[i].Policy+" "+all[i].Reason] = whatNow{e.Do, e.Setting, e.Link()}
	}
	serveJSON(w, page)
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

func serveJSON(w http.ResponseWriter, v any) {
	text, err := json.MarshalIndent(v, "", " ")
	if err != nil {
		plainText(w, http.StatusInternalServerError, err.Error()+"\n")
		return
	}
	w.Header().Set("Content-Type", "application/json")
	_, _ = w.Write(append(text, '\n')) // who has left does not read it
}

func writeDecisions(w io.Writer, all []Decision, seen uint64) {
	row(w, "TIME", "REASON", "POLICY", "MODE", "CLASS", "LISTENER", "CLUSTER", "ROUTE", "PATH",
		"CUSTOMER", "CALLER", "REQUEST ID", "TRACE ID", "ATTEMPT", "MEASURED", "ERROR")
	for i := range all {
		d := &all[i]
		measured := "–"
		if d.Unit != "" {
			measured = fmt.Sprintf("%.4g of %.4g %s", d.Level, d.Limit, d.Unit)
		}
		row(w, d.Time.Format("2006-01-02 15:04:05.000"), d.Reason, d.Policy, d.Mode, d.Criticality, orDash(d.Listener), orDash(d.Cluster),
			orDash(d.Route), orDash(d.Path), orDash(d.Customer), orDash(d.Caller), orDash(d.RequestID), orDash(d.TraceID), d.Attempt, measured, orDash(d.Text))
	}
	row(w, fmt.Sprintf("%d samples; %d rejections since the start", len(all), seen))
}

// ServeTop writes the top lists of rejections.
func (l *Log) ServeTop(w http.ResponseWriter, r *http.Request) {
	n, asJSON, err := shape(r, usualTop, mostTop)
	if err != nil {
		plainText(w, http.StatusBadRequest, err.Error()+"\n")
		return
	}
	all := l.Top(time.Now(), n)
	if asJSON {
		serveJSON(w, all)
		return
	}
	plainText(w, http.StatusOK, aligned(func(w io.Writer) { writeTop(w, &all) }))
}

func writeTop(w io.Writer, all *Tops) {
	for _, list := range []struct {
		name string
		Top
	}{{"ROUTE", all.Routes}, {"CUSTOMER", all.Customers}, {"CALLER", all.Callers}} {
		row(w, list.name, "REASON", "CLASS", "MODE", "REJECTED")
		for _, r := range list.Rows {
			row(w, orDash(r.Name), r.Reason, r.Criticality, r.Mode, r.Count)
		}
		row(w, fmt.Sprintf("all others: %d. Each count is at most %d too low.", list.Others, list.Error))
		row(w)
	}
}

// row writes a line of cells.
func row(w io.Writer, cells ...any) {
	for i, c := range cells {
		if i > 0 {
			fmt.Fprint(w, "\t")
		}
		fmt.Fprint(w, c)
	}
	fmt.Fprintln(w)
}

func orDash(text string) string { return cmp.Or(Clean(text), "–") }

// aligned returns what write writes, in columns.
func aligned(write func(io.Writer)) string {
	var b bytes.Buffer
	w := tabwriter.NewWriter(&b, 0, 8, 2, ' ', 0)
	write(w)
	_ = w.Flush() // to memory
	return b.String()
}

func plainText(w http.ResponseWriter, status int, text string) {
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.Header().Set("X-Content-Type-Options", "nosniff")
	w.WriteHeader(status)
	_, _ = io.WriteString(w, text) //nolint:gosec // plain text is not run; a client that has left does not read it
}
