package sim

import (
	"math"
	"strconv"

	"github.com/seed90641741/spillway"
)

// A Result has all measurements. It depends on nothing but the [Config]: the
// same one yields the same bytes of JSON on every run and every machine. Numbers
// that are not whole are rounded to six digits.
type Result struct {
	Seed     uint64          `json:"seed"`
	Seconds  float64         `json:"seconds"`
	StepS    float64         `json:"step_s"`
	Events   uint64          `json:"events"` // of the simulation
	Calls    uint64          `json:"calls"`  // of clients and services
	Windows  []Span          `json:"windows"`
	Clients  []ClientsResult `json:"clients"`
	Services []ServiceResult `json:"services"`
}

// A Span is a [Window] in seconds.
type Span struct {
	Name string  `json:"name"`
	From float64 `json:"from_s"`
	To   float64 `json:"to_s"`
}

// ClientsResult is of one group of clients. Calls count into the windows and slots
// of their intended start; Attempts of the series when they were sent.
type ClientsResult struct {
	Name    string         `json:"name"`
	Count   int            `json:"count"`
	Windows []CallsSummary `json:"windows"` // as in Result.Windows
	// Fairness is Jain's index of the useful answers of the clients over all the
	// time: 1 if each got as many, 1/Count if one got all.
	Fairness float64      `json:"fairness"`
	Series   ClientSeries `json:"series"`
}

// CallsSummary is of a group in a window.
type CallsSummary struct {
	Counts

	GoodputRPS      float64        `json:"goodput_rps"`
	Success         float64        `json:"success"`           // good over offered
	AttemptsPerCall float64        `json:"attempts_per_call"` // of calls that were sent at all
	P50MS           *float64       `json:"p50_ms"`            // of good calls; null: there are none
	P90MS           *float64       `json:"p90_ms"`
	P99MS           *float64       `json:"p99_ms"`
	Classes         []ClassSummary `json:"classes,omitempty"` // where there are several, the highest first
}

// ClassSummary is of one criticality.
type ClassSummary struct {
	Name string `json:"name"`
	Counts

	Success float64 `json:"success"`
}

// ClientSeries is of a group over time, a number for each slot.
type ClientSeries struct {
	Offered           []int      `json:"offered"`
	Good              []int      `json:"good"`
	Late              []int      `json:"late"`
	RejectedThrottle  []int      `json:"rejected_throttle"`
	RejectedInFlight  []int      `json:"rejected_inflight"`
	RejectedByBackend []int      `json:"rejected_by_backend"`
	TimedOut          []int      `json:"timed_out"`
	Failed            []int      `json:"failed"`
	Attempts          []int      `json:"attempts"`
	P50MS             []*float64 `json:"p50_ms"` // of the answers that came in the slot; null: none
	P99MS             []*float64 `json:"p99_ms"`
}

// ServiceResult is of one service. What happened counts when it did.
type ServiceResult struct {
	Name  string `json:"name"`
	Tasks int    `json:"tasks"`
	// CapacityRPS is how many requests all tasks together can serve per second: as
	// their processors and their slots allow. Zero means that nothing bounds it.
	CapacityRPS float64       `json:"capacity_rps"`
	Crashes     int           `json:"crashes"` // for lack of memory
	Windows     []LoadSummary `json:"windows"` // as in Result.Windows
	Series      ServiceSeries `json:"series"`
}

// LoadSummary is of a service in a window.
type LoadSummary struct {
	Load

	ArrivedRPS float64 `json:"arrived_rps"`
	ServedRPS  float64 `json:"served_rps"`
	// Load is what arrived, and Goodput what was served, in capacities.
	LoadRatio    float64 `json:"load_ratio"`
	GoodputRatio float64 `json:"goodput_ratio"`
	Utilization  float64 `json:"utilization"` // of the processors
}

// ServiceSeries is of a service over time, a number for each slot.
type ServiceSeries struct {
	Arrived     []int     `json:"arrived"`
	Served      []int     `json:"served"`
	Rejected    []int     `json:"rejected"`
	Present     []int     `json:"present"`
	Utilization []float64 `json:"utilization"`
}

// rounded returns v with six digits, so that no machine's last bit shows.
func rounded(v float64) float64 {
	r, _ := strconv.ParseFloat(strconv.FormatFloat(v, 'g', 6, 64), 64) // of a number in this form, cannot fail
	return r
}

// ratio returns a over b, 0 if b is.
func ratio(a, b float64) float64 {
	if b == 0 {
		return 0
	}
	return rounded(a / b)
}

func (s *Sim) result() *Result {
	r := &Result{
		Seed: s.config.Seed, Seconds: rounded(s.config.Duration.Seconds()), StepS: rounded(s.config.Step.Seconds()),
		Events: s.events, Calls: s.begun,
	}
	for _, w := range s.config.Windows {
		r.Windows = append(r.Windows, Span{w.Name, rounded(w.From.Seconds()), rounded(w.To.Seconds())})
	}
	for _, g := range s.groups {
		g.sampled()
		r.Clients = append(r.Clients, g.result())
	}
	for _, v := range s.services {
		r.Services = append(r.Services, v.result())
	}
	return r
}

func (g *group) result() ClientsResult {
	r := ClientsResult{Name: g.config.Name, Count: g.config.Count, Fairness: g.fairness()}
	for i := range g.sums {
		r.Windows = append(r.Windows, g.summary(i))
	}
	s := &r.Series
	for _, c := range g.series {
		s.Offered = append(s.Offered, c.Offered)
		s.Good = append(s.Good, c.Good)
		s.Late = append(s.Late, c.Late)
		s.RejectedThrottle = append(s.RejectedThrottle, c.RejectedThrottle)
		s.RejectedInFlight = append(s.RejectedInFlight, c.RejectedInFlight)
		s.RejectedByBackend = append(s.RejectedByBackend, c.RejectedByBackend)
		s.TimedOut = append(s.TimedOut, c.TimedOut)
		s.Failed = append(s.Failed, c.Failed)
		s.Attempts = append(s.Attempts, c.Attempts)
	}
	s.P50MS, s.P99MS = g.p50[:len(s.Good)], g.p99[:len(s.Good)]
	return r
}

func (g *group) summary(i int) CallsSummary {
	w, span := &g.sums[i], g.Sim.config.Windows[i]
	c := w.Counts
	r := CallsSummary{
		Counts: c, GoodputRPS: ratio(float64(c.Good), (span.To - span.From).Seconds()),
		Success: ratio(float64(c.Good), float64(c.Offered)), AttemptsPerCall: ratio(float64(c.Attempts), float64(c.Sent)),
		P50MS: w.latency.millis(0.5), P90MS: w.latency.millis(0.9), P99MS: w.latency.millis(0.99),
	}
	if len(g.classes) == 1 {
		return r
	}
	for class := len(w.classes) - 1; class >= 0; class-- {
		n := w.classes[class]
		name := (spillway.Criticality(class) + spillway.Sheddable).String()
		r.Classes = append(r.Classes, ClassSummary{name, n, ratio(float64(n.Good), float64(n.Offered))})
	}
	return r
}

// fairness is Jain's index.
func (g *group) fairness() float64 {
	var sum, squares float64
	for i := range g.edge.callers {
		n := float64(g.edge.callers[i].good)
		sum += n
		squares += float64(n * n)
	}
	return ratio(float64(sum*sum), float64(len(g.edge.callers))*squares)
}

// capacity returns how many requests per second all tasks can serve.
func (s *Service) capacity() float64 {
	rate := math.Inf(1)
	if cpu := s.CPU.Mean(); cpu > 0 {
		rate = float64(s.Processors) / cpu.Seconds()
	}
	if wait := s.Wait.Mean(); wait > 0 && s.Slots > 0 {
		rate = min(rate, float64(s.Slots)/wait.Seconds())
	}
	if math.IsInf(rate, 1) {
		return 0
	}
	return rate * float64(s.Tasks)
}

func (v *service) result() ServiceResult {
	r := ServiceResult{Name: v.config.Name, Tasks: v.config.Tasks, CapacityRPS: rounded(v.config.capacity()), Crashes: v.crashed}
	for _, t := range v.tasks {
		t.account()
	}
	for i, w := range v.Sim.config.Windows {
		r.Windows = append(r.Windows, v.summary(v.sums[i], (w.To-w.From).Seconds()))
	}
	for i := range v.series {
		l := v.summary(v.series[i], v.Sim.config.Step.Seconds())
		r.Series.Arrived = append(r.Series.Arrived, l.Arrived)
		r.Series.Served = append(r.Series.Served, l.Served)
		r.Series.Rejected = append(r.Series.Rejected, l.Rejected)
		r.Series.Present = append(r.Series.Present, l.Present)
		r.Series.Utilization = append(r.Series.Utilization, l.Utilization)
	}
	return r
}

func (v *service) summary(l Load, length float64) LoadSummary {
	s := LoadSummary{Load: l, ArrivedRPS: ratio(float64(l.Arrived), length), ServedRPS: ratio(float64(l.Served), length)}
	s.Utilization = ratio(float64(l.BusyNS)/1e9, length*float64(v.config.Tasks*v.config.Processors))
	if c := v.config.capacity(); c > 0 {
		s.LoadRatio, s.GoodputRatio = rounded(s.ArrivedRPS/c), rounded(s.ServedRPS/c)
	}
	return s
}
