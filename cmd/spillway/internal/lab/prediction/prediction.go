// Package prediction predicts the results of a drill by the simulator, from the settings of the drill
// and the capacity of its backend alone, and compares them with what was measured.
package prediction

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"text/tabwriter"
	"time"

	"github.com/seed90641741/spillway"
	"github.com/seed90641741/spillway/cmd/spillway/internal/lab/drill"
	"github.com/seed90641741/spillway/cmd/spillway/internal/lab/load"
	"github.com/seed90641741/spillway/cmd/spillway/internal/lab/process"
	"github.com/seed90641741/spillway/egress"
	"github.com/seed90641741/spillway/ingress"
	"github.com/seed90641741/spillway/retry"
	"github.com/seed90641741/spillway/sim"
)

// Agreements are the figures of both runs of a drill.
type Agreements []Agreement

// Within reports whether all figures are within their bands.
func (all Agreements) Within() bool {
	return !slices.ContainsFunc(all, func(a Agreement) bool { return !a.Pass })
}

// An Agreement is one figure as it was measured and as it was predicted.
type Agreement struct {
	Run       string `json:"run"` // without or with protection
	Figure    string `json:"figure"`
	Measured  Figure `json:"measured"`
	Predicted Figure `json:"predicted"`
	Band      Figure `json:"may_differ_by"` // missing where nothing was measured
	Pass      bool   `json:"pass"`
}

func agreementOf(run, figure string, measured, predicted, band float64) Agreement {
	pass := math.Abs(measured-predicted) <= band || math.IsNaN(measured) && math.IsNaN(predicted)
	return Agreement{run, figure, Figure(measured), Figure(predicted), Figure(band), pass}
}

// A Figure is a number. NaN is one that is missing, as nothing was answered, or the service did not
// come back.
type Figure float64

// MarshalJSON implements [json.Marshaler]: a missing figure is null.
func (f Figure) MarshalJSON() ([]byte, error) {
	if math.IsNaN(float64(f)) {
		return []byte("null"), nil
	}
	return json.Marshal(float64(f))
}

// String returns the figure for a table.
func (f Figure) String() string {
	if math.IsNaN(float64(f)) {
		return "none"
	}
	return fmt.Sprintf("%.3f", float64(f))
}

// The bands: goodput in capacities, success as a share of what was offered, attempts.
// A recovery is a chain of random probes, and how long it takes decides on the success
// after it. Latencies have what the only processor of the callers adds.
const (
	goodputBand  = 0.05
	successBand  = 0.1
	attemptsBand = 0.05
)

func recoveryBand(measured float64) float64 { return 0.5 + 0.25*measured } // s
func latencyBand(measured float64) float64  { return 1 + 0.15*measured }   // ms

// Of predicts a drill from its result in JSON, and compares. The seed is for the simulation,
// which has other arrivals than the drill.
func Of(ctx context.Context, text []byte, seed uint64) (Agreements, error) {
	var r drill.Result
	if err := json.Unmarshal(text, &r); err != nil {
		return nil, err
	}
	if !whole(&r) {
		return nil, errors.New("is no result of a whole drill")
	}
	callers, server := drill.Protects(r.Settings.Protect)
	var all Agreements
	for _, side := range []struct {
		name            string
		run             *drill.Run
		callers, server bool
	}{{"without", r.Without, false, false}, {"with", r.With, callers, server}} {
		s, err := sim.New(model(&r, side.callers, side.server, seed))
		if err != nil {
			return nil, err
		}
		predicted, err := s.Run(ctx)
		if err != nil {
			return nil, err
		}
		all = append(all, compare(&r, side.name, side.run, predicted)...)
	}
	return all, nil
}

func whole(r *drill.Result) bool {
	set := &r.Settings
	return !r.Interrupted && r.CapacityRPS > 0 && len(set.Phases) == 3 && len(set.Mix) == spillway.Criticalities && set.Clients > 0 &&
		r.Without != nil && r.With != nil && len(r.Without.Phases) == 3 && len(r.With.Phases) == 3
}

// loopback is the one-way latency of a message, and shedding the cost of a rejection.
const (
	loopback = 50 * time.Microsecond
	shedding = 13 * time.Microsecond
)

func model(r *drill.Result, callers, server bool, seed uint64) sim.Config {
	set := &r.Settings
	c := sim.Config{
		Seed: seed, Duration: seconds(set.Phases[2].End) + 4*deadlineOf(set), Step: load.RecoveryWindow,
		Services: []sim.Service{backendOf(r, server)},
		Clients:  []sim.Clients{callersOf(set, callers)},
	}
	for _, p := range set.Phases {
		c.Windows = append(c.Windows, sim.Window{Name: p.Name, From: seconds(p.Start), To: seconds(p.End)})
	}
	if set.Scenario == drill.ScenarioStorm {
		p := set.Phases[1]
		c.Faults = []sim.Fault{{Kind: sim.Hang, Service: "backend", At: seconds(p.Start), For: seconds(p.End - p.Start)}}
	}
	return c
}

func deadlineOf(set *drill.Settings) time.Duration {
	return time.Duration(set.DeadlineMS * float64(time.Millisecond))
}

func backendOf(r *drill.Result, protected bool) sim.Service {
	s := sim.Service{Name: "backend", CPU: sim.Constant(time.Duration(float64(time.Second) / r.CapacityRPS))}
	switch r.Settings.Backend {
	case process.KindMixed:
		s.Wait = sim.Constant(process.MixedWait)
	case process.KindBlocking:
		s.CPU, s.Wait, s.Slots = sim.Dist{}, sim.Constant(time.Duration(r.Settings.ServiceMS*float64(time.Millisecond))), process.Slots
	}
	if protected {
		s.Ingress = &ingress.Config{Trust: ingress.Trust{Boundary: ingress.Internal}}
		s.Rejection, s.Hints = shedding, true
	}
	return s
}

func callersOf(set *drill.Settings, protected bool) sim.Clients {
	g := sim.Clients{
		Name: "callers", Count: set.Clients, Useful: deadlineOf(set), Classes: [spillway.Criticalities]float64(set.Mix),
		Call: sim.Edge{
			To: "backend", Latency: sim.Constant(loopback), Connections: max(set.Connections/set.Clients, 1),
			Leave: set.Backend == process.KindBlocking, // a call waits for a slot until its caller gives up
		},
	}
	for _, p := range set.Phases {
		g.Rates = append(g.Rates, sim.Rate{At: seconds(p.Start), Rate: p.OfferedRPS})
	}
	g.Rates = append(g.Rates, sim.Rate{At: seconds(set.Phases[2].End)})
	if protected {
		g.Deadline = deadlineOf(set)
		g.Call.Egress.MaxInFlight = set.MaxInFlight / set.Clients
		return g
	}
	g.Call.Egress = egress.Config{ThrottleMode: spillway.ModeOff, InFlightMode: spillway.ModeOff}
	g.Call.Timeout = deadlineOf(set)
	g.Call.Retry = sim.Retry{Unlimited: true, Budgeted: retry.BudgetedConfig{MaxAttempts: 1 + set.Retries}}
	return g
}

func seconds(s float64) time.Duration { return time.Duration(s * float64(time.Second)) }

func compare(r *drill.Result, name string, run *drill.Run, predicted *sim.Result) []Agreement {
	const step = 1
	w := predicted.Clients[0].Windows
	length := r.Settings.Phases[step].End - r.Settings.Phases[step].Start
	p50, recovered := number(run.P50MS), number(run.RecoverS)
	all := []Agreement{
		agreementOf(name, "success before", success(&run.Phases[0].Counts), w[0].Success, successBand),
		agreementOf(name, "goodput in capacities", run.GoodputRatio, float64(w[step].Good)/length/r.CapacityRPS, goodputBand),
		agreementOf(name, "attempts per call", run.AttemptsPerCall, w[step].AttemptsPerCall, attemptsBand),
		agreementOf(name, "success after", success(&run.Phases[2].Counts), w[2].Success, successBand),
		agreementOf(name, "recovery, s", recovered, back(r, predicted), recoveryBand(recovered)),
	}
	if run.Samples >= drill.MinSamplesP99 {
		all = append(all, agreementOf(name, "p50, ms", p50, number(w[step].P50MS), latencyBand(p50)))
	}
	return all
}

func success(c *drill.Counts) float64 { return float64(c.Goodput) / float64(max(c.Offered, 1)) }

func number(v *float64) float64 {
	if v == nil {
		return math.NaN()
	}
	return *v
}

// back returns how long after the step the service was back, as the drill defines it.
func back(r *drill.Result, predicted *sim.Result) float64 {
	s := &predicted.Clients[0].Series
	from := int(math.Round(r.Settings.Phases[1].End / predicted.StepS))
	until := min(int(math.Round(r.Settings.Phases[2].End/predicted.StepS)), len(s.Good))
	took, ok := load.Recovery(until-from, func(i int) (offered, answered int) { return s.Offered[from+i], s.Good[from+i] })
	if !ok {
		return math.NaN()
	}
	return took.Seconds()
}

// WriteTable writes a line for each figure.
func (all Agreements) WriteTable(w io.Writer) error {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(t, "run\tfigure\tmeasured\tpredicted\tmay differ by\t\t")
	for i := range all {
		a := &all[i]
		verdict := map[bool]string{true: "PASS", false: "FAIL"}[a.Pass]
		fmt.Fprintf(t, "%s\t%s\t%v\t%v\t%s\t%s\t\n", a.Run, a.Figure, a.Measured, a.Predicted, a.band(), verdict)
	}
	return t.Flush()
}

// band returns the difference that is allowed, for the table: none if a figure is missing.
func (a *Agreement) band() string {
	if math.IsNaN(float64(a.Band)) {
		return "-"
	}
	return fmt.Sprintf("%.3g", float64(a.Band))
}
