// Package report writes the result of a drill as one self-contained HTML file: without
// network, server or other files.
//
// The text and the numbers of the page are written here, from the result alone, and do not
// need JavaScript. The script in the page draws the charts from the same result, which is in
// the page as JSON. Each number of the summary is in a data element: its value is the number
// in the JSON, its text is formatted for people.
package report

import (
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"html/template"
	"io"

	"github.com/seed90641741/spillway/cmd/spillway/internal/lab/drill"
	"github.com/seed90641741/spillway/internal/admin/page"
)

//go:embed page.html
var pageHTML string

//go:embed report.css
var reportCSS string

//go:embed report.js
var reportJS string

// style is the own style of the page.
var style = page.Palette + reportCSS + operatorsCSS

// document has what the page computes of a result as functions.
var document = template.Must(template.New("page").Funcs(template.FuncMap{
	"verdict":   verdictOf,
	"operators": operatorsBlock,
	"step":      stepName,
	"facts":     facts,
	"headline":  headline,
	"summary":   summary,
	"phases":    phases,
	"classes":   classes,
	"callers":   callers,
}).Parse(pageHTML))

// A view is the data of the template. All its numbers are from the result.
type view struct {
	*drill.Result
	Charts []chart
	Terms  []term
	CSP    string
	Styles []template.CSS
	Code   []template.JS
	Data   template.JS
}

// Write writes r to w as a page of HTML. It writes nothing if it fails before
// the page is complete.
func Write(w io.Writer, r *drill.Result) error {
	if r == nil {
		return errors.New("report: there is no result")
	}
	data, err := json.Marshal(r) // escapes <, > and &, so that no string ends the script element
	if err != nil {
		return fmt.Errorf("report: %w", err)
	}
	v := view{
		Result: r,
		Charts: charts,
		Terms:  terms,
		CSP:    page.Policy([]string{page.UPlotStyle, style}, []string{page.UPlot, reportJS}),
		Styles: []template.CSS{template.CSS(page.UPlotStyle), template.CSS(style)},
		Code:   []template.JS{template.JS(page.UPlot), template.JS(reportJS)},
		Data:   template.JS(data),
	}
	return page.Write(w, document, v)
}
