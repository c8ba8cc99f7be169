package simreport

import (
	"fmt"
	"html/template"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/seed90641741/spillway/cmd/spillway/internal/lab/scenario"
	"github.com/seed90641741/spillway/sim"
)

// A chart compares the cases of a scenario, side by side, on one scale.
type chart struct {
	Title, About string
	Keys         []key
	Plots        []plot
}

// A key is the meaning of a colour.
type key struct{ Class, Name string }

// A plot is the chart of one case, of its first seed.
type plot struct {
	Name, Summary string
	SVG           template.HTML
}

// maxPlots is the maximum number of cases with charts; the others are only in a table.
const maxPlots = 8

// fates are how calls end, in the order in which they are stacked.
var fates = []struct {
	key

	of func(*sim.ClientSeries) []int
}{
	{key{"goodput", "useful"}, func(s *sim.ClientSeries) []int { return s.Good }},
	{key{"rejected-throttle", "rejected locally (throttle)"}, func(s *sim.ClientSeries) []int { return s.RejectedThrottle }},
	{key{"rejected-inflight", "rejected locally (in flight)"}, func(s *sim.ClientSeries) []int { return s.RejectedInFlight }},
	{key{"rejected-backend", "rejected by backend"}, func(s *sim.ClientSeries) []int { return s.RejectedByBackend }},
	{key{"late", "late"}, func(s *sim.ClientSeries) []int { return s.Late }},
	{key{"timed-out", "timed out"}, func(s *sim.ClientSeries) []int { return s.TimedOut }},
	{key{"failed", "failed"}, func(s *sim.ClientSeries) []int { return s.Failed }},
}

// charts returns the charts of a scenario: outcomes and latency of calls for each group
// of clients, arrivals and served requests for each service.
func charts(o *scenario.Outcome) (all []chart) {
	cases := o.Cases[:min(len(o.Cases), maxPlots)]
	first := cases[0].Results[0]
	for i := range first.Clients {
		all = append(all, callsChart(cases, i), latencyChart(cases, i))
	}
	for i := range first.Services {
		all = append(all, loadChart(cases, i))
	}
	return all
}

// omitted describes the cases without charts.
func omitted(o *scenario.Outcome) string {
	var all []string
	if results := o.Cases[0].Results; len(results) > 1 {
		all = append(all, fmt.Sprintf("Charts of seed %d, the first of %d.", results[0].Seed, len(results)))
	}
	if n := len(o.Cases); n > maxPlots {
		all = append(all, fmt.Sprintf("Charts of the first %d of %d rows.", maxPlots, n))
	}
	return strings.Join(all, " ")
}

func callsChart(cases []scenario.Case, i int) chart {
	c := chart{Title: cases[0].Results[0].Clients[i].Name + ": outcome per call", About: "per second, by when they were made"}
	top, stacks := 0.0, make([][][]float64, len(cases))
	for j := range cases {
		r := cases[j].Results[0]
		for _, f := range fates {
			stacks[j] = append(stacks[j], rates(f.of(&r.Clients[i].Series), r.StepS))
		}
		top = max(top, peak(total(stacks[j])))
	}
	for k, f := range fates {
		if slices.ContainsFunc(stacks, func(layers [][]float64) bool { return peak(layers[k]) > 0 }) {
			c.Keys = append(c.Keys, f.key)
		}
	}
	for j, layers := range stacks {
		f := newFrame(cases[j].Results[0], top, perSecond)
		f.stack(layers)
		c.Plots = append(c.Plots, f.plot(cases[j].Name, "useful at most "+perSecond(peak(layers[0]))))
	}
	return c
}

func latencyChart(cases []scenario.Case, i int) chart {
	return lineChart(cases, millis, 1, chart{
		Title: cases[0].Results[0].Clients[i].Name + ": how long answers took", About: "by when they came",
		Keys: []key{{"p50", "p50"}, {"p99", "p99"}},
	}, func(r *sim.Result) [2][]float64 {
		s := &r.Clients[i].Series
		return [2][]float64{known(s.P50MS), known(s.P99MS)}
	})
}

func loadChart(cases []scenario.Case, i int) chart {
	return lineChart(cases, perSecond, 0, chart{
		Title: cases[0].Results[0].Services[i].Name + ": what arrived, and what was served", About: "requests per second",
		Keys: []key{{"arrived", "arrived"}, {"goodput", "served"}},
	}, func(r *sim.Result) [2][]float64 {
		s := &r.Services[i].Series
		return [2][]float64{rates(s.Arrived, r.StepS), rates(s.Served, r.StepS)}
	})
}

// lineChart draws two lines for each case. The peak of the main one is the scale and the summary.
func lineChart(cases []scenario.Case, text func(float64) string, main int, c chart, lines func(*sim.Result) [2][]float64) chart {
	top := 0.0
	for j := range cases {
		top = max(top, peak(lines(cases[j].Results[0])[main]))
	}
	for j := range cases {
		r := cases[j].Results[0]
		f := newFrame(r, top, text)
		both := lines(r)
		for k, values := range both {
			f.line(c.Keys[k].Class, values)
		}
		c.Plots = append(c.Plots, f.plot(cases[j].Name, c.Keys[main].Name+" at most "+text(peak(both[main]))))
	}
	return c
}

func perSecond(v float64) string { return short(v) + "/s" }

// millis returns milliseconds as people read them: 250 ms, 20 s, 5 min.
func millis(v float64) string {
	switch {
	case v >= 120_000:
		return short(v/60_000) + " min"
	case v >= 1000:
		return short(v/1000) + " s"
	default:
		return short(v) + " ms"
	}
}

func short(v float64) string {
	switch {
	case v >= 1e6:
		return strconv.FormatFloat(v/1e6, 'g', 3, 64) + "M"
	case v >= 1e4:
		return strconv.FormatFloat(v/1e3, 'g', 3, 64) + "k"
	default:
		return strconv.FormatFloat(v, 'g', 4, 64)
	}
}

func rates(counts []int, step float64) []float64 {
	all := make([]float64, len(counts))
	for i, n := range counts {
		all[i] = float64(n) / step
	}
	return all
}

// known returns values, with NaN for nil.
func known(values []*float64) []float64 {
	all := make([]float64, len(values))
	for i, v := range values {
		all[i] = math.NaN()
		if v != nil {
			all[i] = *v
		}
	}
	return all
}

func peak(values []float64) (most float64) {
	for _, v := range values {
		if v > most {
			most = v
		}
	}
	return most
}

func total(layers [][]float64) []float64 {
	sum := make([]float64, len(layers[0]))
	for _, l := range layers {
		for i, v := range l {
			sum[i] += v
		}
	}
	return sum
}

// round returns the least of the factors, from 1 to below 10 in their order, times a power of ten that is not below v.
func round(v float64, factors ...float64) float64 {
	if v <= 0 {
		return 1
	}
	scale := math.Pow(10, math.Floor(math.Log10(v)))
	for _, m := range factors {
		if m*scale >= v*0.999999 {
			return m * scale
		}
	}
	return 10 * scale
}

// The size of a plot in the units of its picture.
const (
	width, height = 560.0, 170.0
	left, bottom  = 62.0, 22.0
	right, above  = 8.0, 8.0
)

// A frame is a picture that is being drawn.
type frame struct {
	length, top float64 // seconds, and the value at the upper end
	step        float64
	b           strings.Builder
}

// newFrame returns a picture with its axes, and the windows that figures are of.
func newFrame(r *sim.Result, top float64, text func(float64) string) *frame {
	f := &frame{length: r.Seconds, top: round(top, 1, 2, 2.5, 5), step: r.StepS}
	f.shade(r.Windows)
	f.axes(text)
	return f
}

// x and y convert their products, so that no machine rounds a product and a sum at
// once, and each writes the same page.
func (f *frame) x(t float64) float64 { return left + float64((width-left-right)*min(t/f.length, 1)) }
func (f *frame) y(v float64) float64 {
	return above + float64((height-above-bottom)*(1-min(v/f.top, 1)))
}

// shade marks the windows that figures are of, each with its name.
func (f *frame) shade(windows []sim.Span) {
	for _, w := range windows {
		from, to := f.x(w.From), f.x(w.To)
		if to-from >= width-left-right-1 {
			continue // all of it
		}
		fmt.Fprintf(&f.b, `<rect class="window" x="%.1f" y="%.1f" width="%.1f" height="%.1f"/>`, from, above, to-from, height-above-bottom)
		fmt.Fprintf(&f.b, `<text class="tick" x="%.1f" y="%.1f" text-anchor="middle">%s</text>`, (from+to)/2, above+11, template.HTMLEscapeString(w.Name))
	}
}

func (f *frame) axes(text func(float64) string) {
	for _, share := range []float64{0, 0.5, 1} {
		v := share * f.top
		fmt.Fprintf(&f.b, `<line class="grid" x1="%.1f" x2="%.1f" y1="%.1f" y2="%.1f"/>`, left, width-right, f.y(v), f.y(v))
		fmt.Fprintf(&f.b, `<text class="tick" x="%.1f" y="%.1f" text-anchor="end">%s</text>`, left-6, f.y(v)+4, template.HTMLEscapeString(text(v)))
	}
	for _, t := range ticks(f.length) {
		anchor := "middle"
		if t == f.length {
			anchor = "end"
		}
		fmt.Fprintf(&f.b, `<text class="tick" x="%.1f" y="%.1f" text-anchor="%s">%s s</text>`, f.x(t), height-6, anchor, short(t))
	}
}

// stack draws layers on top of one another, as steps.
func (f *frame) stack(layers [][]float64) {
	below := make([]float64, len(layers[0]))
	for k, l := range layers {
		if peak(l) == 0 {
			continue
		}
		spans := shown(len(l))
		fmt.Fprintf(&f.b, `<polygon class="%s" points="`, fates[k].Class)
		for _, i := range spans {
			f.edge(i.from, i.to, i.mean(below)+i.mean(l))
		}
		for _, i := range slices.Backward(spans) {
			f.edge(i.to, i.from, i.mean(below))
		}
		f.b.WriteString(`"/>`)
		for i, v := range l {
			below[i] += v
		}
	}
}

// edge draws a level from one slot to another.
func (f *frame) edge(from, to int, v float64) {
	fmt.Fprintf(&f.b, "%.1f,%.1f %.1f,%.1f ", f.x(float64(from)*f.step), f.y(v), f.x(float64(to)*f.step), f.y(v))
}

// line draws a line through the middles of slots, with gaps where there is nothing.
func (f *frame) line(class string, values []float64) {
	var points []string
	flush := func() {
		if len(points) > 0 {
			fmt.Fprintf(&f.b, `<polyline class="line %s" points="%s"/>`, class, strings.Join(points, " "))
		}
		points = nil
	}
	for _, i := range shown(len(values)) {
		v := i.mean(values)
		if math.IsNaN(v) {
			flush()
			continue
		}
		points = append(points, fmt.Sprintf("%.1f,%.1f", f.x(float64(i.from+i.to)/2*f.step), f.y(v)))
	}
	flush()
}

func (f *frame) plot(name, summary string) plot {
	svg := fmt.Sprintf(`<svg viewBox="0 0 %g %g" role="img" aria-label="%s">%s</svg>`, width, height, template.HTMLEscapeString(summary), f.b.String())
	return plot{name, summary, template.HTML(svg)}
}

// A span is a range of slots that are drawn as one.
type span struct{ from, to int }

// shown divides n slots into at most as many spans as the chart can resolve.
func shown(n int) (all []span) {
	const most = 240
	each := (n + most - 1) / most
	for i := 0; i < n; i += each {
		all = append(all, span{i, min(i+each, n)})
	}
	return all
}

func (s span) mean(values []float64) float64 {
	sum, n := 0.0, 0
	for _, v := range values[s.from:s.to] {
		if !math.IsNaN(v) {
			sum += v
			n++
		}
	}
	if n == 0 {
		return math.NaN()
	}
	return sum / float64(n)
}
