package main

import (
	"fmt"
	"math"
	"strings"
)

// The colors can be distinguished with any color vision.
const (
	ink    = "#1a2027"
	gray   = "#8a949e"
	blue   = "#0b66a8"
	orange = "#c74a0a"
)

// Sizes in pixels.
const (
	width  = 720
	height = 300
	left   = 60
	right  = 150
	top    = 72
	bottom = 36
)

// A line is a series with one value per second.
type line struct {
	name, color string
	values      []float64
}

// A group has one bar for each case.
type group struct {
	name   string
	values []float64
}

// A canvas collects the elements of a picture.
type canvas struct{ strings.Builder }

func newCanvas(title, note string) *canvas {
	c := new(canvas)
	fmt.Fprintf(c, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %d" font-family="sans-serif" font-size="13">`+"\n", width, height)
	fmt.Fprintf(c, `<rect width="%d" height="%d" fill="white"/>`+"\n", width, height)
	c.text(left, 24, "start", ink, title)
	c.text(left, 44, "start", gray, note)
	return c
}

func (c *canvas) text(x, y float64, anchor, color, text string) {
	fmt.Fprintf(c, `<text x="%.1f" y="%.1f" text-anchor="%s" fill="%s">%s</text>`+"\n", x, y, anchor, color, text)
}

func (c *canvas) done() string {
	c.WriteString("</svg>\n")
	return c.String()
}

// axis draws three horizontal lines with their values, up to most, and returns the function from
// values to pixels.
func (c *canvas) axis(most float64, format func(float64) string) func(float64) float64 {
	y := func(v float64) float64 { return height - bottom - v/most*(height-top-bottom) }
	for _, share := range []float64{0, 0.5, 1} {
		v := share * most
		fmt.Fprintf(c, `<path d="M%d %.1fH%d" stroke="%s" stroke-opacity="0.4"/>`+"\n", left, y(v), width-right, gray)
		c.text(left-8, y(v)+4, "end", ink, format(v))
	}
	return y
}

// lines draws series over time.
func lines(title, note string, all []line) string {
	c := newCanvas(title, note)
	most := 0.0
	for _, l := range all {
		for _, v := range l.values {
			most = math.Max(most, v)
		}
	}
	unit := math.Pow(10, math.Floor(math.Log10(most)))
	y := c.axis(math.Ceil(most/unit)*unit, func(v float64) string { return fmt.Sprintf("%.0f", v) })
	n := len(all[0].values)
	x := func(i int) float64 { return left + float64(i)/float64(n-1)*(width-left-right) }
	for i := 0; i < n; i += 5 {
		c.text(x(i), height-bottom+20, "middle", ink, fmt.Sprintf("%d s", i))
	}
	for i, l := range all {
		var points strings.Builder
		for i, v := range l.values {
			fmt.Fprintf(&points, "%.1f,%.1f ", x(i), y(v))
		}
		fmt.Fprintf(c, `<polyline points="%s" fill="none" stroke="%s" stroke-width="2"/>`+"\n", strings.TrimSpace(points.String()), l.color)
		legend(c, i, l.name, l.color)
	}
	return c.done()
}

// bars draws the shares of each group, without Spillway and with it.
func bars(title, note string, groups []group) string {
	c := newCanvas(title, note)
	y := c.axis(1, func(v float64) string { return fmt.Sprintf("%.0f %%", 100*v) })
	wide := float64(width-left-right) / float64(len(groups))
	colors := []string{orange, blue}
	for i, g := range groups {
		middle := left + (float64(i)+0.5)*wide
		c.text(middle, height-bottom+20, "middle", ink, g.name)
		for j, v := range g.values {
			x := middle + (float64(j)-1)*wide/3
			fmt.Fprintf(c, `<rect x="%.1f" y="%.1f" width="%.1f" height="%.1f" fill="%s"/>`+"\n", x, y(v), wide/3-2, y(0)-y(v), colors[j])
			c.text(x+wide/6-1, y(v)-4, "middle", ink, fmt.Sprintf("%.0f", 100*v))
		}
	}
	legend(c, 0, "without", orange)
	legend(c, 1, "with Spillway", blue)
	return c.done()
}

// legend names a color, in the i-th row.
func legend(c *canvas, i int, name, color string) {
	x, y := width-right+14, top+12+20*i
	fmt.Fprintf(c, `<rect x="%d" y="%d" width="12" height="4" fill="%s"/>`+"\n", x, y-6, color)
	c.text(float64(x+18), float64(y), "start", ink, name)
}
