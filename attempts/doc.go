// Package attempts tells a server that refuses a request whether the others are
// overloaded too, so that it can answer "overloaded; don't retry" instead of
// sending the caller on to the next.
//
// # Derivation
//
// Callers say in each request how often they have tried it before: 0, 1, 2, up to
// the limit of attempts for each request. If the tasks of a service refuse with
// probability q, of the requests that a task sees
//
//	1 : q : q²
//
// are first, second and third attempts; with three attempts per request the share
// of retries is
//
//	(q + q²) / (1 + q + q²)
//
// which is 0.10 at q = 0.1, 0.28 at q = 0.3, 0.43 at q = 0.5 and 0.67 at q = 1.
// What one task refuses is spread over all, so a task that is overloaded alone
// sees few retries, whatever it refuses itself; one that sees many knows that
// refusals are common, and that a retry will most likely be refused elsewhere.
//
// A [Histogram] counts attempt numbers in recent history, and DontRetry reports
// whether the share of retries is above Config.Share. Where all tasks say so, the
// retries end, the share falls, and some retries are let through again: it settles
// near Share, at 1/(1−Share) requests for each first attempt. With 0.2, twice the
// load that the tasks can take becomes 1.25 times as many requests instead of 2.4
// times, while one task of ten that has lost most of its capacity still has more
// than 99 % of its requests served by another.
//
// # Recent history
//
// The window is the last 1,000 first attempts, and at most the last 10 seconds;
// whichever is shorter. The first keeps it short where there is much to see, the
// second lets what is over be forgotten where there is little. Both are kept to a
// twentieth: counts are held in segments that are left behind whole. A window with
// fewer than Config.MinRequests says nothing: with 50, a true share of 0.1 looks
// like more than 0.2 once in a hundred windows.
//
// # Who is believed
//
// Inside a system attempt numbers are true, and one Histogram serves all callers.
// From outside they are claims: an untrusted client that calls each of its requests a
// tenth attempt would forbid everybody to retry. [Customers] keeps a history for
// each customer, so that a claim counts against the client that made it, and at most as many
// of them as configured: a customer without an entry is answered as
// if nothing were known.
//
// Source: Site Reliability Engineering, chapter 21, "Deciding to Retry" and figure
// 21-1. The bound in time, the least number of requests and the value of Share are
// additions; the source gives none.
package attempts
