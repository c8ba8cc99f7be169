package scenario

import (
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"text/tabwriter"

	"github.com/seed90641741/spillway/sim"
)

// An Outcome is the complete result of a scenario. The table, the JSON file and the page
// are written from it. It contains no time of day and nothing about the machine: the same
// runs yield the same bytes.
type Outcome struct {
	Name       string      `json:"name"`
	About      string      `json:"about"`
	Source     string      `json:"source"`
	Claim      string      `json:"claim"`
	Cases      []Case      `json:"cases"` // variants, with each value of a sweep
	Judgements []Judgement `json:"judgements"`
}

// A Case is the runs of one variant that differ in their seeds only.
type Case struct {
	Name     string        `json:"name"` // empty where there is one only
	Measures []Estimate    `json:"measures"`
	Results  []*sim.Result `json:"results"` // one for each seed
}

// An Estimate is the mean of a measure over the seeds. Between Mean − Error and
// Mean + Error it lies with a confidence of 95 %; null with one seed.
type Estimate struct {
	Measure string   `json:"measure"`
	Mean    *float64 `json:"mean"` // null: not measured
	Error   *float64 `json:"error"`
}

// Conclude summarizes the results of runs. Results are in the order of runs.
func (s *Scenario) Conclude(runs []Run, results []*sim.Result) *Outcome {
	o := &Outcome{Name: s.Name, About: s.About, Source: s.Source, Claim: s.Claim}
	for i := range runs {
		if n := len(o.Cases); n == 0 || o.Cases[n-1].Name != runs[i].Variant {
			o.Cases = append(o.Cases, Case{Name: runs[i].Variant})
		}
		c := &o.Cases[len(o.Cases)-1]
		c.Results = append(c.Results, results[i])
	}
	for i := range o.Cases {
		o.Cases[i].estimate()
	}
	o.Judgements = s.judge(o.Cases)
	return o
}

// Passed reports whether all expectations were met.
func (o *Outcome) Passed() bool {
	return !slices.ContainsFunc(o.Judgements, func(j Judgement) bool { return !j.Pass })
}

// What a table shows of clients and of services.
var (
	ofEachGroup   = []string{"goodput_rps", "success", "attempts_per_call", "p50_ms", "p99_ms"}
	ofEachService = []string{"load_ratio", "goodput_ratio", "utilization"}
)

func (c *Case) estimate() {
	for _, g := range c.Results[0].Clients {
		for _, m := range ofEachGroup {
			c.Measures = append(c.Measures, c.over(g.Name+"."+m))
		}
	}
	for _, v := range c.Results[0].Services {
		for _, m := range ofEachService {
			c.Measures = append(c.Measures, c.over(v.Name+"."+m))
		}
	}
}

// values returns a measure of all seeds, nil if one lacks it.
func (c *Case) values(measure, window string) (all []float64) {
	for _, r := range c.Results {
		v, err := Measure(r, measure, window)
		if err != nil || v == nil {
			return nil
		}
		all = append(all, *v)
	}
	return all
}

// mean returns the mean of a measure over all seeds, nil if one lacks it.
func (c *Case) mean(measure, window string) *float64 {
	values := c.values(measure, window)
	if values == nil {
		return nil
	}
	sum := 0.0
	for _, v := range values {
		sum += v
	}
	return new(sum / float64(len(values)))
}

// over estimates a measure from all seeds, in the last window.
func (c *Case) over(measure string) Estimate {
	e, values := Estimate{Measure: measure}, c.values(measure, "")
	if values == nil {
		return e
	}
	sum := 0.0 // above the first, so that what is the same has no spread
	for _, v := range values {
		sum += v - values[0]
	}
	n := float64(len(values))
	mean := values[0] + sum/n
	e.Mean = new(rounded(mean))
	if n < 2 {
		return e
	}
	squares := 0.0
	for _, v := range values {
		squares += float64((v - mean) * (v - mean))
	}
	e.Error = new(rounded(student(len(values)-1) * math.Sqrt(squares/(n-1)/n)))
	return e
}

// rounded returns v with six digits, so that no machine's last bit shows.
func rounded(v float64) float64 {
	r, _ := strconv.ParseFloat(strconv.FormatFloat(v, 'g', 6, 64), 64) // never an error
	return r
}

// quantiles are the two-sided 95 % quantiles of Student's t, by degrees of freedom.
var quantiles = [...]float64{
	12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228, 2.201, 2.179, 2.160, 2.145, 2.131,
	2.120, 2.110, 2.101, 2.093, 2.086, 2.080, 2.074, 2.069, 2.064, 2.060, 2.056, 2.052, 2.048, 2.045, 2.042,
}

// student returns the quantile; for many degrees of freedom, the quantile of the normal
// distribution with its first correction.
func student(freedom int) float64 {
	if freedom <= len(quantiles) {
		return quantiles[freedom-1]
	}
	return 1.960 + 2.372/float64(freedom)
}

// WriteTable writes o to w for people.
func (o *Outcome) WriteTable(w io.Writer) error {
	fmt.Fprintf(w, "%s: %s\n", o.Name, o.About)
	if o.Claim != "" {
		fmt.Fprintf(w, "claim (%s): %s\n", o.Source, o.Claim)
	}
	if window := o.Window(); window != "" {
		fmt.Fprintf(w, "%s:\n", window)
	}
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	for _, m := range o.Measures() {
		fmt.Fprintf(t, "\t%s", m)
	}
	fmt.Fprintln(t, "\t")
	for i := range o.Cases {
		c := &o.Cases[i]
		fmt.Fprint(t, c.Name)
		for _, m := range o.Measures() {
			fmt.Fprintf(t, "\t%s", c.Cell(m))
		}
		fmt.Fprintln(t, "\t")
	}
	if err := t.Flush(); err != nil {
		return err
	}
	for i := range o.Judgements {
		j := &o.Judgements[i]
		fmt.Fprintf(w, "%s  %s\n", map[bool]string{true: "PASS", false: "FAIL"}[j.Pass], j.Text())
	}
	_, err := fmt.Fprintln(w)
	return err
}

// Window describes the window of the table, which is the last one. It is empty if that
// window is the whole run.
func (o *Outcome) Window() string {
	r := o.Cases[0].Results[0]
	last := r.Windows[len(r.Windows)-1]
	if last.From == 0 && last.To == r.Seconds {
		return ""
	}
	return fmt.Sprintf("window %s, %s s to %s s", last.Name, number(last.From), number(last.To))
}

// Measures returns the columns of the table: the measures with a value other than 0.
func (o *Outcome) Measures() (all []string) {
	for _, m := range o.Cases[0].Measures {
		for i := range o.Cases {
			if mean := o.Cases[i].find(m.Measure).Mean; mean != nil && *mean != 0 {
				all = append(all, m.Measure)
				break
			}
		}
	}
	return all
}

// find returns an estimate; the zero Estimate is that of an unknown measure.
func (c *Case) find(measure string) (e Estimate) {
	if i := slices.IndexFunc(c.Measures, func(e Estimate) bool { return e.Measure == measure }); i >= 0 {
		return c.Measures[i]
	}
	return e
}

// Cell writes the estimate of a measure.
func (c *Case) Cell(measure string) string {
	e := c.find(measure)
	if e.Mean == nil {
		return "-"
	}
	s := number(*e.Mean)
	if e.Error != nil {
		s += fmt.Sprintf("±%.2g", *e.Error)
	}
	return s
}
