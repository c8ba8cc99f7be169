// Package admin is the side of "spillway proxy" that is for its operators: a page to
// look at, metrics, text to search in, health, and the two changes that can be made
// from afar. It has its own address and passes no gate, so that it answers
// however overloaded the rest is.
//
//	policies ─► Collector, decisions.Log ─┐
//	                                      ├─► one State each second ─► page, stream, JSON, metrics, text
//	proxy    ─► Proxy ────────────────────┘
//
// # Counting
//
// A [Collector] is a [spillway.Observer]: it adds each event to counters of atomics,
// of which there is a fixed number. A [Proxy] has the
// levels: limits, queues, budgets. Once a second both are read and made into one
// [State], and all that is shown anywhere is that State or a part of it: no two
// places can disagree.
//
// # Requests
//
// What became of a request is told by exactly one event: a refusal by a gate that
// enforces, or what the retry policy says of the call to the upstream, all attempts
// of it together. Of a request that waits for its turn in front of a batch cluster, the
// queue says if its time was up or its client left before.
//
//	served    the upstream answered, in time
//	late      the deadline passed first
//	failed    the upstream failed, or could not be reached
//	declined  the upstream itself had no room
//	refused   a gate here had none: it cost the upstream nothing, or no more
//	left      the client went away
//
// Goodput is what was served. What is offered is what was let in and what was
// refused. Gates that observe refuse nothing; what they would have refused is counted
// apart from all this. The gates of the server's side and those of the client's side
// judge the same requests, so of the two the greater number is shown.
//
// Commands of MongoDB meet the gates once for each attempt: of these each decision is
// counted, and the fate is that of the command, all attempts together. Those that no gate
// is asked about, such as hello, are not counted here. An error that the server answers is
// an answer, as a status of 404 is, unless it is one of time or of the server's own state.
//
// Latency is from the first attempt to the head of the answer, of requests that were
// served or late; of commands of MongoDB the time that the gates took is in it. The deadline is the median of those that the requests brought.
// Quantiles have buckets of an eighth of an octave, 12 % at most. A p99 of less than
// 100 answers is not shown; whether it is in time is told by the number of those that
// were late. All rates and quantiles are of the last ten seconds.
//
// # Trust
//
// The address is on loopback unless told otherwise. A request must name as its host
// an address, localhost, or a name that was configured, so that no web page can have
// a browser ask by its own name (DNS rebinding). GET changes nothing. POST wants
// the token in the file that the configuration names, as a bearer token; without a
// file no change is possible. A mode that was set this way is shown as differing from
// the file on the page and in the log, until the file is read again.
//
// # Metrics
//
// Names and labels are those of package internal/telemetry, which the observers of the library
// use, too. There are fewer than 300 series for a default configuration, and for ten
// clusters (metrics.go); and 21 for the routes with most rejections.
package admin
