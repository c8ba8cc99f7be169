// Package requests takes one request through the server policies: the rate limit, the quota of its
// customer, the limit of requests in flight, and the shedder.
//
//	Begin ─► Ask ─► Run ─► End ─► Report
//	          │ ▲
//	          │ └── Proceed, Expire, Withdraw ◄─┐
//	          ├──► Wait ────────────────────────┘
//	          └──► Rejected ─► Rejection
//
// A [Core] has the policies of one process, and an [Admission] is one request. Both decide, and do
// nothing else: they read no clock, set no timer, start no goroutine and make no I/O. Their shell
// does. It passes on the time and what happens, and does what the [Step] says. Package ingress is
// the shell of real requests, and package sim that of simulated ones. The doc of package ingress
// has the order of the policies and its reasons.
//
// # Contract
//
// The shell calls for each Core
//   - [New], or [Core.Update] of a Core with its [Shell], before the first request;
//   - [Core.Next] after each Step with Wake and each End that returns true, until it returns nil,
//     and again, if it has returned busy, when a processor is free.
//
// The shell calls for each request, by one goroutine at a time
//   - [Core.Reject] first, if it can answer more cheaply before it has read the request;
//   - [Core.Begin] and, if that returns true, [Admission.Ask], once; [Core.Enter] is both;
//   - after a Step that says [shed.Wait], exactly one of [Admission.Proceed], [Admission.Expire]
//     and [Admission.Withdraw] that takes it on. If Next has returned its Waiter, or the Step of
//     another request has it as Evicted, that is Proceed. The next Step may say Wait again;
//   - after a Step that says [shed.Rejected], [Admission.Rejection] once. The request has ended;
//   - after a Step that says [shed.Run], [Admission.End] once when the request has ended, and then
//     [Admission.Report] once; [Admission.Done] is both. The Admission can then begin another one;
//   - [Admission.Abandon] in place of all these if code of the user has panicked in Ask, Proceed,
//     Expire or Withdraw.
//
// # Invariants
//
//   - A request keeps the settings with which it began, whatever Update does meanwhile.
//   - Each gate that has admitted a request is settled once, however the request ends. The gates
//     are settled before the Observer, which may panic, learns of the end.
//   - Each gate that has decided on a request causes one event, when the decision is final. After
//     a gate that observes and would reject the request, no further gate decides on it.
//   - A request is in at most one queue that can hold it back, and has at most one reservation.
//   - To admit, reject and end a request allocates nothing unless it waits for a token.
package requests
