// Package admin is the side of "spillway proxy" that is for its operators: a page to
// look at, metrics, text to search in, health, and the two changes that can be made
// from afar. It has its own address and passes no gate, so that it answers
// however overloaded the rest is.
//
//	policies ─► collector, decisions.Log ─┐
//	                                      ├─► one State each second ─► page, stream, JSON, metrics, text
//	proxy    ─► Proxy ────────────────────┘
//
// # One state
//
// Package collector counts the events of the policies. A [Proxy] has the levels: limits,
// queues, budgets. Once a second both are read and made into one [State]. The page, the
// metrics and the text show that State or a part of it, so they agree.
//
// Goodput is the requests that were served in time. What is offered is the sum of all fates.
// What gates in the mode observe would have rejected is counted apart. The gates of the
// server's side and those of the client's side judge the same requests, so of the two the
// greater number is shown.
//
// Quantiles have buckets of an eighth of an octave, 12 % at most. A p99 of less than 100
// answers is not shown. The deadline is the median of those of the requests. All rates and
// quantiles are of the last ten seconds.
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
