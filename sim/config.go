package sim

import (
	"time"

	"github.com/seed90641741/spillway"
	"github.com/seed90641741/spillway/budget"
	"github.com/seed90641741/spillway/egress"
	"github.com/seed90641741/spillway/ingress"
	"github.com/seed90641741/spillway/quota"
	"github.com/seed90641741/spillway/retry"
)

// Config describes a system and the faults that it meets. [New] checks it.
type Config struct {
	// Seed is the seed of all random numbers. Arrivals, service times, networks and policies
	// each have a separate stream, so that a change of a policy does not change arrivals.
	Seed uint64
	// Duration is the simulated time. It must be 1 ms to a year.
	Duration time.Duration
	// Step is the interval of the time series in the Result. Zero means 1 s; at most 100,000
	// intervals are allowed.
	Step time.Duration
	// Windows are the time ranges for which the Result has sums. Empty means one range named
	// "all" that covers the whole time.
	Windows []Window
	// Clients are the callers.
	Clients []Clients
	// Services are the services that are called. Calls between them must not form a cycle.
	Services []Service
	// Faults are injected into the system.
	Faults []Fault
	// Progress, if not nil, is called with the simulated time after each Step.
	Progress func(at time.Duration)
}

// A Window is a time range, [From, To), with a name.
type Window struct {
	Name     string
	From, To time.Duration // a To of zero is the end
}

// Clients is a group of clients that are alike. Open loop, they make calls at a Rate or at the
// times of a Trace; each call is made by a random client, whether or not earlier calls have
// ended. Closed loop, each client has one call at a time and Thinks before the next.
type Clients struct {
	// Name identifies them in faults and results.
	Name string
	// Count is the number of clients. Zero means 1; it must be at most 10 million.
	Count int

	// Rate is the total number of calls per second, open loop (Poisson). It must be at most 1e7.
	Rate float64
	// Rates change the Rate at given times, in ascending order.
	Rates []Rate
	// Trace is the times of calls, in ascending order, in place of a Rate.
	Trace []time.Duration
	// Loop makes them a closed loop, in place of a Rate or a Trace.
	Loop bool
	// Think is how long a client of a Loop waits before each call. After a call that took no
	// time, such as one that is rejected locally, a wait of zero becomes 1 ms.
	Think Dist

	// Deadline is the time from the intended start of a call until it is given up; policies
	// and servers know it. Zero means no deadline.
	Deadline time.Duration
	// Useful is the time from the intended start of a call during which an answer has value.
	// Only the Result uses it. Zero means the Deadline.
	Useful time.Duration
	// Classes are the proportions of calls by criticality, indexed by
	// [spillway.Criticality.Index]. All zero means that all are CRITICAL.
	Classes [spillway.Criticalities]float64
	// Customer is the customer of their calls.
	Customer string
	// CPUFactor multiplies the processor time that their calls take at the service that they
	// call. Zero means 1.
	CPUFactor float64

	// Call says how they call a service.
	Call Edge
}

// A Rate is a rate of calls per second from a time on.
type Rate struct {
	At   time.Duration
	Rate float64
}

// An Edge says how callers call a service: the policies of each caller, and the network
// between.
type Edge struct {
	// To is the name of the service.
	To string
	// Egress configures throttle and in-flight limit, one of each per caller. Its Retry,
	// Inflight, Observer and Throttle.Rand must be nil: Retry is configured below, and the
	// simulation provides the others. MaxInFlightByKey and Hedge must be zero.
	Egress egress.Config
	// Retry is the strategy, with a separate budget for each caller.
	Retry Retry
	// Kind is the kind of the calls. The zero Kind means [spillway.KindRead]: calls may be
	// repeated.
	Kind spillway.Kind

	// Timeout is the maximum duration of an attempt. Zero means until the deadline.
	Timeout time.Duration
	// Connections is the maximum number of attempts in flight per caller; further ones wait at
	// the caller. Zero means no limit.
	Connections int
	// Latency is the one-way delay of a message.
	Latency Dist
	// Loss is the ratio of messages that are lost, in each direction.
	Loss float64

	// Balance selects the task for a request.
	Balance Balance
	// Subset is the number of tasks that each caller knows. Zero means all.
	Subset int
	// Retarget makes a retry avoid the tasks that earlier attempts of the call found
	// overloaded, if possible. By default the task is chosen at random.
	Retarget bool
	// Leave makes the server notice when a caller gives up: what waits there leaves the queues at once.
	Leave bool

	// Times is how many of these calls each request of a service makes. Zero means 1; it must be at most 1,000. That of
	// clients must be zero or 1.
	Times int
	// AtOnce makes these calls at once, instead of one after the other. With the first that fails the others
	// are given up.
	AtOnce bool
}

// Balance is a way to choose a task.
type Balance string

// The ways to choose a task.
const (
	Random     Balance = "random"      // any task, each as likely; the default
	RoundRobin Balance = "round_robin" // one after the other, each caller for itself
	LeastBusy  Balance = "least_busy"  // of two at random, the one with fewer requests of all callers
)

// Retry is a strategy and its budget.
type Retry struct {
	// Strategy selects one of the configurations below. Empty means Budgeted.
	Strategy    Strategy
	Budgeted    retry.BudgetedConfig
	AWSStandard retry.AWSStandardConfig
	MongoDB     retry.MongoDBConfig
	// Budget is the budget of each caller. Nil means the default of the strategy: an empty
	// bucket of 1000·Ratio tokens for Budgeted, a full one of 500 for AWSStandard, none (every
	// retry is paid) for MongoDB.
	Budget *budget.Config
	// Unlimited pays for every retry.
	Unlimited bool
	// NoJitter makes each backoff its maximum.
	NoJitter bool
}

// Strategy names a retry strategy.
type Strategy string

// The strategies.
const (
	Budgeted    Strategy = "budgeted"     // retry.Budgeted, the default of package egress
	AWSStandard Strategy = "aws_standard" // retry.AWSStandard
	MongoDB     Strategy = "mongodb"      // retry.MongoDB
)

// A Service is a group of tasks that are alike. A request first computes for CPU on one of the
// Processors, then makes the Calls, one after the other, then waits for Wait, and is answered. Its Calls have
// its level, and the progress with which it came plus the number of its Calls that were served.
type Service struct {
	// Name identifies it in edges, faults and results.
	Name string
	// Tasks is the number of tasks. Zero means 1; it must be at most 100,000.
	Tasks int
	// Autoscale adds tasks and removes them. Capacity and utilization in the Result are those of Tasks.
	Autoscale Autoscaler
	// Processors is the number of requests that a task computes at once. Zero means 1.
	Processors int
	// CPU is the processor time that a request takes.
	CPU Dist
	// Wait is how long a request waits for other resources, without a processor.
	Wait Dist
	// Slots is the number of requests of a task that may Wait at once; further ones queue.
	// Zero means no limit.
	Slots int
	// Calls are the calls of a request to other services. When its caller has left, they are given up.
	Calls []Edge
	// OnFailure is the answer to a request when one of its Calls fails.
	OnFailure OnFailure

	// Discipline is the order of the requests that wait for a processor.
	Discipline Discipline
	// Queue is the maximum number of requests at a task, including those in service; further
	// ones are rejected. Zero means no limit. It has no effect on a service with an Ingress,
	// which decides instead.
	Queue int
	// Rejection is the processor time that a rejection takes. With an Ingress, each request
	// takes it, before the decision.
	Rejection time.Duration
	// Connect is the processor time of the first request of a caller to a task. A caller keeps
	// its connections, except after an attempt that timed out, and to a task that went down.
	// It needs a Subset, or at most 64 tasks.
	Connect time.Duration
	// Memory is the memory of a task.
	Memory Memory

	// Ingress configures the server policies of each task. Nil means none. Its
	// Quota.Allocator, Costs, Load.Signals, Exempt, Rand and Observer must be nil, and no mode may be
	// observe. Of Load, only the Targets of CPU and Memory are used. Trust is not used: requests are
	// trusted as in [ingress.Internal] listeners.
	Ingress *ingress.Config
	// Customers, if not nil, is the quota of each task.
	Customers *quota.LocalConfig
	// LearnCosts makes each task learn the processor time of calls by customer, and its quota charge
	// it ([ingress.Config.Costs]), in milliseconds. It needs Customers.
	LearnCosts bool
	// Hints adds a retry delay to rejections, as configured by Ingress.RetryAfter. A caller
	// avoids the task for that time, if there are other tasks.
	Hints bool
	// AcceptRatio adds the accept ratio of the task, by class, to all answers, as an internal
	// listener does. Throttles of callers start from it. It needs an Ingress.
	AcceptRatio bool
}

// OnFailure is the answer to a request when a call that it depends on fails.
type OnFailure string

// The answers to a request when a call fails.
const (
	// DontRetry: "don't retry" if the call was given up, as servers of Spillway do, which
	// leaves the retries to the layer that met the failure; otherwise a failure. The default.
	DontRetry OnFailure = "dont_retry"
	// Retryable: "overloaded", as if the service itself were overloaded. Servers without
	// support for "don't retry" do this.
	Retryable OnFailure = "retryable"
	// Degrade: success, without the result of the call.
	Degrade OnFailure = "degrade"
)

// Discipline is the order of a queue.
type Discipline string

// The disciplines.
const (
	FIFO     Discipline = "fifo"     // oldest first; the default
	LIFO     Discipline = "lifo"     // newest first
	Priority Discipline = "priority" // highest criticality first, of which the oldest
)

// Memory is the memory of a task, in bytes or any other unit. A task that exceeds its Limit
// crashes: its requests are lost, and it is down until it has restarted.
type Memory struct {
	Limit      float64       // zero: memory is not modelled
	Base       float64       // of a task without requests
	PerRequest float64       // of each request that has arrived and not ended
	Restart    time.Duration // zero: 10 s
}

// A Fault is a failure or an unusual event that lasts for a while.
type Fault struct {
	Kind FaultKind
	// At is when it begins, and For is how long it lasts; zero means until the end. For has no
	// effect on the kinds Expensive and Herd, which happen at one instant.
	At, For time.Duration
	// Service names the service that is affected, and Tasks is the number of its tasks, from
	// the first. Zero means all.
	Service string
	Tasks   int
	// Factor multiplies the times of Slow tasks. It must be above 0.
	Factor float64
	// Cost is the processor time of an Expensive request.
	Cost time.Duration
	// Clients names the clients of a Herd, and Calls is the number of their calls, each by the
	// next client. Zero means one call of each client. Clients of a Loop make these calls in
	// addition to those of the loop.
	Clients string
	Calls   int
}

// FaultKind is the kind of a fault.
type FaultKind string

// The faults.
const (
	Outage    FaultKind = "outage"    // tasks are down: connections are refused, requests lost
	Hang      FaultKind = "hang"      // tasks stand still, and then go on
	Drop      FaultKind = "drop"      // requests to tasks vanish
	Reject    FaultKind = "reject"    // tasks reject everything as overloaded
	Slow      FaultKind = "slow"      // tasks take Factor times as long; several at once multiply
	Lose      FaultKind = "lose"      // tasks are down, and the callers know
	Expensive FaultKind = "expensive" // each task gets one request that computes for Cost
	Herd      FaultKind = "herd"      // clients all call at one instant
)
