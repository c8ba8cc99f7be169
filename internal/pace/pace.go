// Package pace is what a concurrency limit says of itself for one decision.
package pace

import "time"

// Pace is the state of a concurrency limit for one decision: the requests of a key, or of all
// keys together. Zero numbers are unknown.
type Pace struct {
	// Free says that another request may start.
	Free bool
	// Left is the number of requests that may start, this one included; +Inf is no limit.
	Left float64
	// Scope numbers the limit that decides: 0 is none, or the one of all keys.
	Scope int
	// Found says that a queue was found behind the limit, and Saturated that as many requests are in
	// flight as are in service at once: another one would wait for others there.
	Found, Saturated bool
	// Throughput is the number of requests that are answered per second.
	Throughput float64
	// Latency is their mean duration in seconds once they run, and Fastest the duration of the
	// fastest recent one.
	Latency, Fastest float64
	// Abandoned is the ratio of requests whose clients left.
	Abandoned float64
	// Usual is how many seconds a request of the key takes.
	Usual float64
	// Wait is how much of that they wait for one another.
	Wait time.Duration
	// Parked is the age from which a request in flight does not count. Zero is no such age.
	Parked time.Duration
}
