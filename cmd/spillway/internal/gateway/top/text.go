package top

import (
	"cmp"
	"fmt"
	"io"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/seed90641741/spillway/internal/admin/decisions"
	"github.com/seed90641741/spillway/internal/admin/human"
)

// A Screen is where a page is written.
type Screen struct {
	Width  int
	Height int // 0: as many lines as the page has
	Color  bool
}

const (
	leastWidth  = 40 // of a page; on a narrower screen the terminal breaks lines
	plainRows   = 50 // processes on a page without a height
	plainLines  = 3  // of a list of names on a page without a height
	leastRows   = 3  // processes on any page
	answerLines = 3  // of each answer of the verdict on a page with a height
)

// Write writes the page as text. The last line has no end on a screen with a height, so that it does not scroll.
func (p *Page) Write(w io.Writer, s Screen) error {
	s.Width = max(s.Width, leastWidth)
	all := p.lines(s)
	end := "\n"
	if s.Height > 0 {
		all, end = all[:min(len(all), s.Height)], ""
	}
	_, err := io.WriteString(w, strings.Join(all, "\n")+end)
	return err
}

func (p *Page) lines(s Screen) []string {
	head := append(p.head(s.Width), p.verdict(s)...)
	lists, rows := 1, plainRows
	if s.Height == 0 {
		lists = plainLines
	}
	tail := p.tail(s.Width, lists)
	if s.Height > 0 {
		rows = s.Height - len(head) - len(tail) - p.fixedRows()
		if rows < len(p.Processes) {
			rows-- // for the line that says how many more there are
		}
		rows = max(rows, leastRows)
	}
	table := p.table(s.Width, rows)
	if blank := s.Height - len(head) - len(table) - len(tail); s.Height == 0 || blank >= 2 {
		return parts(head, table, tail)
	}
	return slices.Concat(head, table, tail)
}

// parts returns the lines of parts with an empty line before each but the first.
func parts(all ...[]string) (lines []string) {
	for i, part := range all {
		if i > 0 && len(part) > 0 {
			lines = append(lines, "")
		}
		lines = append(lines, part...)
	}
	return lines
}

// fixedRows returns the rows of the table that show no process: its head and the sums.
func (p *Page) fixedRows() int {
	if len(p.Processes) > 1 {
		return 2
	}
	return 1
}

// head returns what the page is about: how many processes, which window, which time.
func (p *Page) head(wide int) []string {
	text := human.Counted(p.Asked, "process")
	if p.Asked != 1 {
		text = count(p.Asked) + " processes"
	}
	if p.Answering < p.Asked {
		text += ", " + count(p.Answering) + " with figures"
	}
	if p.Seconds > 0 {
		text += fmt.Sprintf("; rates over the last %.0f s", math.Round(p.Seconds))
	}
	clock := p.Time.UTC().Format(time.TimeOnly) + " UTC"
	line := "spillway top: " + text
	if width(line)+gap+width(clock) <= wide {
		line = padded(line, wide-width(clock)) + clock
	}
	all := wrap(line, wide, 2)
	for _, note := range p.Notes {
		all = append(all, wrap(note, wide, 2)...)
	}
	return all
}

// Colors of levels.
const (
	red, yellow, green, reset = "\x1b[1;31m", "\x1b[1;33m", "\x1b[1;32m", "\x1b[0m"
)

// verdict returns the answers to the questions of an incident.
func (p *Page) verdict(s Screen) (all []string) {
	v, most := &p.Verdict, answerLines
	if s.Height == 0 {
		most = 10
	}
	for i, line := range wrap(v.Headline, s.Width, 2) {
		if color := map[string]string{"bad": red, "warn": yellow, "ok": green}[v.Level]; s.Color && color != "" {
			line = color + line + reset
		}
		if i == 0 {
			all = append(all, "")
		}
		all = append(all, line)
	}
	for _, answer := range []struct{ question, text string }{{"who", v.Who}, {"why", v.Why}, {"do", v.Do}} {
		all = append(all, labelled(answer.question, answer.text, s.Width, most)...)
	}
	if s.Height > 0 && s.Height < roomy {
		all = all[1:]
	}
	return all
}

// roomy is the height from which on there are empty lines.
const roomy = 25

const labels = 11 // width of a label, with the space after it

// labelled returns a text with a label, in lines.
func labelled(label, text string, wide, most int) (all []string) {
	for _, line := range wrap(text, wide-labels, most) {
		all = append(all, padded(label, labels)+line)
		label = ""
	}
	return all
}

// tail returns the reasons, customers, callers and routes, each in so many lines at most.
func (p *Page) tail(wide, most int) (all []string) {
	var reasons []string
	for _, r := range p.Reasons {
		text := r.Reason + " " + human.PerSecond(r.Rate.Sum())
		if r.Outcome != "rejected" && r.Outcome != "client gone" {
			text = r.Outcome + ": " + text
		}
		if r.Mode == "observe" {
			text += " (would be)"
		}
		reasons = append(reasons, text)
	}
	all = append(all, itemized("reasons", reasons, wide, most)...)
	for _, list := range []struct {
		label string
		Top
		text func(string) string
	}{{"customers", p.Customers, customerText}, {"callers", p.Callers, plainText}, {"routes", p.Routes, routeText}} {
		all = append(all, itemized(list.label, list.items(list.text), wide, most)...)
	}
	return all
}

func plainText(name string) string { return cmp.Or(name, unknown) }

func customerText(name string) string { return decisions.NameOf(name, decisions.NoCustomer) }

func routeText(name string) string {
	cluster, route := decisions.Split(name)
	return route + " (" + cluster + ")"
}

// mostName is the longest name in a list of names.
const mostName = 40

// items returns the names of a list with their rates.
func (t *Top) items(text func(string) string) (all []string) {
	for _, n := range t.Names {
		item := middle(text(n.Name), mostName) + " at least " + human.PerSecond(n.AtLeast)
		if n.Would > 0 && n.Would == n.AtLeast {
			item += " (would be)"
		}
		all = append(all, item)
	}
	if len(all) > 0 && t.Others >= 0.05 {
		all = append(all, "others "+human.PerSecond(t.Others))
	}
	return all
}

// itemized returns a list with a label, in at most so many lines. Items are whole.
func itemized(label string, items []string, wide, most int) (all []string) {
	line := ""
	for i, item := range items {
		if i < len(items)-1 {
			item += ","
		}
		switch {
		case line == "":
			line = item
		case width(line)+1+width(item) <= wide-labels:
			line += " " + item
		case len(all) == most-1:
			return append(all, padded(label, labels)+strings.TrimSuffix(line, ",")+", …")
		default:
			all = append(all, padded(label, labels)+line)
			label, line = "", item
		}
	}
	if line != "" {
		all = append(all, padded(label, labels)+line)
	}
	return all
}

// unknown is the text of an unknown figure.
const unknown = "–"
