// Package collector counts what the policies of the proxy decide, and how requests end.
//
// A [Collector] is a [spillway.Observer]. It adds each event to a fixed number of atomic
// counters. [Collector.Read] returns them as [Totals].
//
// # Requests
//
// Exactly one event says how a request has ended, its fate: the rejection by a gate that
// enforces, or the event of the retry policy for the call to the upstream, with all its
// attempts. For a request that waits in front of a batch cluster, the queue reports a
// deadline that has passed, or a client that has left.
//
//	served             the upstream answered in time
//	late               the deadline passed first
//	failed             the upstream failed, or could not be reached
//	rejected upstream  the upstream itself was overloaded
//	rejected           a gate here rejected the request before it was let in
//	withheld           a gate of the client's side, or the queue of a batch cluster, rejected it later
//	gone, sent         the client left after the request was sent
//	gone, waiting      the client left before
//
// Where the proxy keeps accounts of its requests ([Collector.Accounts]), the fates come from
// these accounts. MongoDB commands pass through the gates once for each attempt: each decision
// is counted, and the fate is that of the command with all its attempts. What gates that observe
// would reject is counted at the first attempt ([Collector.ByEnd]). Hello, and commands that
// authenticate, are not counted. An error from the server counts as an answer, as a status of
// 404 does, unless it is about time or the state of the server.
//
// Latency is measured from the first attempt to the headers of the answer, for requests that
// were served or late. For commands of MongoDB it includes the time that the gates took.
package collector
