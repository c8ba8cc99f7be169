// Package report writes the result of a drill as one HTML file that needs
// nothing else: no network, no server, no other file.
//
// What the page says in words and numbers is written here, from the result and
// from nothing else, and is there without JavaScript. The script in the page
// draws the charts from the same result, which it finds as JSON in the page.
// Each number of the summary is in a data element whose value is the number as
// it stands in the JSON; its text is the number as people read it.
package report

import (
	"bytes"
	"crypto/sha256"
	_ "embed"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"html/template"
	"io"
	"strings"

	"github.com/seed90641741/spillway/cmd/spillway/internal/drill"
)

//go:embed page.html
var pageHTML string

//go:embed report.css
var reportCSS string

//go:embed report.js
var reportJS string

//go:embed uplot/uPlot.min.css
var uplotCSS string

//go:embed uplot/uPlot.iife.min.js
var uplotJS string

//go:embed uplot/LICENSE
var uplotLicense string

var page = template.Must(template.New("page").Parse(pageHTML))

// A view is what the template writes. It holds no number of its own.
type view struct {
	*drill.Result
	Verdict  verdict
	Step     string
	Facts    []string
	Headline []panel
	Summary  []row
	ByPhase  phaseTable
	Classes  []classRow
	Runs     []caller
	Charts   []chart
	Terms    []term

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
		Result:   r,
		Verdict:  verdictOf(r),
		Step:     stepName(r),
		Facts:    facts(r),
		Headline: headline(r),
		Summary:  summary(r),
		ByPhase:  phases(r),
		Classes:  classes(r),
		Runs:     []caller{{"without", r.Settings.Caller, r.Without}, {"with", r.Settings.Protected, r.With}},
		Charts:   charts,
		Terms:    terms,
		Styles:   []template.CSS{template.CSS(uplotCSS), template.CSS(reportCSS)},
		Code:     []template.JS{template.JS("/*\n" + uplotLicense + "\n*/\n" + uplotJS), template.JS(reportJS)},
		Data:     template.JS(data),
	}
	v.CSP = policy(v.Styles, v.Code)
	var b bytes.Buffer
	if err := page.Execute(&b, v); err != nil {
		return fmt.Errorf("report: %w", err)
	}
	_, err = w.Write(b.Bytes())
	return err
}

// policy returns a content security policy that allows the given styles and
// scripts, by their hashes, and nothing else: no request can leave the page.
func policy(styles []template.CSS, code []template.JS) string {
	var csp strings.Builder
	csp.WriteString("default-src 'none'; base-uri 'none'; form-action 'none'; img-src data:; style-src")
	for _, s := range styles {
		csp.WriteString(hash(string(s)))
	}
	csp.WriteString("; script-src")
	for _, s := range code {
		csp.WriteString(hash(string(s)))
	}
	return csp.String()
}

func hash(s string) string {
	sum := sha256.Sum256([]byte(s))
	return " 'sha256-" + base64.StdEncoding.EncodeToString(sum[:]) + "'"
}
