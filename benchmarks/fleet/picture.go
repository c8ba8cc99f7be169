package main

import (
	"fmt"
	"strings"
)

// Sizes of the picture in pixels, and its colors, which can be distinguished with any color vision.
const (
	width, height            = 720, 300
	left, right, top, bottom = 60, 120, 60, 36

	ink, gray = "#1a2027", "#8a949e"
)

// colors are of the lines, by size.
var colors = []string{"#0b66a8", "#00795a", "#c74a0a", "#7a3e9d"}

// picture draws the traces, each averaged over a second.
func (r *Record) picture() string {
	var b strings.Builder
	text := func(x, y float64, anchor, color, s string) {
		fmt.Fprintf(&b, `<text x="%.1f" y="%.1f" text-anchor="%s" fill="%s">%s</text>`+"\n", x, y, anchor, color, s)
	}
	fmt.Fprintf(&b, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %d" font-family="sans-serif" font-size="13">`+"\n", width, height)
	fmt.Fprintf(&b, `<rect width="%d" height="%d" fill="white"/>`+"\n", width, height)
	text(left, 24, "start", ink, "Calls admitted in all tasks, as a share of the limit; three times as many are offered")
	text(left, 44, "start", gray, "The board is away from 5 s to 8 s, and comes back without data")
	y := func(v float64) float64 { return height - bottom - v/1.5*(height-top-bottom) }
	for _, v := range []float64{0, 0.5, 1, 1.5} {
		fmt.Fprintf(&b, `<path d="M%d %.1fH%d" stroke="%s" stroke-opacity="0.4"/>`+"\n", left, y(v), width-right, gray)
		text(left-8, y(v)+4, "end", ink, fmt.Sprintf("%.1f", v))
	}
	row := 0
	for _, x := range r.Results {
		if len(x.Trace) == 0 {
			continue
		}
		across := func(i int) float64 { return left + float64(i)/float64(len(x.Trace))*(width-left-right) }
		if row == 0 {
			for i := 0; i <= len(x.Trace); i += 20 {
				text(across(i), height-bottom+20, "middle", ink, fmt.Sprintf("%d s", i/10))
			}
		}
		var points strings.Builder
		for i := 10; i <= len(x.Trace); i++ {
			sum := 0.
			for _, v := range x.Trace[i-10 : i] {
				sum += v
			}
			fmt.Fprintf(&points, "%.1f,%.1f ", across(i), y(min(sum/10, 1.5)))
		}
		fmt.Fprintf(&b, `<polyline points="%s" fill="none" stroke="%s" stroke-width="2"/>`+"\n", strings.TrimSpace(points.String()), colors[row])
		text(width-right+12, float64(top+20*row), "start", colors[row], number(float64(x.Tasks))+" tasks")
		row++
	}
	b.WriteString("</svg>\n")
	return b.String()
}
