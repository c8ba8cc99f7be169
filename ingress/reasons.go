package ingress

import "fmt"

// Reasons says how much of the reason for a rejection the client learns. Status, scope and retry
// hints do not depend on it.
type Reasons uint8

const (
	// ReasonsByBoundary is ReasonsCoarse at an Edge and ReasonsFull at an Internal boundary. It
	// is the zero Reasons.
	ReasonsByBoundary Reasons = iota
	// ReasonsNone means that the client learns no reason.
	ReasonsNone
	// ReasonsCoarse means that the client learns whether the server is overloaded or a quota is
	// used up, and nothing about gates, limits and customers.
	ReasonsCoarse
	// ReasonsFull means that the client learns the [spillway.Reason].
	ReasonsFull
)

var reasonsNames = [...]string{"by_boundary", "none", "coarse", "full"}

// String returns the text form: by_boundary, none, coarse or full.
func (r Reasons) String() string {
	if int(r) >= len(reasonsNames) {
		return fmt.Sprintf("Reasons(%d)", uint8(r))
	}
	return reasonsNames[r]
}
