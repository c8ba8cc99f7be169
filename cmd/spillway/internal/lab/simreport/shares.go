package simreport

import (
	"fmt"
	"html/template"
	"strconv"

	"github.com/seed90641741/spillway/cmd/spillway/internal/lab/scenario"
)

// shares are the chart at the top of a scenario: for each case and each group of clients the share of calls
// that were answered in time, in each window.
type shares struct {
	Windows []string
	Rows    []shareRow
}

type shareRow struct {
	Name string
	Bars []bar
}

// A bar is a share as text and as a bar.
type bar struct {
	Text string
	SVG  template.HTML
}

// sharesOf returns the chart of a scenario, with the calls of all seeds.
func sharesOf(o *scenario.Outcome) (s shares) {
	first := o.Cases[0].Results[0]
	for _, w := range first.Windows {
		s.Windows = append(s.Windows, fmt.Sprintf("%s, %s to %s", w.Name, seconds(w.From), seconds(w.To)))
	}
	for i := range o.Cases {
		for j := range first.Clients {
			r := shareRow{Name: o.Cases[i].Name}
			if len(first.Clients) > 1 {
				r.Name += " " + first.Clients[j].Name
			}
			for w := range first.Windows {
				good, offered := 0, 0
				for _, result := range o.Cases[i].Results {
					good += result.Clients[j].Windows[w].Good
					offered += result.Clients[j].Windows[w].Offered
				}
				r.Bars = append(r.Bars, barOf(good, offered))
			}
			s.Rows = append(s.Rows, r)
		}
	}
	return s
}

func seconds(s float64) string { return strconv.FormatFloat(s, 'f', -1, 64) + " s" }

// barOf returns a share of calls. Only all calls are 100 %, and only none are 0 %.
func barOf(good, offered int) bar {
	if offered == 0 {
		return bar{Text: "no calls"}
	}
	percent := 100 * float64(good) / float64(offered)
	text := strconv.FormatFloat(percent, 'f', 1, 64)
	switch {
	case good == 0 || good == offered:
		text = strconv.FormatFloat(percent, 'f', 0, 64)
	case text == "0.0":
		text = "<0.1"
	case text == "100.0":
		text = ">99.9"
	}
	const shape = `<svg viewBox="0 0 120 10" aria-hidden="true"><rect class="all" width="120" height="10"></rect>` +
		`<rect class="share" width="%.1f" height="10"></rect></svg>`
	return bar{text + " %", template.HTML(fmt.Sprintf(shape, 1.2*percent))}
}
