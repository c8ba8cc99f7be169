// Package calls has one call on its way through the client policies: throttle, in-flight limit,
// retries and their budget.
//
//	Begin ─► Wait ─► Resume ─► Run ─► Succeed ─► Done
//	          ▲        │        │
//	          │        ▼        ▼
//	          │      Reject    Fail ─► Done
//	          └─────────────────┘
//
// A [Flow] decides; its shell reads the clock, waits and makes the attempts. Package egress is the
// shell of real calls, package spillsql that of database/sql, and package sim that of simulated
// calls. The doc of package egress has the order of the policies and its reasons.
//
// Whatever ends a Flow (Done, Reject, Stop, Abort), each ticket is settled once, and the strategy
// of the retries hears of the end of the call once.
package calls
