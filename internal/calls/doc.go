// Package calls takes a call through the client policies: throttle, in-flight limit, retries and
// their budget.
//
//	Begin ─► Wait ─► Resume ─► Run ─► Succeed ─► Done
//	          ▲        │        │
//	          │        ▼        ▼
//	          │      Reject    Fail ─► Done
//	          └─────────────────┘
//
// A [Flow] decides; the code around it, its shell, reads the clock, waits and makes the attempts.
// Package egress is the shell of real calls, package spillsql that of database/sql, and package sim
// that of simulated calls. The doc of package egress has the order of the policies and its reasons.
//
// However a Flow ends (Done, Reject, Stop, Abort), each ticket is settled exactly once, and the
// retry strategy receives the end of the call exactly once.
package calls
