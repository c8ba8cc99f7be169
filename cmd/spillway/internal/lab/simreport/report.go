// Package simreport writes the results of scenarios as one self-contained HTML file: without
// network, server, other files or JavaScript. It looks like the report of a drill. The charts
// are drawn from the outcome alone, and the same outcome yields the same page.
package simreport

import (
	_ "embed"
	"errors"
	"fmt"
	"html/template"
	"io"

	"github.com/seed90641741/spillway/cmd/spillway/internal/lab/scenario"
	"github.com/seed90641741/spillway/internal/admin/page"
)

//go:embed page.html
var pageHTML string

//go:embed page.css
var pageCSS string

// style is the style of the page.
var style = page.Palette + pageCSS

// document has what the page computes of a scenario as functions.
var document = template.Must(template.New("page").Funcs(template.FuncMap{
	"id":      func(i int) string { return fmt.Sprintf("scenario-%d", i+1) },
	"verdict": verdictOf,
	"shares":  sharesOf,
	"omitted": omitted,
	"charts":  charts,
}).Parse(pageHTML))

// A view is the data of the template.
type view struct {
	Title  string
	Judged []scenario.Judgement // of all scenarios
	CSP    string
	Style  template.CSS
	All    []*scenario.Outcome
}

// Write writes outcomes to w as a page of HTML. It writes nothing if it fails before
// the page is complete.
func Write(w io.Writer, all []*scenario.Outcome) error {
	if len(all) == 0 {
		return errors.New("simreport: there is no outcome")
	}
	v := view{Title: all[0].Name, Style: template.CSS(style), CSP: page.Policy([]string{style}, nil), All: all}
	if len(all) > 1 {
		v.Title = fmt.Sprintf("%d scenarios", len(all))
	}
	for _, o := range all {
		v.Judged = append(v.Judged, o.Judgements...)
	}
	return page.Write(w, document, v)
}

func verdictOf(all []scenario.Judgement) page.Verdict {
	return page.VerdictOf(all, func(j scenario.Judgement) bool { return j.Pass }, "expectations", "expected")
}
