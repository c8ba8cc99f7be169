// Package budget decides whether a retry can be paid for.
//
// Backoff spreads retries out; it does not reduce their number. When a backend rejects everything,
// clients that make three attempts triple its load during the overload. A budget limits the number
// of retries: a retry costs tokens, calls that need no retry earn tokens, and without tokens no
// retry is made.
//
// # The bucket
//
// A [Bucket] holds at most Capacity tokens:
//
//	withdraw(n): if level < n, no retry; else level = level - n
//	deposit(n):  level = min(Capacity, level + n)
//
// The strategies of package retry define what a retry costs and what an answer earns,
// so that one bucket can serve several strategies and several clients.
//
//	                   capacity  starts  first success  success after retry  retry
//	MongoDB, adaptive      1000    full           +0.1                 +1.1     -1
//	Smithy, standard        500    full             +1    its cost returned  -5..-14
//	SRE, ratio              100   3 (credit)      +0.1                    -     -1
//
// (In the last row a first attempt earns its token whether it succeeds or not.) With MongoDB's
// numbers, retries settle at one in ten successes while the backend is overloaded. With the ratio
// they stay below Ratio of the first attempts, so amplification is at most 1 + Ratio, whatever the
// load is and however many attempts fail. The capacity limits what a long healthy time saves up.
// The credit lets a new process retry its first calls: the first deposits repay it, so after n
// first attempts there were at most max(Credit, Ratio·n) retries.
//
// A client that makes few calls earns too little to retry at all. MinPerSecond gives it a reserve
// of ten seconds of tokens that refills by time, as in Finagle and Linkerd. This bucket has one
// level for both: time adds tokens only while the level is below the reserve.
//
// Sources: Smithy, "Retrying Requests" (example strategy); MongoDB, "Client Backpressure" (token
// bucket); Site Reliability Engineering, chapter 21 ("Deciding to Retry"); Finagle's RetryBudget
// for the reserve. Departures: a deposit cannot lift the level above the capacity, which the
// example of the Smithy guide allows. In Finagle each deposit and each withdrawal expires after ten
// seconds; here the capacity limits what is saved.
//
// # Endpoints
//
// A client may have many backends, or many servers behind one name. An overloaded one must use up
// only its own tokens. [Endpoints] keeps a bucket for each.
//
// # gRPC
//
// [RetryThrottling] is the rule of gRFC A6, which counts events instead of tokens.
//
// All are safe for concurrent use, allocate nothing in use, and satisfy
// retry.Budget.
package budget
