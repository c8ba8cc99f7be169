// Package sim is a deterministic laboratory: a whole system of clients, networks and
// services in virtual time, whose policies are the very ones that run in production.
// It shows what a configuration does before it ships, and lets a test say "at three
// times the load goodput is at least 90 % and nothing critical is lost".
//
//	clients ─► edge ─────────────────► network ─► task ───────────────────► calls of
//	           retry, throttle,        latency,   ratelimit, quota, shed,    its own
//	           inflight, balancing     loss       attempts, processors
//
// A [Config] says what there is and what goes wrong, [New] checks it, [Sim.Run] lets
// the time pass, and the [Result] says what came out. Time is a heap of events: no
// goroutine, no clock, no sleep. Ten minutes of a thousand calls a second take about
// a second.
//
// # What is real, and what is modelled
//
// Real are all decisions: retry strategies, budgets, throttles and in-flight limits
// of each caller; rate limits, quotas, shedders and attempt histograms of each task.
// They take the time as an argument and never notice.
//
// Their order is that of packages egress and ingress: the cores of both are used as
// they are. Tests make the same calls, with the same randomness, through the real
// stacks, and expect the same decisions, to the nanosecond. What they cannot compare
// is the state of a real process; here the shedder decides by the state of the
// modelled task.
//
// Modelled is the rest. A task is a Go process as far as overload is concerned:
// processors that each run one request at a time, to the end of its work, from one
// queue of everything that is ready; what waits for something other than a processor is not
// in that queue. A request that is refused costs processor time, too. With server
// policies, each request is examined when its turn comes, and requests in waiting
// queues run when nothing else is ready. A caller
// that gives up does not stop the server, unless told so. A message takes its
// latency, or is lost.
//
// Not modelled are the cost of a client, the bandwidth of a network, garbage
// collection, and time slices: a long computation is not interrupted.
//
// # Randomness
//
// Every group, edge and service draws from its own streams, which the seed and
// their place in the Config decide. Two configurations that differ in a policy get
// the same arrivals. The same Config yields the same bytes on every machine: whatever
// is drawn is computed with operations that round alike everywhere, ties are broken
// by the order in which events were made, no map is ranged over, and what is not a
// whole number is rounded to six digits in the Result. Policies, too, round each product
// before they add to it. What remains are the exponentials and logarithms by which a
// throttle comes back and a shedder finds its depth: package math may differ between
// machines in the last of 53 bits, which one decision in 10^15 can tell.
//
// # Size
//
// A caller is 32 bytes until it calls, and 96 once it has a retry budget. Its other
// policies exist only while they know more than new ones: the in-flight limit while
// something is in flight, the throttle from the first refusal, or the ninth call,
// until its window has passed. An event costs a few hundred nanoseconds, more with the
// number of callers as they no longer fit into the caches; cost grows in proportion
// to the number of calls and their attempts, and not with the time that passes.
package sim
