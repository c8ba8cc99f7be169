package spillway

import (
	"context"
	"fmt"
)

// DegradationLevel says how much cheaper than usual a task should answer a call,
// so that it can serve more calls when it is overloaded. The zero value is
// [DegradationNone]: answer in full. What a handler leaves out at each level is its
// own choice; a handler with one cheap form of its answer uses it at
// [DegradationLow] and above.
//
// Source: Site Reliability Engineering, chapter 21, "Handling Overload" (degraded
// responses).
type DegradationLevel uint8

// The levels.
const (
	// DegradationNone: the task has capacity for full answers.
	DegradationNone DegradationLevel = iota
	// DegradationLow: the task is saturated; leave out what few users miss.
	DegradationLow
	// DegradationMedium: that was not enough; answer from what is at hand.
	DegradationMedium
	// DegradationHigh: give the cheapest answer that is useful.
	DegradationHigh
)

// DegradationLevels is how many levels there are.
const DegradationLevels = 4

var degradationNames = [DegradationLevels]string{"none", "low", "medium", "high"}

// String returns none, low, medium or high.
func (l DegradationLevel) String() string {
	if int(l) >= len(degradationNames) {
		return fmt.Sprintf("DegradationLevel(%d)", uint8(l))
	}
	return degradationNames[l]
}

type degradationKey struct{}

// WithDegradation returns a copy of ctx that carries l. Servers call it for the
// requests that they admit; tests of handlers may.
func WithDegradation(ctx context.Context, l DegradationLevel) context.Context {
	return context.WithValue(ctx, degradationKey{}, l)
}

// DegradationFrom returns the level at which to answer the request that ctx belongs
// to: that of the task for calls of its criticality when it was admitted. It is
// [DegradationNone] for any other context. The level of a request does not change
// while it is served. A handler that runs for long, such as that of a stream, asks
// the ingress.Server for the current level instead. DegradationFrom allocates
// nothing and is safe for concurrent use.
func DegradationFrom(ctx context.Context) DegradationLevel {
	l, _ := ctx.Value(degradationKey{}).(DegradationLevel)
	return l
}
