// Package attempts tells a server that rejects a request whether the other tasks of
// the service are overloaded, too. Then it can answer "overloaded; don't retry", so that
// the caller does not try the next task.
//
// # Derivation
//
// Callers say in each request how often they have tried it before: 0, 1, 2, up to
// the limit of attempts for each request. If each task of a service rejects with
// probability q, then the requests that a task sees are in the proportion
//
//	1 : q : q²
//
// first, second and third attempts. With three attempts per request the share
// of retries is
//
//	(q + q²) / (1 + q + q²)
//
// which is 0.10 at q = 0.1, 0.28 at q = 0.3, 0.43 at q = 0.5 and 0.67 at q = 1.
// The retries of requests that one task rejects are spread over all tasks. So a task that is
// overloaded alone sees few retries, however many requests it rejects. A task that sees many
// knows that many tasks reject, and that another one would most likely reject a retry, too.
//
// A [Histogram] counts attempt numbers in recent history, and DontRetry reports
// whether the share of retries is above Config.Share. When all tasks say so, the
// retries end, the share falls, and some retries are made again. It settles
// near Config.Share, at 1/(1−Share) requests for each first attempt. With 0.2, twice the
// load that the tasks can take becomes 1.25 times as many requests instead of 2.4
// times, while one task of ten that has lost most of its capacity still has more
// than 99 % of its requests served by another.
//
// # Recent history
//
// The window is the last 1,000 first attempts or the last 10 seconds, whichever is
// shorter. The first bound makes it react quickly to much traffic, the second forgets old
// attempts when there is little traffic. Both are exact to a twentieth: counts are kept in
// segments that are dropped whole. A window with fewer than Config.MinRequests gives no
// answer: with 50, a true share of 0.1 looks
// like more than 0.2 once in a hundred windows.
//
// # Trust
//
// At an internal boundary attempt numbers are trusted, and one Histogram serves all callers.
// At an edge they are not: an untrusted client that calls each of its requests a
// tenth attempt could stop the retries of all clients. [Customers] keeps a history for
// each customer, so that a false number only affects the customer that sent it. The number of
// customers is bounded by configuration; for a customer without an entry nothing is known.
//
// Source: Site Reliability Engineering, chapter 21, "Deciding to Retry" and figure
// 21-1. The bound in time, the least number of requests and the value of Share are
// additions; the source gives none.
package attempts
