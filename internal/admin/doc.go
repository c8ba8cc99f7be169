// Package admin serves the operators of "spillway proxy", of "spillway quota" and of programs with package spilladmin: a
// dashboard, metrics, plain text for scripts, health checks, and an API for two changes. Its requests pass no gate, so it
// answers when the proxy is overloaded.
//
//	policies ─► collector, decisions.Log ─┐
//	                                      ├─► one State each second ─► page, stream, JSON, metrics, text
//	proxy    ─► Source ───────────────────┘
//
// # One state
//
// Package collector counts the events of the policies. A [Source] has the levels: limits,
// queues, budgets. Once a second both are read and made into one [State]. The page, the
// metrics and the text show that State or a part of it, so they agree.
//
// Goodput is the rate of requests that were served before their deadline. The offered
// rate is the sum of all outcomes. Requests that gates in observe mode would have rejected
// are counted separately. Server-side and client-side gates judge the same requests, so
// the page shows the greater of the two numbers.
//
// Quantiles have buckets of an eighth of an octave, 12 % at most. A p99 of less than 100
// answers is not shown. The deadline shown is the median over the requests. All rates and
// quantiles are of the last ten seconds.
//
// # Trust
//
// The default address is on loopback. The Host of a request must be an IP address,
// localhost, or a configured name, which prevents DNS rebinding by web pages. GET changes
// nothing. POST requires the token of the configured token file, as a bearer token;
// without a token file all changes are rejected. After a mode was set over the API, the
// page and the log show that it differs from the configuration file, until the next reload.
//
// # Metrics
//
// Package internal/telemetry defines names and labels, for the observers of the library,
// too. A default configuration has fewer than 300 series, and so has one with ten clusters
// (package exporters of the proxy), plus 21 for the routes with most rejections.
package admin
