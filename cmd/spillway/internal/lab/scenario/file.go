// Package scenario reads the files that "spillway sim" runs: what system there is,
// what happens to it, what is varied, and what is to come out. They are YAML, of
// which JSON is a part.
package scenario

import (
	"time"

	"github.com/seed90641741/spillway"
	"github.com/seed90641741/spillway/sim"
)

// A File is a scenario as it is written.
type File struct {
	Name     string        `yaml:"name" jsonschema:"required" jsonschema_description:"What the scenario is called."`
	About    string        `yaml:"about" jsonschema_description:"What it shows, in a sentence or two."`
	Source   string        `yaml:"source" jsonschema_description:"Where the claim is from."`
	Claim    string        `yaml:"claim" jsonschema_description:"What the source says must come out."`
	Seed     uint64        `yaml:"seed" jsonschema_description:"Where all randomness comes from; 0 is 1."`
	Duration time.Duration `yaml:"duration" jsonschema:"required" jsonschema_description:"How much time passes."`
	Step     time.Duration `yaml:"step" jsonschema_description:"Length of a slot of the charts; 0 is 1s."`
	Windows  []Window      `yaml:"windows" jsonschema_description:"Stretches of time to sum up; without any, all of it, named all."`
	Clients  []Clients     `yaml:"clients" jsonschema:"required" jsonschema_description:"Those who want something."`
	Services []Service     `yaml:"services" jsonschema:"required" jsonschema_description:"Those who do it."`
	Faults   []Fault       `yaml:"faults" jsonschema_description:"What goes wrong."`
	Variants []Variant     `yaml:"variants" jsonschema_description:"The same with some values changed; without any, one run as it is."`
	Quick    []Setting     `yaml:"quick" jsonschema_description:"Values for a short version that asserts the same, for tests."`
	Expect   []Expectation `yaml:"expect" jsonschema_description:"What must come out."`
}

// A Window is a stretch of time with a name.
type Window struct {
	Name string        `yaml:"name" jsonschema:"required"`
	From time.Duration `yaml:"from"`
	To   time.Duration `yaml:"to" jsonschema_description:"0 is the end."`
}

// Clients are clients that are alike.
type Clients struct {
	Name     string          `yaml:"name" jsonschema:"required"`
	Count    int             `yaml:"count" jsonschema_description:"How many there are; 0 is 1."`
	Rate     float64         `yaml:"rate" jsonschema_description:"Calls per second of all of them, open loop (Poisson)."`
	Rates    []Rate          `yaml:"rates" jsonschema_description:"Changes of the rate."`
	Trace    []time.Duration `yaml:"trace" jsonschema_description:"Times of calls, in place of a rate."`
	Loop     bool            `yaml:"loop" jsonschema_description:"Closed loop: each client has one call at a time, in place of a rate."`
	Think    sim.Dist        `yaml:"think" jsonschema_description:"How long a client of a closed loop waits before each call."`
	Deadline time.Duration   `yaml:"deadline" jsonschema_description:"How long after its intended start a call is given up; 0 is never."`
	Useful   time.Duration   `yaml:"useful" jsonschema_description:"How long after its intended start an answer is of use; 0 is the deadline."`
	Classes  Classes         `yaml:"classes" jsonschema_description:"How many calls have each criticality, in proportion; all are critical by default."`
	Customer string          `yaml:"customer" jsonschema_description:"On whose behalf they call, for quotas."`
	Call     Edge            `yaml:"call" jsonschema:"required" jsonschema_description:"How they call."`
}

// A Rate is a rate of calls from a time on.
type Rate struct {
	At   time.Duration `yaml:"at" jsonschema:"required"`
	Rate float64       `yaml:"rate" jsonschema:"required"`
}

// Classes has a number for each criticality.
type Classes struct {
	Sheddable     float64 `yaml:"sheddable"`
	SheddablePlus float64 `yaml:"sheddable_plus"`
	Critical      float64 `yaml:"critical"`
	CriticalPlus  float64 `yaml:"critical_plus"`
}

func (c Classes) array() [spillway.Criticalities]float64 {
	return [...]float64{c.Sheddable, c.SheddablePlus, c.Critical, c.CriticalPlus}
}

// An Edge is how callers call a service.
type Edge struct {
	To           string        `yaml:"to" jsonschema:"required" jsonschema_description:"The service."`
	Throttle     Throttle      `yaml:"throttle" jsonschema_description:"Adaptive throttling, of each caller."`
	MaxRequests  int           `yaml:"max_requests" jsonschema_description:"In-flight limit of each caller; 0 is 1024, negative is none."`
	InflightMode Mode          `yaml:"inflight_mode" jsonschema_description:"Whether the in-flight limit enforces, observes or is off."`
	Retry        Retry         `yaml:"retry" jsonschema_description:"Retries, with a budget of each caller's own."`
	Kind         string        `yaml:"kind" jsonschema:"enum=read,enum=write" jsonschema_description:"What the calls do; reads, the default, may be repeated."`
	Timeout      time.Duration `yaml:"timeout" jsonschema_description:"How long an attempt may take; 0 is until the deadline."`
	Connections  int           `yaml:"connections" jsonschema_description:"Attempts that each caller may have on the way at once; more wait. 0 is no bound."`
	Latency      sim.Dist      `yaml:"latency" jsonschema_description:"How long a message takes one way."`
	Loss         float64       `yaml:"loss" jsonschema_description:"Share of messages that get lost, each way."`
	Balance      sim.Balance   `yaml:"balance" jsonschema:"enum=random,enum=round_robin,enum=least_busy" jsonschema_description:"Which task gets a request."`
	Subset       int           `yaml:"subset" jsonschema_description:"How many tasks each caller knows; 0 is all."`
	Retarget     bool          `yaml:"retarget" jsonschema_description:"A retry avoids the tasks that earlier attempts found overloaded."`
	Leave        bool          `yaml:"leave" jsonschema_description:"The server notices when a caller gives up."`
}

// Mode is that of a gate.
type Mode string

// Throttle is throttle.Config.
type Throttle struct {
	Mode          Mode          `yaml:"mode" jsonschema_description:"enforce, observe or off."`
	K             float64       `yaml:"k" jsonschema_description:"Calls sent for each that is accepted; 0 is 2."`
	Window        time.Duration `yaml:"window" jsonschema_description:"How long past calls are remembered; 0 is 30s."`
	ProbeInterval time.Duration `yaml:"probe_interval" jsonschema_description:"How often a backend that accepts nothing is tried; 0 is 1s."`
	MinRequests   int           `yaml:"min_requests" jsonschema_description:"Calls that the window must hold before any is refused; 0 is 10, negative is none."`
}

// Retry is a strategy of package retry. Fields that the strategy does not have must
// be left out.
type Retry struct {
	Strategy      sim.Strategy  `yaml:"strategy" jsonschema:"enum=budgeted,enum=standard,enum=overload" jsonschema_description:"budgeted is the default."`
	Revision      string        `yaml:"revision" jsonschema_description:"Of standard (2.0, 2.1) or overload (2026-02, 2026-07)."`
	Attempts      int           `yaml:"attempts" jsonschema_description:"Of a call, the first included; of budgeted and standard, 0 is 3."`
	Ratio         float64       `yaml:"ratio" jsonschema_description:"Of budgeted: retries for each original; 0 is 0.1."`
	MaxRetries    int           `yaml:"max_retries" jsonschema_description:"Of overload, after an overload; 0 is 5."`
	OtherRetries  int           `yaml:"other_retries" jsonschema_description:"Of overload, as long as there was none; 0 is 1."`
	Base          time.Duration `yaml:"base" jsonschema_description:"Longest wait before the first retry."`
	Max           time.Duration `yaml:"max" jsonschema_description:"Longest wait at all."`
	OverloadBase  time.Duration `yaml:"overload_base" jsonschema_description:"Of standard: longest wait before the first retry after an overload."`
	MaxRetryAfter time.Duration `yaml:"max_retry_after" jsonschema_description:"Longest hint that is waited for; 0 is 1m."`
	Budget        *Budget       `yaml:"budget" jsonschema_description:"In place of the strategy's own."`
	Unlimited     bool          `yaml:"unlimited" jsonschema_description:"Every retry is paid for."`
	NoJitter      bool          `yaml:"no_jitter" jsonschema_description:"Each wait is the longest."`
}

// Budget is budget.Config.
type Budget struct {
	Capacity     float64 `yaml:"capacity" jsonschema_description:"Tokens that it can hold; 0 is 500."`
	Empty        bool    `yaml:"empty" jsonschema_description:"It starts empty."`
	Credit       float64 `yaml:"credit" jsonschema_description:"Tokens that an empty one starts with all the same; the first deposits repay them."`
	MinPerSecond float64 `yaml:"min_per_second" jsonschema_description:"Tokens that each second brings."`
}

// A Service is tasks that are alike.
type Service struct {
	Name       string         `yaml:"name" jsonschema:"required"`
	Tasks      int            `yaml:"tasks" jsonschema_description:"How many there are; 0 is 1."`
	Processors int            `yaml:"processors" jsonschema_description:"Requests of a task that compute at once; 0 is 1."`
	CPU        sim.Dist       `yaml:"cpu" jsonschema_description:"Processor time of a request."`
	Wait       sim.Dist       `yaml:"wait" jsonschema_description:"How long a request waits for something else."`
	Slots      int            `yaml:"slots" jsonschema_description:"Requests of a task that may wait so at once; 0 is no bound."`
	Calls      []Edge         `yaml:"calls" jsonschema_description:"What a request asks of other services, one after the other."`
	OnFailure  sim.OnFailure  `yaml:"on_failure" jsonschema:"enum=dont_retry,enum=retryable,enum=degrade" jsonschema_description:"What is answered when one of these fails."`
	Discipline sim.Discipline `yaml:"discipline" jsonschema:"enum=fifo,enum=lifo,enum=priority" jsonschema_description:"Order of those that wait for a processor."`
	Queue      int            `yaml:"queue" jsonschema_description:"Requests that may be at a task, those being served included; more are refused. 0 is no bound."`
	Refusal    time.Duration  `yaml:"refusal" jsonschema_description:"Processor time of a refusal; with an ingress, of each request before the decision, where 0 is 10µs."`
	Connect    time.Duration  `yaml:"connect" jsonschema_description:"Processor time of the first request of a caller to a task."`
	Memory     Memory         `yaml:"memory" jsonschema_description:"What requests take."`
	Ingress    *Ingress       `yaml:"ingress" jsonschema_description:"Server policies; left out, there are none. {} is all defaults."`
	Hints      bool           `yaml:"hints" jsonschema_description:"Refusals say when to come back."`
	Ratio      bool           `yaml:"accept_ratio" jsonschema_description:"Answers say which share of the calls of their class the task accepts, from which throttles with few calls of their own start. Needs ingress."`
}

// Memory is that of a task.
type Memory struct {
	Limit      float64       `yaml:"limit" jsonschema_description:"0: memory is not modelled."`
	Base       float64       `yaml:"base"`
	PerRequest float64       `yaml:"per_request"`
	Restart    time.Duration `yaml:"restart" jsonschema_description:"How long a crash lasts; 0 is 10s."`
}

// Ingress is ingress.Config.
type Ingress struct {
	RateLimit  RateLimit     `yaml:"rate_limit" jsonschema_description:"Requests per second of each task."`
	Quota      *Quota        `yaml:"quota" jsonschema_description:"What each customer may use of a task."`
	Shed       Shed          `yaml:"shed" jsonschema_description:"Refusals by criticality under load."`
	Attempts   Attempts      `yaml:"attempts" jsonschema_description:"When refusals say don't retry."`
	RetryAfter time.Duration `yaml:"retry_after" jsonschema_description:"The hint of refusals; 0 is 1s."`
	Targets    Targets       `yaml:"targets" jsonschema_description:"What measures of utilization should be at most."`
}

// RateLimit is ratelimit.Config.
type RateLimit struct {
	Mode         Mode    `yaml:"mode" jsonschema_description:"enforce, observe or off."`
	Rate         float64 `yaml:"rate" jsonschema_description:"0 is no limit."`
	BurstSeconds float64 `yaml:"burst_seconds" jsonschema_description:"0 is 1."`
	QueueDepth   int     `yaml:"queue_depth"`
}

// Quota is quota.Config and quota.LocalConfig.
type Quota struct {
	Mode         Mode             `yaml:"mode" jsonschema_description:"enforce, observe or off."`
	BurstSeconds float64          `yaml:"burst_seconds" jsonschema_description:"0 is 1."`
	Capacity     float64          `yaml:"capacity" jsonschema_description:"Per second, for all customers together; 0 is no bound."`
	Customers    map[string]Limit `yaml:"customers"`
	Stranger     Limit            `yaml:"stranger" jsonschema_description:"Of each customer without a name."`
	Strangers    Limit            `yaml:"strangers" jsonschema_description:"Of all of them together."`
}

// Limit is quota.Limit.
type Limit struct {
	Rate   float64 `yaml:"rate"`
	Weight float64 `yaml:"weight"`
	Shares Classes `yaml:"shares"`
}

// Shed is shed.Config.
type Shed struct {
	Mode       Mode           `yaml:"mode" jsonschema_description:"enforce, observe or off."`
	MaxWait    time.Duration  `yaml:"max_wait" jsonschema_description:"Longest wait in the room; 0 is 50ms."`
	Thresholds Classes        `yaml:"thresholds" jsonschema_description:"Utilization from which each class is refused."`
	MaxByKey   map[string]int `yaml:"max_by_key" jsonschema_description:"Most requests at work at once of single keys; the key of a call is the name of the service."`
}

// Attempts is attempts.Config.
type Attempts struct {
	Share         float64       `yaml:"share" jsonschema_description:"Share of retries above which refusals say don't retry; 0 is 0.2, negative is never."`
	Window        time.Duration `yaml:"window"`
	FirstAttempts int           `yaml:"first_attempts"`
	MinRequests   int           `yaml:"min_requests"`
}

// Targets are some of load.Targets.
type Targets struct {
	CPU    float64 `yaml:"cpu" jsonschema_description:"Share of the processors; 0 is no target."`
	Memory float64 `yaml:"memory" jsonschema_description:"Share of the limit; 0 is 0.95, negative is no target."`
}

// A Fault is something that goes wrong for a while.
type Fault struct {
	Kind    sim.FaultKind `yaml:"kind" jsonschema:"required,enum=outage,enum=hang,enum=drop,enum=reject,enum=slow,enum=lose,enum=expensive,enum=herd"`
	At      time.Duration `yaml:"at"`
	For     time.Duration `yaml:"for" jsonschema_description:"0 is until the end."`
	Service string        `yaml:"service"`
	Tasks   int           `yaml:"tasks" jsonschema_description:"How many of them, from the first; 0 is all."`
	Factor  float64       `yaml:"factor" jsonschema_description:"Of slow: by how much."`
	Cost    time.Duration `yaml:"cost" jsonschema_description:"Of expensive: the processor time."`
	Clients string        `yaml:"clients" jsonschema_description:"Of a herd: who is in it."`
	Calls   int           `yaml:"calls" jsonschema_description:"Of a herd: how many; 0 is one of each."`
}

// A Variant is the scenario with some values changed.
type Variant struct {
	Name string    `yaml:"name" jsonschema:"required"`
	Set  []Setting `yaml:"set" jsonschema:"required"`
}

// A Setting changes all fields of a name: throttle.k, or web.rate for those of one
// group or service.
type Setting struct {
	Field string `yaml:"field" jsonschema:"required"`
	Value string `yaml:"value" jsonschema:"required"`
}

// An Expectation is what must come out.
type Expectation struct {
	Measure string   `yaml:"measure" json:"measure" jsonschema:"required" jsonschema_description:"What is measured: db.load_ratio, web.success, web.critical.success, web.recovery_s."`
	Variant string   `yaml:"variant" json:"variant" jsonschema_description:"Of which variant; left out, of each."`
	Window  string   `yaml:"window" json:"window" jsonschema_description:"In which window; left out, in the last."`
	Over    string   `yaml:"over" json:"over" jsonschema_description:"A variant; the measure is divided by that of it."`
	Above   string   `yaml:"above" json:"above" jsonschema_description:"A variant; the measure of it is taken off."`
	Least   *float64 `yaml:"least" json:"least"`
	Most    *float64 `yaml:"most" json:"most"`
	Why     string   `yaml:"why" json:"why" jsonschema_description:"In words."`
}
