// Package tune changes limits: from signals of a backend, such as its latency, it computes
// the value for a rate limit or an in-flight limit, in which steps to get there, and the
// reason.
//
// # Input and output
//
// A [Tuner] receives the time, how much of the limit is used, and the value of each
// [Signal]: a utilization, a latency, the share of requests that the backend rejects.
// A signal has a target, and the pressure is the greatest ratio of a value to its
// target:
//
//	pressure = max(value / target)
//
// Above 1 + [Config.Deadband] the limit is lowered, below 1 − Deadband it is raised,
// and in between it stays. The answer is a [Move], with the numbers that led to it,
// or none. The Tuner reads nothing and sets nothing: its caller does both.
//
// # What is used
//
// The other number is in the unit of the limit: for a rate the requests that the
// backend answered per second, for a limit in flight the most that were. It keeps the
// Tuner honest in both directions. A limit that is not used says nothing about what
// the backend could do, so it is raised only while 0.95 of it are used, which for a
// rate also means that the backend keeps up with what it is given. And a backend that
// is overloaded shows its capacity in what it answers: the limit is lowered from there,
// and not step by step from wherever it was. A queue presses as much while it is
// worked off as while it grows, so that pressure alone leads to swings: the limit is
// never lowered farther below the capacity than it takes to empty the queue.
//
// # The rules
//
// With can for the capacity, which is what is used while the pressure is too great, k
// for the moves before in the same direction, and ceiling for the capacity when the
// limit was last lowered, [AIMD] and [Proportional] are
//
//	lower to   max(min(limit, can) × (1 − share), can × (1 − drain))
//	share      Decrease · 2^k                      AIMD
//	           Gain · (1 − 1/pressure)             Proportional
//	drain      Decrease · (pressure − 1), from one Decrease to ten
//
//	raise to   max(limit + step, ceiling × (1 − Decrease))    below 1.1 × ceiling
//	           limit + min(step · 2^k, room)                  above
//	step       Increase × max(ceiling, limit/2)
//	room       limit · (1/pressure − 1), times Gain for Proportional
//
// When the queue has drained, the limit returns to the ceiling at once. Near the ceiling
// steps are small and constant, and above it they grow quickly.
// This is the shape of CUBIC (RFC 9438) in straight pieces.
//
// # Bounds
//
// Whatever the signals say, a limit stays between Min and Max, one move takes it no
// farther than MaxStep and MaxDelta allow, two moves are Reaction or more apart, and
// a condition must hold in each reading for Persist before it moves
// anything; the mildest of these readings counts.
//
// # When it sees nothing
//
// A value that is not known is NaN; one that is infinite or negative is not known
// either. While any signal is unknown, nothing is raised. When one was not known for
// Stale, the limit goes back to the configured one, in steps like any
// other, and stays there until all signals have been known for Persist.
// Both changes are reported as a Move, even if the limit already has the value.
//
// # Observing
//
// A Tuner only observes until the caller switches it to enforce: it reports to which value it would
// change the limit in force, and changes nothing. The same report is repeated once a minute.
//
// # Source, and departures
//
// The idea of a policy engine that sets the ingress limits of a database from outside
// is that of MongoTune in MongoDB's "Client Backpressure"; its rules are not public.
// AIMD is that of Chiu and Jain (1989), whose steps are constant: with those, a limit
// either swings widely or is late by a minute. To go down to what was delivered is
// taken from BBR, and that more must be used before more is allowed from Protego (NSDI
// 2023). Served without a limit, a backend whose queue has no bound needs a
// Reaction that is short against the patience of its callers: the queue that builds
// until the limit is lowered is theirs to wait for.
package tune
