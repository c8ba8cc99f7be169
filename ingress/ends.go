package ingress

import "github.com/seed90641741/spillway"

// An EndObserver is an Observer that also learns how each request has ended. A gate that observes
// reports at once what it would have rejected, and nothing when the request ends; an EndObserver
// counts each request once, whatever the modes are.
type EndObserver interface {
	spillway.Observer

	// ObserveEnd receives exactly one Event for each request that came to the gates, when it has
	// ended, after the events of the gates. Exempt requests have none.
	//   - Policy is the gate that rejected the request, or where its client left while it waited
	//     (OutcomeAbandoned). It is empty if the gates admitted the request: then Outcome is that
	//     of [Slot.Done], and Latency the time since the last gate was asked.
	//   - Mode is always ModeEnforce.
	//
	// What holds for Observe holds for ObserveEnd: it is called by many goroutines at once, on
	// the path of the request.
	ObserveEnd(e spillway.Event)
}
