// Package collector counts what the policies of the proxy decide, and how requests end.
//
// A [Collector] is a [spillway.Observer]. It adds each event to a fixed number of atomic
// counters. [Collector.Read] returns them as [Totals].
//
// # Requests
//
// The proxy writes how each request ends to the accounts of the Collector (package accounts).
// Events only add what gates that observe would reject. MongoDB commands pass through the gates
// once for each attempt: what these gates would reject is counted at the first attempt
// ([Collector.ByEnd]). Hello, and commands that authenticate, are not counted. An error from
// the server counts as an answer, as a status of 404 does, unless it is about time or the
// state of the server.
//
// Latency is measured from the first attempt to the headers of the answer, for requests that
// were served or late. For commands of MongoDB it includes the time that the gates took.
package collector
