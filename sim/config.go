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

// Config is a system and what happens to it. [New] checks it.
type Config struct {
	// Seed is where all randomness comes from. Arrivals, service times, networks
	// and policies draw from streams of their own, so that a change of a policy
	// changes no arrival.
	Seed uint64
	// Duration is how much time passes. It must be 1 ms to a year.
	Duration time.Duration
	// Step is the length of a slot of the series in the Result. Zero means 1 s; at
	// most 100,000 slots are allowed.
	Step time.Duration
	// Windows are the stretches of time of which the Result has sums. Without any
	// there is one of all the time, named "all".
	Windows []Window
	// Clients are those who want something.
	Clients []Clients
	// Services are those who do it. Their calls to one another must make no circle.
	Services []Service
	// Faults are what goes wrong.
	Faults []Fault
	// Progress, if not nil, is told the time after each slot.
	Progress func(at time.Duration)
}

// A Window is a stretch of time, [From, To), with a name.
type Window struct {
	Name     string
	From, To time.Duration // a To of zero is the end
}

// Clients is a number of clients that are alike. They make calls either open
// loop, at a Rate or the times of a Trace, each of some client at random and
// whether or not earlier ones have ended; or closed loop, where each client has
// one call at a time and Thinks before the next.
type Clients struct {
	// Name is what faults and results call them.
	Name string
	// Count is how many there are. Zero means 1; it must be at most 10 million.
	Count int

	// Rate is how many calls all of them make per second, open loop (Poisson).
	Rate float64
	// Rates change the Rate at given times, which must ascend.
	Rates []Rate
	// Trace are the times of calls, which must ascend, in place of a Rate.
	Trace []time.Duration
	// Loop says that they are a closed loop, in place of a Rate or a Trace.
	Loop bool
	// Think is how long a client of a Loop waits before each call. After a call that
	// took no time, as one that is rejected locally, it is 1 ms where it would be zero.
	Think Dist

	// Deadline is how long after its intended start a call is given up; policies
	// and servers know it. Zero means never.
	Deadline time.Duration
	// Useful is how long after its intended start an answer is of use; nobody but
	// the Result knows it. Zero means the Deadline.
	Useful time.Duration
	// Classes is how many calls have each criticality, in proportion, by
	// [spillway.Criticality.Index]. All zero means that all are CRITICAL.
	Classes [spillway.Criticalities]float64
	// Customer is on whose behalf they call.
	Customer string

	// Call is how they call.
	Call Edge
}

// A Rate is a rate of calls per second from a time on.
type Rate struct {
	At   time.Duration
	Rate float64
}

// An Edge is how callers call a service: the policies of each caller, and the way.
type Edge struct {
	// To is the name of the service.
	To string
	// Egress configures throttle and in-flight limit, as of each caller. Its Retry,
	// Inflight, Observer and Throttle.Rand must be nil: Retry is below, and the
	// rest is made here.
	Egress egress.Config
	// Retry is the strategy, with a budget of each caller's own.
	Retry Retry
	// Kind is that of the calls. The zero Kind means [spillway.KindRead]: calls may be
	// repeated.
	Kind spillway.Kind

	// Timeout is how long an attempt may take. Zero means until the deadline.
	Timeout time.Duration
	// Connections is how many attempts each caller may have on the way at once;
	// more wait at the caller. Zero means no bound.
	Connections int
	// Latency is how long a message takes one way.
	Latency Dist
	// Loss is the share of messages that get lost, each way.
	Loss float64

	// Balance says which task gets a request.
	Balance Balance
	// Subset is how many tasks each caller knows. Zero means all.
	Subset int
	// Retarget makes a retry avoid the tasks that earlier attempts of the call
	// found overloaded, where it can. The default is to leave that to chance.
	Retarget bool
	// Leave makes the server notice when a caller gives up.
	Leave bool
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
	// Strategy says which of the configurations counts. Empty means Budgeted.
	Strategy Strategy
	Budgeted retry.BudgetedConfig
	Standard retry.StandardConfig
	Overload retry.OverloadConfig
	// Budget is that of each caller. Nil means the strategy's own: an empty bucket
	// of 1000·Ratio tokens for Budgeted, a full one of 500 for Standard, none
	// (every retry is paid) for Overload.
	Budget *budget.Config
	// Unlimited pays for every retry.
	Unlimited bool
	// NoJitter makes each backoff as long as it can be.
	NoJitter bool
}

// Strategy names a retry strategy.
type Strategy string

// The strategies.
const (
	Budgeted Strategy = "budgeted" // retry.Budgeted, the default of package egress
	Standard Strategy = "standard" // retry.Standard
	Overload Strategy = "overload" // retry.Overload
)

// A Service is a number of tasks that are alike. A request first computes for CPU
// on one of the Processors, then makes the Calls, one after the other, then waits
// for Wait, and is answered.
type Service struct {
	// Name is what edges, faults and results call it.
	Name string
	// Tasks is how many there are. Zero means 1; it must be at most 100,000.
	Tasks int
	// Processors is how many requests of a task compute at once. Zero means 1.
	Processors int
	// CPU is the processor time that a request takes.
	CPU Dist
	// Wait is how long a request waits for something else.
	Wait Dist
	// Slots is how many requests of a task may Wait at once; more queue for it.
	// Zero means no bound.
	Slots int
	// Calls are what a request asks of other services.
	Calls []Edge
	// OnFailure is what a request answers when one of its Calls fails.
	OnFailure OnFailure

	// Discipline is the order of the requests that wait for a processor.
	Discipline Discipline
	// Queue is how many requests may be at a task, those being served included;
	// more are refused. Zero means no bound. A service with an Ingress leaves it
	// to that.
	Queue int
	// Refusal is the processor time that it takes to refuse a request. Where
	// there is an Ingress, it is spent on each request, before the decision.
	Refusal time.Duration
	// Connect is the processor time of the first request of a caller to a task. A
	// caller keeps its connections, but for those whose attempts timed out, and
	// those to a task that went down. It needs a Subset, or at most 64 tasks.
	Connect time.Duration
	// Memory is what requests take.
	Memory Memory

	// Ingress configures the server policies of each task. Nil means none. Its
	// Quota.Allocator, Load.Signals, Exempt, Rand and Observer must be nil, and no
	// mode may be observe. Of Load, the Targets of CPU and Memory count. Requests are
	// trusted as in [ingress.Internal] listeners.
	Ingress *ingress.Config
	// Customers, if not nil, is the quota of each task.
	Customers *quota.LocalConfig
	// Hints makes refusals say when to come back, as Ingress.RetryAfter has it. A caller
	// leaves a task out for as long as it asked, while there are others.
	Hints bool
	// AcceptRatio makes answers of both kinds tell the accept ratio of the task by
	// class, as those of an internal listener do, by which throttles of callers
	// start. It needs an Ingress.
	AcceptRatio bool
}

// OnFailure is what a request answers when a call that it depends on fails.
type OnFailure string

// What a request answers.
const (
	// DontRetry: "don't retry" if the call was given up, as servers of Spillway have it,
	// which leaves the retries to the layer that met the failure; else a failure of
	// its own. The default.
	DontRetry OnFailure = "dont_retry"
	// Retryable: "overloaded", as if the service itself were. So do servers that know
	// nothing of this.
	Retryable OnFailure = "retryable"
	// Degrade: it is answered all the same.
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

// Memory is the memory of a task, in bytes or whatever unit. A task that needs
// more than it has crashes: its requests are lost, and it is down until it has
// restarted.
type Memory struct {
	Limit      float64       // zero: memory is not modelled
	Base       float64       // of a task without requests
	PerRequest float64       // of each request that has arrived and not ended
	Restart    time.Duration // zero: 10 s
}

// A Fault is something that goes wrong, or at least is out of the ordinary, for a
// while.
type Fault struct {
	Kind FaultKind
	// At is when it begins, and For how long it lasts. For is of no effect for
	// those that are over at once; zero means until the end.
	At, For time.Duration
	// Service is whose tasks it hits, and Tasks how many of them, from the first.
	// Zero means all.
	Service string
	Tasks   int
	// Factor is by how much Slow tasks are slower. It must be above 0.
	Factor float64
	// Cost is the processor time of what an Expensive request takes.
	Cost time.Duration
	// Clients is who is in the Herd, and Calls how many calls they make, each the
	// next client. Zero means one of each. Clients of a Loop make them beside those of
	// the loop.
	Clients string
	Calls   int
}

// FaultKind is what goes wrong.
type FaultKind string

// The faults.
const (
	Outage    FaultKind = "outage"    // tasks are down: connections are refused, requests lost
	Hang      FaultKind = "hang"      // tasks stand still, and then go on
	Drop      FaultKind = "drop"      // requests to tasks vanish
	Reject    FaultKind = "reject"    // tasks refuse everything as overloaded
	Slow      FaultKind = "slow"      // tasks take Factor times as long; several at once multiply
	Lose      FaultKind = "lose"      // tasks are down, and the callers know
	Expensive FaultKind = "expensive" // each task gets one request that computes for Cost
	Herd      FaultKind = "herd"      // clients all call at one instant
)
