package spillway

import "time"

// Pace is what a limit on work in progress knows of the requests that one decision
// concerns: those of a key, or of all keys together. Zero numbers are unknown.
type Pace struct {
	// Free says that one more may start.
	Free bool
	// Left is how many may start, with this one; +Inf is no limit.
	Left float64
	// Scope numbers the limit that decides: 0 is none, or the one of all keys.
	Scope int
	// Throughput is how many requests end per second.
	Throughput float64
	// Latency is how many seconds they take once they run, and Fastest the least that
	// a recent one took.
	Latency, Fastest float64
	// Abandoned is the share of them that their clients did not wait for.
	Abandoned float64
	// Usual is how many seconds a request of the key takes.
	Usual float64
	// Wait is how much of that they wait for one another.
	Wait time.Duration
	// Parked is the age from which a request in flight does not count. Zero is no such age.
	Parked time.Duration
}
