// Package sim is a deterministic simulator: a whole system of clients, networks and services
// in virtual time, with the same policy code that runs in production. It shows the effect of a
// configuration before it ships, and lets a test say "at three times the load goodput is at
// least 90 % and nothing critical is lost".
//
//	clients ─► edge ─────────────────► network ─► task ───────────────────► calls of
//	           retry, throttle,        latency,   ratelimit, quota, shed,    its own
//	           inflight, balancing     loss       attempts, processors
//
// A [Config] describes the system and its faults, [New] checks it, [Sim.Run] runs the
// simulation, and the [Result] has the measurements. Time is a heap of events: no goroutine,
// no clock, no sleep. Ten minutes of a thousand calls a second take about a second.
//
// # What is real, and what is modelled
//
// All decisions are real: retry strategies, budgets, throttles and in-flight limits of each
// caller; rate limits, quotas, shedders and attempt histograms of each task. They take the
// time as an argument, so that virtual time makes no difference to them.
//
// Their order is the order in packages egress and ingress: the cores of both are used
// unchanged. Tests make the same calls, with the same randomness, through the real stacks, and
// expect the same decisions, to the nanosecond. Only the state of a real process is not
// compared; here the shedder decides by the state of the modelled task.
//
// Everything else is modelled. For overload, a task is a Go process: processors that each run
// one request at a time, to the end of its work, from one queue of runnable requests; a
// request that waits for something other than a processor is not in that queue. A request that
// is rejected costs processor time, too. With server policies, each request is examined when
// its turn comes, and requests in waiting queues run when nothing else is ready. A caller that
// gives up does not stop the server, unless Leave is set. A message takes its latency, or is
// lost.
//
// Not modelled are the cost of a client, the bandwidth of a network, garbage collection, and
// time slices: a long computation is not interrupted.
//
// # Randomness
//
// Every group, edge and service has its own random streams, determined by the seed and its
// position in the Config. Two configurations that differ in a policy get the same arrivals.
// The same Config yields the same bytes on every machine: random values are computed with
// operations that round identically everywhere, ties are broken by the order in which events
// were created, no map is ranged over, and numbers that are not integers are rounded to six
// digits in the Result. Policies, too, round each product before they add to it. Exceptions
// are exponentials and logarithms in the recovery of a throttle and the queue depth of a
// shedder: package math may differ between machines in the last of 53 bits, which changes one
// decision in 10^15.
//
// # Size
//
// A caller takes 32 bytes until it calls, and 96 once it has a retry budget. Its other
// policies exist only while they have state: the in-flight limit from a call on, and the
// throttle from the first rejection, or the ninth call, until one to two windows of the
// throttle have passed without a call. An event costs a few hundred nanoseconds, more with more callers as
// they no longer fit into the caches. The cost grows in proportion to the number of calls and
// their attempts, not with the simulated time.
package sim
