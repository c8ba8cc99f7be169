// Package spillway defines the types that all overload policies share: how important a call
// is, what a policy may know about it, its outcome, and its rejection. It decides nothing
// itself and imports only the standard library.
//
// # Life of a call
//
// A caller that has a [Call] to make asks each policy in turn to admit it. A policy that
// rejects it returns a [RejectedError]; one that admits it returns a [Ticket], which is
// settled exactly once with the [Outcome] of the call:
//
//	ticket, err := gate.Admit(now, call)
//	if err != nil {
//		return err // errors.Is(err, spillway.ErrRejected)
//	}
//	err = send(ctx)
//	ticket.Settle(now, outcomeOf(err))
//
// Package egress does this for all client policies in the right order; package
// spillhttp does it for net/http. Use a policy package on its own where only
// one mechanism is wanted.
//
// # Time
//
// Policies never read a clock. Every decision takes the time as an argument, so
// that one clock read serves all policies of an attempt, tests replay rows in
// explicit time, and a simulator can drive the same code. A time that steps
// back is treated as no time having passed.
package spillway
