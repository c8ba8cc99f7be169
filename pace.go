package spillway

// Pace is what a limit on work in progress knows of the requests that one decision
// concerns: those of a key, or of all keys together. Zero numbers are unknown.
type Pace struct {
	// Free says that one more may start.
	Free bool
	// Scope numbers the limit that decides: 0 is none, or the one of all keys.
	Scope int
	// Throughput is how many requests end per second.
	Throughput float64
	// Latency is how many seconds they take once they run, and Fastest the least that
	// a recent one took.
	Latency, Fastest float64
	// Abandoned is the share of them that their clients did not wait for.
	Abandoned float64
}
