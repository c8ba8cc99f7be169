package main

import (
	"fmt"
	"io"
	"math"
	"slices"
	"strings"
)

// pictured are the scenarios of the picture, one column each.
var pictured = []*Scenario{
	{Name: "Cold start at 5 times the capacity", End: 4 * sec, Fill: queries(flat(2000))},
	{Name: "Half the capacity", End: 4 * sec, Fill: queries(flat(200))},
}

// A panel is a row of the picture. Its lines are levels of the algorithm.
type panel struct {
	title string
	lines []line
}

type line struct{ level, color string }

// panels use the colours of the project's pages.
var panels = []panel{
	{"requests", []line{{"in flight", "#1a2027"}, {"limit", "#0b66a8"}}},
	{"milliseconds", []line{{"base", "#00795a"}, {"wait", "#c74a0a"}}},
}

const (
	sampled = 20 * ms // interval between points
	wide    = 360     // panels, in pixels
	high    = 140
	margin  = 48
)

// draw writes the picture of an algorithm to a file.
func draw(path string, maker Maker) error {
	var b strings.Builder
	width, height := len(pictured)*(wide+margin)+margin/2, margin+len(panels)*(high+margin)
	fmt.Fprintf(&b, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %d" font-family="sans-serif" font-size="11">`+"\n", width, height)
	fmt.Fprintf(&b, `<rect width="%d" height="%d" fill="white"/>`+"\n", width, height)
	for i, sc := range pictured {
		x := margin + i*(wide+margin)
		text(&b, x, 18, "start", "#1a2027", sc.Name)
		levels := watch(sc, maker)
		for j, p := range panels {
			p.draw(&b, x, margin+j*(high+margin), int(sc.End/sec), levels)
		}
	}
	b.WriteString("</svg>\n")
	return writeFile(path, []byte(b.String()))
}

// watch returns the levels of an algorithm, sampled over time.
func watch(sc *Scenario, maker Maker) map[string][]float64 {
	levels := map[string][]float64{}
	watched := *sc
	watched.Fill = func(p *Process) {
		sc.Fill(p)
		p.each(sampled, func() {
			for _, l := range p.explained() {
				levels[l.name] = append(levels[l.name], l.value)
			}
		})
	}
	simulate(&watched, 1, maker)
	return levels
}

// draw draws axes and lines. Values far above the others are left out.
func (p panel) draw(w io.Writer, x, y, seconds int, levels map[string][]float64) {
	top := p.top(levels)
	fmt.Fprintf(w, `<g transform="translate(%d %d)">`+"\n", x, y)
	for i := range 5 {
		at := high - i*high/4
		fmt.Fprintf(w, `<path d="M0 %d H%d" stroke="#dde2e7"/>`+"\n", at, wide)
		text(w, -6, at+4, "end", "#5a646f", fmt.Sprintf("%.3g", top*float64(i)/4))
	}
	for s := range seconds + 1 {
		text(w, s*wide/seconds, high+14, "middle", "#5a646f", fmt.Sprintf("%d s", s))
	}
	text(w, 0, -7, "start", "#5a646f", p.title)
	for i, l := range p.lines {
		text(w, wide-70*(len(p.lines)-1-i), -7, "end", l.color, l.level)
		fmt.Fprintf(w, `<path d="%s" fill="none" stroke="%s" stroke-width="1.5"/>`+"\n", trail(levels[l.level], top), l.color)
	}
	fmt.Fprintln(w, "</g>")
}

// top returns the upper end of the axis: a round number above 95 % of the points.
func (p panel) top(levels map[string][]float64) float64 {
	var all []float64
	for _, l := range p.lines {
		all = append(all, slices.DeleteFunc(slices.Clone(levels[l.level]), isOpen)...)
	}
	if len(all) == 0 {
		return 1
	}
	slices.Sort(all)
	most := max(1, 1.2*all[len(all)*19/20])
	unit := math.Pow(10, math.Floor(math.Log10(most)))
	for _, x := range []float64{1, 2, 4, 8} {
		if x*unit >= most {
			return x * unit
		}
	}
	return 10 * unit
}

// isOpen reports whether a level means no limit.
func isOpen(level float64) bool { return level > 1e9 }

// trail is the path of a line.
func trail(points []float64, top float64) string {
	var b strings.Builder
	pen := "M"
	for i, v := range points {
		if isOpen(v) || v > top {
			pen = "M"
			continue
		}
		fmt.Fprintf(&b, "%s%.1f %.1f", pen, float64((i+1)*wide)/float64(len(points)+1), high-v/top*high)
		pen = "L"
	}
	return b.String()
}

func text(w io.Writer, x, y int, anchor, color, s string) {
	fmt.Fprintf(w, `<text x="%d" y="%d" text-anchor="%s" fill="%s">%s</text>`+"\n", x, y, anchor, color, s)
}
