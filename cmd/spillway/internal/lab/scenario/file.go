// Package scenario reads the files that "spillway sim" runs: the system, the events,
// the variants, and the expected results. The files are YAML, which includes JSON.
package scenario

import (
	"time"

	"github.com/seed90641741/spillway/cmd/spillway/internal/policyconf"
	"github.com/seed90641741/spillway/sim"
)

// A File is the content of a scenario file.
type File struct {
	Name     string        `yaml:"name" jsonschema:"required" jsonschema_description:"What the scenario is called."`
	About    string        `yaml:"about" jsonschema_description:"What it shows, in a sentence or two."`
	Source   string        `yaml:"source" jsonschema_description:"Where the claim is from."`
	Claim    string        `yaml:"claim" jsonschema_description:"What the source says must come out."`
	Seed     uint64        `yaml:"seed" jsonschema_description:"Where all randomness comes from; 0 is 1."`
	Duration time.Duration `yaml:"duration" jsonschema:"required" jsonschema_description:"How much time passes."`
	Step     time.Duration `yaml:"step" jsonschema_description:"Length of a slot of the charts; 0 is 1s."`
	Windows  []Window      `yaml:"windows" jsonschema_description:"Stretches of time to sum up; without any, all of it, named all."`
	Clients  []Clients     `yaml:"clients" jsonschema:"required" jsonschema_description:"Clients, which send requests."`
	Services []Service     `yaml:"services" jsonschema:"required" jsonschema_description:"Services, which serve requests."`
	Faults   []Fault       `yaml:"faults" jsonschema_description:"What goes wrong."`
	Variants []Variant     `yaml:"variants" jsonschema_description:"The same with some values changed; without any, one run as it is."`
	Quick    []Setting     `yaml:"quick" jsonschema_description:"Values for a short version that asserts the same, for tests."`
	Expect   []Expectation `yaml:"expect" jsonschema_description:"What must come out."`
}

// A Window is a named interval of time.
type Window struct {
	Name string        `yaml:"name" jsonschema:"required"`
	From time.Duration `yaml:"from"`
	To   time.Duration `yaml:"to" jsonschema_description:"0 is the end."`
}

// Clients are a group of equal clients.
type Clients struct {
	Name     string             `yaml:"name" jsonschema:"required"`
	Count    int                `yaml:"count" jsonschema_description:"How many there are; 0 is 1."`
	Rate     float64            `yaml:"rate" jsonschema_description:"Calls per second of all of them, open loop (Poisson)."`
	Rates    []Rate             `yaml:"rates" jsonschema_description:"Changes of the rate."`
	Trace    []time.Duration    `yaml:"trace" jsonschema_description:"Times of calls, in place of a rate."`
	Loop     bool               `yaml:"loop" jsonschema_description:"Closed loop: each client has one call at a time, in place of a rate."`
	Think    sim.Dist           `yaml:"think" jsonschema_description:"How long a client of a closed loop waits before each call."`
	Deadline time.Duration      `yaml:"deadline" jsonschema_description:"How long after its intended start a call is given up; 0 is never."`
	Useful   time.Duration      `yaml:"useful" jsonschema_description:"How long after its intended start an answer is useful; 0 is the deadline."`
	Classes  policyconf.Classes `yaml:"classes" jsonschema_description:"How many calls have each criticality, in proportion; all are critical by default."`
	Customer string             `yaml:"customer" jsonschema_description:"On whose behalf they call, for quotas."`
	Factor   float64            `yaml:"cpu_factor" jsonschema_description:"Multiplies the processor time that their calls take at the service that they call; 0 is 1."`
	Call     Edge               `yaml:"call" jsonschema:"required" jsonschema_description:"How they call."`
}

// A Rate is a rate of calls and the time at which it begins.
type Rate struct {
	At   time.Duration `yaml:"at" jsonschema:"required"`
	Rate float64       `yaml:"rate" jsonschema:"required"`
}

// An Edge is how callers call a service.
type Edge struct {
	To          string              `yaml:"to" jsonschema:"required" jsonschema_description:"The service."`
	Throttle    policyconf.Throttle `yaml:"throttle" jsonschema_description:"Adaptive throttling, of each caller."`
	Inflight    policyconf.Inflight `yaml:"inflight" jsonschema_description:"In-flight limit of each caller."`
	Retry       policyconf.Retry    `yaml:"retry" jsonschema_description:"Retries, with a budget of each caller's own."`
	Kind        string              `yaml:"kind" jsonschema:"enum=read,enum=write" jsonschema_description:"What the calls do; reads, the default, may be repeated."`
	Timeout     time.Duration       `yaml:"timeout" jsonschema_description:"How long an attempt may take; 0 is until the deadline."`
	Connections int                 `yaml:"connections" jsonschema_description:"Attempts that each caller may have on the way at once; more wait. 0 is no bound."`
	Latency     sim.Dist            `yaml:"latency" jsonschema_description:"How long a message takes one way."`
	Loss        float64             `yaml:"loss" jsonschema_description:"Share of messages that get lost, each way."`
	Balance     sim.Balance         `yaml:"balance" jsonschema:"enum=random,enum=round_robin,enum=least_busy" jsonschema_description:"Which task gets a request."`
	Subset      int                 `yaml:"subset" jsonschema_description:"How many tasks each caller knows; 0 is all."`
	Retarget    bool                `yaml:"retarget" jsonschema_description:"A retry avoids the tasks that earlier attempts found overloaded."`
	Leave       bool                `yaml:"leave" jsonschema_description:"The server notices when a caller gives up."`
	Times       int                 `yaml:"times" jsonschema_description:"How many of these calls each request of a service makes; 0 is 1, and clients make 1."`
	AtOnce      bool                `yaml:"at_once" jsonschema_description:"These calls are made at once; with the first that fails the others are given up."`
}

// A Service is a group of equal tasks.
type Service struct {
	Name       string         `yaml:"name" jsonschema:"required"`
	Tasks      int            `yaml:"tasks" jsonschema_description:"How many there are; 0 is 1."`
	Autoscale  Autoscale      `yaml:"autoscale" jsonschema_description:"How tasks are added and removed; the default is not at all."`
	Processors int            `yaml:"processors" jsonschema_description:"Requests of a task that compute at once; 0 is 1."`
	CPU        sim.Dist       `yaml:"cpu" jsonschema_description:"Processor time of a request."`
	Wait       sim.Dist       `yaml:"wait" jsonschema_description:"How long a request waits for something else."`
	Slots      int            `yaml:"slots" jsonschema_description:"Requests of a task that may wait so at once; 0 is no bound."`
	Calls      []Edge         `yaml:"calls" jsonschema_description:"What a request asks of other services, one after the other."`
	OnFailure  sim.OnFailure  `yaml:"on_failure" jsonschema:"enum=dont_retry,enum=retryable,enum=degrade" jsonschema_description:"What is answered when one of these fails."`
	Discipline sim.Discipline `yaml:"discipline" jsonschema:"enum=fifo,enum=lifo,enum=priority" jsonschema_description:"Order of requests that wait for a processor."`
	Queue      int            `yaml:"queue" jsonschema_description:"Requests that may be at a task, those being served included; more are rejected. 0 is no bound."`
	Rejection  time.Duration  `yaml:"rejection" jsonschema_description:"Processor time of a rejection; with an ingress, of each request before the decision, where 0 is 10µs."`
	Connect    time.Duration  `yaml:"connect" jsonschema_description:"Processor time of the first request of a caller to a task."`
	Memory     Memory         `yaml:"memory" jsonschema_description:"What requests take."`
	Ingress    *Ingress       `yaml:"ingress" jsonschema_description:"Server policies; the default is no policies. {} is all defaults."`
	Hints      bool           `yaml:"hints" jsonschema_description:"Rejections say when to come back."`
	Ratio      bool           `yaml:"accept_ratio" jsonschema_description:"Answers say which share of the calls of their class the task accepts, from which throttles with few calls of their own start. Needs ingress."`
}

// Autoscale changes the number of tasks as Kubernetes does. Each target that is given is of one signal; the largest number of
// tasks that a signal asks for counts.
type Autoscale struct {
	Max      int           `yaml:"max" jsonschema_description:"The most tasks; the least is tasks."`
	Start    time.Duration `yaml:"start" jsonschema_description:"How long a new task takes to start; 0 is 30s."`
	CPU      float64       `yaml:"utilization" jsonschema_description:"Target: utilization of the processors of a task."`
	InFlight float64       `yaml:"in_flight" jsonschema_description:"Target: requests at a task, waiting ones included."`
	Offered  float64       `yaml:"offered" jsonschema_description:"Target: requests per second that arrive at a task, rejected ones included."`
	Overload float64       `yaml:"overload" jsonschema_description:"Target: what arrives over what is not rejected, or 0 while less than 5 % is rejected."`
}

// Memory is the memory of a task.
type Memory struct {
	Limit      float64       `yaml:"limit" jsonschema_description:"0: memory is not modelled."`
	Base       float64       `yaml:"base"`
	PerRequest float64       `yaml:"per_request"`
	Restart    time.Duration `yaml:"restart" jsonschema_description:"How long a crash lasts; 0 is 10s."`
}

// Ingress has the server policies of a task.
type Ingress struct {
	RateLimit  policyconf.RateLimit `yaml:"rate_limit" jsonschema_description:"Requests per second of each task."`
	Quota      *policyconf.Quota    `yaml:"quota" jsonschema_description:"What each customer may use of a task."`
	LearnCosts bool                 `yaml:"learn_costs" jsonschema_description:"Each task learns the processor time of calls by customer, and its quota charges it in milliseconds, in place of quota.cost. Needs quota."`
	Shed       policyconf.Shed      `yaml:"shed" jsonschema_description:"Rejections by criticality under load."`
	Attempts   policyconf.Attempts  `yaml:"attempts" jsonschema_description:"When rejections say don't retry."`
	RetryAfter time.Duration        `yaml:"retry_after" jsonschema_description:"The hint of rejections; 0 is 1s."`
}

// A Fault is a temporary failure.
type Fault struct {
	Kind    sim.FaultKind `yaml:"kind" jsonschema:"required,enum=outage,enum=hang,enum=drop,enum=reject,enum=slow,enum=lose,enum=expensive,enum=herd"`
	At      time.Duration `yaml:"at"`
	For     time.Duration `yaml:"for" jsonschema_description:"0 is until the end."`
	Service string        `yaml:"service"`
	Tasks   int           `yaml:"tasks" jsonschema_description:"How many of them, from the first; 0 is all."`
	Factor  float64       `yaml:"factor" jsonschema_description:"Factor of a slow fault."`
	Cost    time.Duration `yaml:"cost" jsonschema_description:"Of expensive: the processor time."`
	Clients string        `yaml:"clients" jsonschema_description:"Of a herd: who is in it."`
	Calls   int           `yaml:"calls" jsonschema_description:"Of a herd: how many; 0 is one of each."`
}

// A Variant is the scenario with some values changed.
type Variant struct {
	Name string    `yaml:"name" jsonschema:"required"`
	Set  []Setting `yaml:"set" jsonschema:"required"`
}

// A Setting changes all fields of a name: throttle.k, or web.rate for the fields of one
// group or service.
type Setting struct {
	Field string `yaml:"field" jsonschema:"required"`
	Value string `yaml:"value" jsonschema:"required"`
}

// An Expectation is a required range of a result.
type Expectation struct {
	Measure string   `yaml:"measure" json:"measure" jsonschema:"required" jsonschema_description:"What is measured: db.load_ratio, web.success, web.critical.success, web.recovery_s."`
	Variant string   `yaml:"variant" json:"variant" jsonschema_description:"The variant; the default is each variant."`
	Window  string   `yaml:"window" json:"window" jsonschema_description:"In which window; left out, in the last."`
	Over    string   `yaml:"over" json:"over" jsonschema_description:"A variant; the measure is divided by that of it."`
	Above   string   `yaml:"above" json:"above" jsonschema_description:"A variant; the measure of it is taken off."`
	Least   *float64 `yaml:"least" json:"least"`
	Most    *float64 `yaml:"most" json:"most"`
	Why     string   `yaml:"why" json:"why" jsonschema_description:"In words."`
}
