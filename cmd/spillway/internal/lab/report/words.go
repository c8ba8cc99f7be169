package report

import (
	"fmt"

	"github.com/seed90641741/spillway/cmd/spillway/internal/lab/drill"
	"github.com/seed90641741/spillway/cmd/spillway/internal/lab/load"
)

// A caller is one of the two that were compared.
type caller struct {
	Name  string // "without", "with"
	About string
	Run   *drill.Run
}

// callers returns the caller without protection and the one with it.
func callers(r *drill.Result) []caller {
	return []caller{{"without", r.Settings.Caller, r.Without}, {"with", r.Settings.Protected, r.With}}
}

// A chart is a pair of plots, one for each caller, on the same scales. Plots are
// drawn by report.js, which knows each by its name.
type chart struct {
	Plots []string
	Title string
	About string
}

var charts = []chart{
	{[]string{"goodput"}, "Useful answers", "Goodput per second against what the backend can do."},
	{[]string{"load"}, "Load", "What callers wanted and what was sent, retries included. Log scale."},
	{[]string{"fate"}, "Outcome of every call", "Stacked: each call is in exactly one layer, at the time it was to be sent."},
	{[]string{"latency"}, "Latency of answers", "From the intended send, late answers included. Log scale. A gap has no answers."},
	{[]string{"retries", "budget"}, "Retries", "Retries for each first attempt, over the last second; below, what is left of the retry budget."},
	{[]string{"inflight"}, "In flight", "Most attempts in flight at once, and the limit. Log scale."},
}

// A term is a figure of the report and what it means.
type term struct{ Name, Meaning string }

var terms = []term{
	{"Offered", "Calls that the arrival schedule asked for, with any outcome."},
	{"Goodput", "Calls answered 2xx within the deadline, counted from the intended send."},
	{"Share of capacity", "Goodput per second over the capacity of the backend."},
	{"Capacity", "Answers per second that the backend gave in a closed loop: the mean of right before the run with Spillway and right after it."},
	{"Latency p50, p99", fmt.Sprintf("Quantiles over the answers within the deadline, n of them; p99 only where n is at least %s.", count(drill.MinSamplesP99))},
	{"Attempts per call", "Attempts handed to the connection pool over calls that made at least one; calls rejected locally are not in it."},
	{"Recovery", fmt.Sprintf("From the end of the step to the start of the first window of %v from which on, "+
		"for %v, each window had at least %s of its calls answered in time.",
		load.RecoveryWindow, load.RecoveryHold, asSet(100*load.RecoveryShare, nbsp+"%"))},
	{"Class", "The criticality that the caller gave the call. When not all can be served, one is rejected only if all lower ones are."},
	{"Rejected locally", "Calls that Spillway rejected in the caller at last, by its throttle or its in-flight limit: they cost the backend nothing."},
	{"Rejected remotely", "Calls whose last answer was 503 or 429, by the backend or by a proxy before it."},
	{"Late", "Calls answered 2xx after the deadline: work of the backend that was of no use."},
	{"Timed out", "Calls that had no answer at all in time."},
	{"Failed", "Calls with any other end: connection errors, other statuses."},
	{"Dropped sends", "Calls that the load generator could not send in time, or had no room for. They make the overload smaller than asked for."},
	{"Retry budget", "Lowest level in each slot, as a share of its capacity; the unprotected caller has none."},
}
