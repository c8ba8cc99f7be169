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
	"github.com/seed90641741/spillway/cmd/spillway/internal/page"
)

//go:embed page.html
var pageHTML string

//go:embed page.css
var pageCSS string

// style is the style of the page.
var style = page.Palette + pageCSS

var document = template.Must(template.New("page").Parse(pageHTML))

// A view is the data of the template.
type view struct {
	Title   string
	Verdict page.Verdict
	CSP     string
	Style   template.CSS
	All     []chapter
}

// A chapter is one scenario.
type chapter struct {
	*scenario.Outcome

	ID       string
	Verdict  page.Verdict
	Shares   shares
	Measures []string
	Rows     []row
	Checks   []check
	Note     string // what the charts leave out
	Charts   []chart
}

// A row is a case in the table of a scenario.
type row struct {
	Name  string
	Cells []string
}

type check struct {
	Pass bool
	Text string
}

// Write writes outcomes to w as a page of HTML. It writes nothing if it fails before
// the page is complete.
func Write(w io.Writer, all []*scenario.Outcome) error {
	if len(all) == 0 {
		return errors.New("simreport: there is no outcome")
	}
	v := view{Title: all[0].Name, Style: template.CSS(style), CSP: page.Policy([]string{style}, nil)}
	if len(all) > 1 {
		v.Title = fmt.Sprintf("%d scenarios", len(all))
	}
	held, judged := 0, 0
	for i, o := range all {
		c := chapterOf(o, i)
		v.All = append(v.All, c)
		judged += len(c.Checks)
		for _, k := range c.Checks {
			if k.Pass {
				held++
			}
		}
	}
	v.Verdict = verdictOf(held, judged)
	return page.Write(w, document, v)
}

func verdictOf(held, judged int) page.Verdict {
	switch {
	case judged == 0:
		return page.Verdict{Class: "stopped", Word: "NO VERDICT", Text: "nothing was expected"}
	case held == judged:
		return page.Verdict{Class: "pass", Word: "PASS", Text: fmt.Sprintf("all %d expectations hold", judged)}
	default:
		return page.Verdict{Class: "fail", Word: "FAIL", Text: fmt.Sprintf("%d of %d expectations do not hold", judged-held, judged)}
	}
}

func chapterOf(o *scenario.Outcome, i int) chapter {
	c := chapter{Outcome: o, ID: fmt.Sprintf("scenario-%d", i+1), Measures: o.Measures(), Shares: sharesOf(o)}
	held := 0
	for j := range o.Judgements {
		k := check{o.Judgements[j].Pass, o.Judgements[j].Text()}
		c.Checks = append(c.Checks, k)
		if k.Pass {
			held++
		}
	}
	c.Verdict = verdictOf(held, len(c.Checks))
	for j := range o.Cases {
		r := row{Name: o.Cases[j].Name}
		for _, m := range c.Measures {
			r.Cells = append(r.Cells, o.Cases[j].Cell(m))
		}
		c.Rows = append(c.Rows, r)
	}
	c.Note, c.Charts = omitted(o), charts(o)
	return c
}
