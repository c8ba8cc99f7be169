package drill

import (
	"fmt"
	"slices"
	"time"

	"github.com/seed90641741/spillway/cmd/spillway/internal/lab/process"
)

// A Result is everything that one drill measured. The table, the JSON file and
// the HTML report are written from it and from nothing else.
//
// Times are in seconds from the intended start of a run, unless a name says
// otherwise. Latencies are taken from the intended send of a call, so that a
// slow generator or a full queue cannot hide them.
type Result struct {
	Started  time.Time `json:"started"`
	Machine  Machine   `json:"machine"`
	Settings Settings  `json:"settings"`
	// CapacityRPS is the capacity of the backend, measured in a closed loop: the mean of the values
	// right before and right after the run with Spillway, because the speed of a machine changes. An interrupted drill
	// has only the value before the first run, from which the load follows in any case. Zero: not measured.
	CapacityRPS       float64 `json:"capacity_rps"`
	CapacityBeforeRPS float64 `json:"capacity_before_rps"`
	CapacityAfterRPS  float64 `json:"capacity_after_rps"`
	// WorkBefore and WorkAfter are the processor time of a call in these two measurements, relative to the calibration; 0: unknown.
	WorkBefore float64 `json:"work_before"`
	WorkAfter  float64 `json:"work_after"`

	Without     *Run     `json:"without"`     // null: not begun
	With        *Run     `json:"with"`        // null: not begun
	Headline    []string `json:"headline"`    // the outcome in two short lines
	Checks      []Check  `json:"checks"`      // the promise, point by point; empty if interrupted
	Interrupted bool     `json:"interrupted"` // the drill was stopped; what is here is what was measured
	// Inconclusive says why the failed checks say nothing about Spillway: this machine was too busy to measure.
	// It is empty if they count, or if none failed.
	Inconclusive string `json:"inconclusive"`
	// Repeated says why the run with Spillway was made a second time, which is the one that counts: a check failed in the
	// first one, and the machine was too busy. It is empty if there was one run.
	Repeated string `json:"repeated"`
}

// Machine is where the drill ran.
type Machine struct {
	GoVersion  string `json:"go_version"`
	OS         string `json:"os"`
	Arch       string `json:"arch"`
	CPUs       int    `json:"cpus"`        // that this process may use
	CallerCPUs int    `json:"caller_cpus"` // GOMAXPROCS of the calling process; the backend has 1
}

// Settings are the settings of the drill, and the values that it derived from them.
type Settings struct {
	Scenario   string  `json:"scenario"` // step, or retry-storm, where the step is the outage
	Overload   float64 `json:"overload"` // offered during the step, in capacities
	Calm       float64 `json:"calm"`     // offered before and after the step, in capacities
	DeadlineMS float64 `json:"deadline_ms"`
	ServiceMS  float64 `json:"service_ms"` // CPU time of one call at the backend, or how long a blocking one holds its slot
	// OfferedUS and RejectionUS are what a call cost on this machine that the caller, or the backend, rejected. The work of a
	// call was chosen by them; 0 if it was set.
	OfferedUS   float64 `json:"offered_us"`
	RejectionUS float64 `json:"rejection_us"`
	// Saturated says that the machine is too small to leave the backend its processor.
	Saturated   bool      `json:"saturated"`
	Seed        uint64    `json:"seed"`
	Protect     string    `json:"protect"`       // who is, in the protected run: callers, server, both, proxy, none
	Backend     string    `json:"backend"`       // what a call does there: cpu, mixed, blocking
	Mix         []float64 `json:"mix"`           // calls of each class, from SHEDDABLE to CRITICAL_PLUS, in proportion
	Clients     int       `json:"clients"`       // that shared the load
	Wire        string    `json:"wire"`          // how they sent it
	Retries     int       `json:"retries"`       // of callers without Spillway, for each call
	MaxInFlight int       `json:"max_in_flight"` // of the protected callers together; 0: no limit
	// MaxInFlightRule says where MaxInFlight comes from.
	MaxInFlightRule string  `json:"max_in_flight_rule"`
	Connections     int     `json:"connections"` // at most, of all callers of a run
	Caller          string  `json:"caller"`      // the unprotected caller in a few words
	Protected       string  `json:"protected"`   // the protected one
	Phases          []Phase `json:"phases"`      // calm, step, recovery; the loads are known once the capacity is
}

// StepName returns the name of the step for readers.
func (s *Settings) StepName() string {
	if s.Scenario == ScenarioStorm {
		return "outage"
	}
	return "step"
}

// promises reports whose promises hold in the protected run. A proxy makes those of a server.
func (s *Settings) promises() (callers, server bool) {
	callers, server = Protects(s.Protect)
	return callers, server || s.Protect == ProtectProxy
}

// Work describes the work of a call at the backend.
func (s *Settings) Work() string {
	switch s.Backend {
	case process.KindMixed:
		return fmt.Sprintf("burns %s ms of one CPU and waits %s ms in between", number(s.ServiceMS), number(milliseconds(process.MixedWait)))
	case process.KindBlocking:
		return fmt.Sprintf("waits for one of %d slots and holds it for %s ms", process.Slots, number(s.ServiceMS))
	}
	return fmt.Sprintf("burns %s ms of one CPU", number(s.ServiceMS))
}

// A Phase is a stretch of constant offered load, [Start, End).
type Phase struct {
	Name       string  `json:"name"` // "calm", "step", "recovery"
	Start      float64 `json:"start_s"`
	End        float64 `json:"end_s"`
	Load       float64 `json:"load"`        // in capacities
	OfferedRPS float64 `json:"offered_rps"` // Load times the measured capacity
}

// The names of the phases, in order.
const (
	PhaseCalm     = "calm"
	PhaseStep     = "step"
	PhaseRecovery = "recovery"
)

// A Run is one caller's way through all phases. A call belongs to the phase in
// which its intended send lies, however late it was sent or answered. GoodputRPS,
// GoodputRatio, P50MS, P99MS, Samples, AttemptsPerCall and the embedded Counts
// are of the step; Phases has the Counts of all three.
type Run struct {
	GoodputRPS   float64 `json:"goodput_rps"`
	GoodputRatio float64 `json:"goodput_ratio"` // GoodputRPS over Result.CapacityRPS
	// P50MS and P99MS are of the answers within the deadline; Samples is their number.
	// P50MS is null without samples, P99MS below MinSamplesP99 of them.
	P50MS   *float64 `json:"p50_ms"`
	P99MS   *float64 `json:"p99_ms"`
	Samples int      `json:"samples"`
	// AttemptsPerCall is attempts over calls that made at least one: what the
	// retries made of the load. Calls rejected locally are not in it.
	AttemptsPerCall float64 `json:"attempts_per_call"`
	Counts
	// RecoverS is the time from the end of the step until the service recovered; null: not
	// within the recovery phase. See sampling.RecoveryWindow.
	RecoverS *float64 `json:"recover_s"`
	// Work is the processor time of a call, relative to the calibration, in the mean of the answers of the step; null: unknown.
	Work *float64 `json:"work"`
	// Taken is the share of the backend's processor that other programs and the host of a virtual machine took during the step,
	// and TakenWorst the same in the worst quarter of a second from the beginning of the step on; null where it is not known,
	// which is everywhere but on Linux.
	Taken      *float64 `json:"taken"`
	TakenWorst *float64 `json:"taken_worst"`
	// Page is what the page for operators of the protected server said at the end of the step; null without such a page.
	Page *Page `json:"page"`
	// LateSends counts the calls of the whole run that were sent later than a quarter of the deadline, or not at all.
	LateSends int `json:"late_sends"`
	// LatenessP50MS and LatenessP99MS say how far behind the intended send the
	// generator was, over all sends of the run.
	LatenessP50MS float64       `json:"lateness_p50_ms"`
	LatenessP99MS float64       `json:"lateness_p99_ms"`
	Phases        []NamedCounts `json:"phases"`  // calm, step, recovery
	Classes       []NamedCounts `json:"classes"` // of the step, the highest class first
	Series        Series        `json:"series"`
	// Seconds is how much of the schedule was offered; less than the last
	// phase's end if the run was interrupted.
	Seconds float64 `json:"seconds"`
}

// NamedCounts is the Counts of one phase, or of one criticality during the step.
type NamedCounts struct {
	Name string `json:"name"`
	Counts
}

// Rejected is the number of rejected calls, local and remote.
func (c *Counts) Rejected() int { return c.RejectedLocal + c.RejectedByBackend }

// Counts counts calls by outcome. Offered is the sum of the fields that follow, down to
// Unfinished: each call is counted in exactly one of them.
type Counts struct {
	Offered           int `json:"offered"`             // calls that the schedule asked for
	Goodput           int `json:"goodput"`             // answered 2xx within the deadline
	Late              int `json:"late"`                // answered 2xx, but after the deadline
	RejectedLocal     int `json:"rejected_local"`      // rejected by Spillway in the caller
	RejectedByBackend int `json:"rejected_by_backend"` // last answer was 503 or 429
	TimedOut          int `json:"timed_out"`           // no answer at all in time
	Failed            int `json:"failed"`              // anything else: connection errors, other statuses
	DroppedSends      int `json:"dropped_sends"`       // the generator could not send in time, or was full
	Unfinished        int `json:"unfinished"`          // cut short by the end of the run or an interrupt
	// RejectedLocal by the policy that rejected.
	RejectedThrottle int `json:"rejected_throttle"`
	RejectedInFlight int `json:"rejected_inflight"`
	// Attempts were handed to the connection pool; Retries are the attempts after the
	// first of their call. Both count by the phase, or the slot of the series, of the
	// call's intended send.
	Attempts int `json:"attempts"`
	Retries  int `json:"retries"`
}

// A Series is a run over time, in slots of StepS seconds. All slices have the same
// length, unless their field says when they are null. Calls count in the slot of their
// intended send, unless the field says otherwise: divide by StepS for a rate.
type Series struct {
	StepS float64   `json:"step_s"`
	T     []float64 `json:"t"` // start of the slot

	Offered           []int `json:"offered"`
	Goodput           []int `json:"goodput"`
	Late              []int `json:"late"`
	RejectedLocal     []int `json:"rejected_local"`
	RejectedThrottle  []int `json:"rejected_throttle"`
	RejectedInFlight  []int `json:"rejected_inflight"`
	RejectedByBackend []int `json:"rejected_by_backend"`
	TimedOut          []int `json:"timed_out"`
	Failed            []int `json:"failed"`
	DroppedSends      []int `json:"dropped_sends"`

	// Attempts and Retries count in the slot in which the attempt was made.
	Attempts []int `json:"attempts"`
	Retries  []int `json:"retries"`

	// P50MS and P99MS are of all calls of the slot that were answered 2xx, late ones
	// included; null without such calls. A slot has few samples, so its 99th percentile is
	// close to the maximum: use it for charts only.
	P50MS []*float64 `json:"p50_ms"`
	P99MS []*float64 `json:"p99_ms"`

	// InFlight is the most attempts in flight at once during the slot.
	InFlight []int `json:"in_flight"`
	// Limit is the in-flight limit; null without protection.
	Limit []int `json:"limit"`
	// Budget is the lowest level of the retry budget seen during the slot, as a
	// share of its capacity; null without protection.
	Budget []float64 `json:"budget"`
}

// A Check is one condition that the protected run must meet.
type Check struct {
	Name string   `json:"name"` // "goodput", "recovery", ...
	Pass bool     `json:"pass"`
	Got  *float64 `json:"got"`  // null: there is nothing that could be measured
	Want float64  `json:"want"` // the bound
	Text string   `json:"text"` // the whole point in words, for all three outputs
}

// Passed reports whether the drill ran to its end and all checks hold.
func (r *Result) Passed() bool {
	return !r.Interrupted && len(r.Checks) > 0 && !slices.ContainsFunc(r.Checks, func(c Check) bool { return !c.Pass })
}
