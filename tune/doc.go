// Package tune changes limits. From signals of a backend, such as its latency, it computes the
// value of a rate limit or an in-flight limit, the steps to reach it, and the reason.
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
// Above 1 + [Config.Deadband] the limit is lowered, below 1 − Deadband it is raised, and in between
// it stays. The answer is a [Move] with the numbers that led to it, or no Move. The Tuner does not
// read the signals or set the limit; its caller does both.
//
// # What is used
//
// How much of the limit is used is in the unit of the limit: for a rate, the requests that the
// backend answered per second; for an in-flight limit, the maximum in flight. It corrects the
// signals in both directions. A limit that is not used says nothing about the capacity of the
// backend, so the limit is raised only while 0.95 of it is used. For a rate that also means that
// the backend keeps up with its requests. An overloaded backend shows its capacity in the requests
// that it answers, so the limit is lowered from there, and not step by step from its old value. A
// queue causes as much pressure while it drains as while it grows, so pressure alone would make the
// limit swing: it is never lowered farther below the capacity than it takes to empty the queue.
//
// # The rules
//
// In these formulas of [AIMD] and [Proportional], can is the capacity, which is the use of the
// limit while the pressure is too great; k is the number of moves before in the same direction; and
// ceiling is the capacity when the limit was last lowered:
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
// A limit always stays between Min and Max. One move changes it by at most MaxStep and MaxDelta,
// and two moves are at least Reaction apart. A condition must hold in each reading for Persist
// before the limit moves; the move is computed from the mildest of these readings.
//
// # When signals are missing
//
// An unknown value is NaN; an infinite or negative value counts as unknown. While any signal is
// unknown, the limit is not raised. When a signal was unknown for Stale, the limit returns to the
// configured one, in steps as for any other move, and stays there until all signals have been known
// for Persist. The beginning and the end of this are reported as a Move, even if the limit does not
// change.
//
// # Observing
//
// A Tuner only observes until the caller switches it to enforce: it reports to which value it would
// change the limit in force, and changes nothing. It repeats the same report at most once a minute.
//
// # Source, and departures
//
// The idea of a policy engine that sets the ingress limits of a database from outside is that of
// MongoTune in MongoDB's "Client Backpressure"; its rules are not public. AIMD is that of Chiu and
// Jain (1989), whose steps are constant; with constant steps, a limit either swings widely or
// reacts a minute late. BBR is the source for lowering the limit to the delivered rate, and Protego
// (NSDI 2023) for raising it only while it is used. If the queue of a backend has no bound,
// Reaction must be short compared with the timeouts of its callers, which wait in the queue that
// builds up until the limit is lowered.
package tune
