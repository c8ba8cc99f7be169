package scenario

import (
	"cmp"
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/seed90641741/spillway/sim"
)

// A Judgement is the result of an expectation.
type Judgement struct {
	Expectation

	Case string   `json:"case"` // the one that it is of, if there are several
	Got  *float64 `json:"got"`  // null: there is nothing that could be measured
	Pass bool     `json:"pass"`
}

// Text describes the judgement.
func (j *Judgement) Text() string {
	name := j.Measure
	if j.Over != "" {
		name += " over that of " + j.Over
	} else if j.Above != "" {
		name += " above that of " + j.Above
	}
	if j.Window != "" {
		name += " [" + j.Window + "]"
	}
	got := "not measured"
	if j.Got != nil {
		got = number(*j.Got)
	}
	s := fmt.Sprintf("%s is %s, expected %s", name, got, j.band())
	if j.Case != "" {
		s = j.Case + ": " + s
	}
	if j.Why != "" {
		s += " (" + j.Why + ")"
	}
	return s
}

func (e *Expectation) band() string {
	switch {
	case e.Least != nil && e.Most != nil:
		return number(*e.Least) + " to " + number(*e.Most)
	case e.Least != nil:
		return "at least " + number(*e.Least)
	default:
		return "at most " + number(*e.Most)
	}
}

func number(v float64) string { return fmt.Sprintf("%.4g", v) }

func (e *Expectation) holds(v float64) bool {
	return (e.Least == nil || v >= *e.Least) && (e.Most == nil || v <= *e.Most)
}

// judge compares the cases with the expectations. Cases of a sweep are judged only with the
// expectations of every variant.
func (s *Scenario) judge(cases []Case) (all []Judgement) {
	for _, e := range s.Expect {
		other := cmp.Or(e.Over, e.Above)
		reference := slices.IndexFunc(cases, func(c Case) bool { return c.Name == other })
		for i := range cases {
			if e.Variant != "" && e.Variant != cases[i].Name || other != "" && reference < 0 {
				continue
			}
			got := cases[i].mean(e.Measure, e.Window)
			if other != "" {
				got = e.compare(got, cases[reference].mean(e.Measure, e.Window))
			}
			all = append(all, Judgement{e, cases[i].Name, got, got != nil && e.holds(*got)})
		}
	}
	return all
}

// compare returns a over b, or how far a is above b, nil if it is unknown.
func (e *Expectation) compare(a, b *float64) *float64 {
	switch {
	case a == nil || b == nil || e.Over != "" && *b == 0:
		return nil
	case e.Over != "":
		return new(*a / *b)
	}
	return new(*a - *b)
}

// Measure returns a number of a result: NAME.FIELD, where NAME is that of clients or
// of a service, and FIELD one of its numbers in the window, as in JSON; or
// NAME.CLASS.FIELD; or NAME.recovery_s, the time from the begin of the window until
// the clients are well served for good; NAME.peak, how many times the mean the
// attempts of the busiest slot are; or NAME.arrived_per_call, what a service has seen
// for each call of the clients. The last window is the default. What was not measured
// is nil.
func Measure(r *sim.Result, measure, window string) (*float64, error) {
	name, field, _ := strings.Cut(measure, ".")
	w := len(r.Windows) - 1
	if window != "" {
		if w = slices.IndexFunc(r.Windows, func(s sim.Span) bool { return s.Name == window }); w < 0 {
			return nil, fmt.Errorf("there is no window %q", window)
		}
	}
	for i := range r.Services {
		if v := &r.Services[i]; v.Name == name {
			if field == "arrived_per_call" {
				return perCall(r, v, w), nil
			}
			return read(measure, field, v.Windows[w], sim.ServiceResult{Tasks: v.Tasks, CapacityRPS: v.CapacityRPS, Crashes: v.Crashes})
		}
	}
	for i := range r.Clients {
		if c := &r.Clients[i]; c.Name == name {
			return ofClients(r, c, w, measure, field)
		}
	}
	return nil, fmt.Errorf("measure %q names neither clients nor a service", measure)
}

// perCall returns the arrivals at a service per call of all clients.
func perCall(r *sim.Result, v *sim.ServiceResult, w int) *float64 {
	offered := 0
	for i := range r.Clients {
		offered += r.Clients[i].Windows[w].Offered
	}
	if offered == 0 {
		return nil
	}
	return new(float64(v.Windows[w].Arrived) / float64(offered))
}

func ofClients(r *sim.Result, c *sim.ClientsResult, w int, measure, field string) (*float64, error) {
	switch field {
	case "recovery_s":
		return recovery(r, c, r.Windows[w]), nil
	case "peak":
		return peak(r, c, r.Windows[w]), nil
	}
	class, rest, ok := strings.Cut(field, ".")
	if !ok {
		return read(measure, field, c.Windows[w], sim.ClientsResult{Count: c.Count, Fairness: c.Fairness})
	}
	for _, s := range c.Windows[w].Classes {
		if strings.EqualFold(s.Name, class) {
			return read(measure, rest, s)
		}
	}
	return nil, fmt.Errorf("measure %q: there is no class %q", measure, class)
}

// read returns the number of that name in JSON, of the first that has it.
func read(measure, field string, of ...any) (*float64, error) {
	for _, v := range of {
		var all map[string]any
		text, err := json.Marshal(v)
		if err == nil {
			err = json.Unmarshal(text, &all)
		}
		if err != nil {
			return nil, err
		}
		switch got, ok := all[field]; value := got.(type) {
		case float64:
			return &value, nil
		case nil:
			if ok { // it was not measured
				return nil, nil //nolint:nilnil // as Measure
			}
		}
	}
	return nil, fmt.Errorf("measure %q: there is no %q", measure, field)
}

// The clients are well served in a slot if at least this share of their calls was good.
const wellServed = 0.95

// recovery returns the time from the begin of a window until all its slots are well
// served; nil if the last is not.
func recovery(r *sim.Result, c *sim.ClientsResult, w sim.Span) *float64 {
	first, last := slots(r, w, len(c.Series.Good))
	back := last
	for back > first && float64(c.Series.Good[back-1]) >= wellServed*float64(c.Series.Offered[back-1]) {
		back--
	}
	if back == last {
		return nil
	}
	return new(max(math.Round((float64(back)*r.StepS-w.From)*1e6)/1e6, 0))
}

// slots returns the slots [first, last) of a window, at most n. Both times have rounding
// errors, so a quotient that is almost a whole number is rounded up to it.
func slots(r *sim.Result, w sim.Span, n int) (first, last int) {
	slot := func(at float64) int { return min(int(at/r.StepS+1e-6), n) }
	return slot(w.From), slot(w.To)
}

// peak returns the ratio of the attempts in the busiest slot of a window to the mean.
func peak(r *sim.Result, c *sim.ClientsResult, w sim.Span) *float64 {
	first, last := slots(r, w, len(c.Series.Attempts))
	attempts, sum := c.Series.Attempts[first:last], 0
	for _, n := range attempts {
		sum += n
	}
	if sum == 0 {
		return nil
	}
	return new(float64(slices.Max(attempts)) * float64(len(attempts)) / float64(sum))
}

// checkExpectations reports expectations that can never be measured, by an empty result.
func (s *Scenario) checkExpectations(empty *sim.Result) error {
	variants := []string{""}
	for _, v := range s.Variants {
		variants = append(variants, v.Name)
	}
	for i := range s.Expect {
		e, at := &s.Expect[i], fmt.Sprintf("expect[%d]", i)
		switch _, err := Measure(empty, e.Measure, e.Window); {
		case err != nil:
			return wrong(at+".measure", "is wrong: %v", err)
		case !slices.Contains(variants, e.Variant):
			return wrong(at+".variant", "is %q, which is no variant", e.Variant)
		case !slices.Contains(variants, e.Over):
			return wrong(at+".over", "is %q, which is no variant", e.Over)
		case !slices.Contains(variants, e.Above), e.Above != "" && e.Over != "":
			return wrong(at+".above", "is %q, must be a variant, and go without over", e.Above)
		case e.Least == nil && e.Most == nil:
			return wrong(at, "has neither a least nor a most")
		case !whole(e.Least) || !whole(e.Most):
			return wrong(at, "has a least or a most that is no number")
		case e.Least != nil && e.Most != nil && *e.Least > *e.Most:
			return wrong(at+".least", "is %v, must not be above most (%v)", *e.Least, *e.Most)
		}
	}
	return nil
}

// whole reports whether v is a number, or not given.
func whole(v *float64) bool { return v == nil || !math.IsNaN(*v) && !math.IsInf(*v, 0) }

// emptyResult returns a result with all names of c.
func emptyResult(c *sim.Config) *sim.Result {
	r := &sim.Result{StepS: 1}
	for _, w := range c.Windows {
		r.Windows = append(r.Windows, sim.Span{Name: w.Name})
	}
	if len(r.Windows) == 0 {
		r.Windows = []sim.Span{{Name: "all"}}
	}
	classes := []sim.ClassSummary{{Name: "SHEDDABLE"}, {Name: "SHEDDABLE_PLUS"}, {Name: "CRITICAL"}, {Name: "CRITICAL_PLUS"}}
	for i := range c.Services {
		r.Services = append(r.Services, sim.ServiceResult{Name: c.Services[i].Name, Windows: make([]sim.LoadSummary, len(r.Windows))})
	}
	for i := range c.Clients {
		windows := slices.Repeat([]sim.CallsSummary{{Classes: classes}}, len(r.Windows))
		r.Clients = append(r.Clients, sim.ClientsResult{Name: c.Clients[i].Name, Windows: windows})
	}
	return r
}
