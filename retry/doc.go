// Package retry decides whether and when a failed call is made again and which budget pays for
// it, and makes it.
//
// # Strategies and tokens
//
// A [Strategy] holds the state that all calls of a client share; a [Token] holds the state of
// one call. Begin returns a Token for the first attempt; Refresh trades the Token of a failed
// attempt for the Token of the next one, or returns the reason why the call is not retried;
// Succeed and Release end the call. Each of the last three invalidates the Token, whatever
// they return: using one twice, or with another strategy, is an error and charges nothing.
// [Do] is the loop around this. An adapter that has its own loop drives a Strategy in the same
// way. Source: Smithy, "Retrying Requests". Release, and the time and the deadline as inputs,
// are added to its interface, which cannot end a call that failed, and does not check the
// deadline.
//
// There are three strategies. They share one engine and differ in numbers. To change one in
// use, make another with the same [Budget] for future calls: each call stays with the strategy
// that began it.
//
// # What every strategy does
//
// A failed attempt is described by a [fault.Failure]. It is retried only if all of the
// following hold. They are checked in this order, so that a retry that is not made is not
// charged:
//
//  1. The failure is retryable: [fault.Failure.Retryable]. A call counts as
//     idempotent if it says so or reads.
//  2. The maximum number of attempts is not reached. It counts all attempts, the
//     first one included, whatever the reason of their failure.
//  3. The delay ends before the deadline. There is no wait for a retry that would
//     come too late.
//  4. The budget pays.
//
// The delay before the i-th retry (i = 0 for the first) is exponential with full
// jitter:
//
//	t_i = u · min(Max, Base·2^i)    u uniform in [0, 1)
//
// The random factor keeps clients that failed together from retrying together. If the backend
// asked for a delay of h, the retry comes no earlier, and the retries of many clients are
// spread out:
//
//	delay = h + u · max(min(Max, Base·2^i), h/10)
//
// If h is above MaxRetryAfter (1 min), or the deadline is closer, the call ends at once, with
// the hint in its error. Revision 2.1 of [AWSStandard] departs from this.
//
// A retry that was paid for and never sent (the caller left during the wait, or another policy
// rejected it here) is paid back. A call that waits at the server for work
// ([spillway.Call.LongPoll]) and has no budget left waits t_i before it returns its error,
// since its caller will send it again at once.
//
// # MongoDB
//
// [MongoDB] is MongoDB's "Client Backpressure" together with the retry policies
// that it joins. With a = attempts made so far:
//
//	retries allowed  1 (OtherRetries); 5 (MaxRetries) once one met an overload
//	backoff          overload: u · min(10 s, 100 ms·2^(a-1)); anything else: none
//	price            overload: 1 token; anything else: free
//	deposits         success on the first attempt 0.1, on a retry 1.1;
//	                 a retry that fails, but not for overload: 1
//
// An overloaded backend gets more retries than a failing one, because rejections are cheap and
// the call never ran; the maximum stays in force for the rest of the call, so that a mixture
// of failures cannot exceed it. An overload is retried only if the failure says that it is
// safe. Without a Budget there is no token bucket, which is the document's default; a [Budget]
// of 1000 tokens enables adaptive retries. The revision of July 2026 has no bucket, 2 retries,
// exponent a, a base that the server may set, and deprioritises servers only on request.
//
// The adapter decides how a command is changed for its retry, and which of its errors a driver
// returns (rules 5 and 6 of the document). Departure: a retry that ends because the caller
// gave up deposits nothing, as it says nothing about the server.
//
// # AWS standard
//
// [AWSStandard] is the example strategy of Smithy's "Retrying Requests", as AWS SDKs
// have it in two revisions, with a bucket of 500 tokens:
//
//	                                2.0               2.1
//	attempts                        3                 3
//	base: overload / else           1 s / 1 s         1 s / 50 ms
//	Max                             20 s              20 s
//	price: overload/timeout/else    5 / 10 / 5        5 / 14 / 14
//	first attempt succeeds          +1                +1
//	a retry succeeds                cost of that retry returned
//	hint h                          as above          clamp(h, t_i, t_i + 5 s)
//
// Departures from the printed example, which has these faults: it sends one request more than
// its limit; it fails on errors without a hint, after charging; it retries failures that must
// not be retried; it takes "maybe" for "yes"; it waits for a hint of any length; and with a
// deposit of one for every success, successful retries drain the bucket.
//
// # Budgeted
//
// [Budgeted] is "Deciding to Retry" of chapter 21 of Site Reliability Engineering: up to three
// attempts, and retries at most 10 % of the client's calls. A first attempt earns 0.1 tokens, a
// retry costs one; the chapter's "1.1x" is this reading of its 10 %. A limit of three attempts
// alone would allow three times the load. Retries are made at once, as in the chapter, where
// another task serves them; a Backoff can be set.
//
// The bucket starts with 3 tokens on credit, which the first 30 first attempts repay, so that a
// fresh process can retry its first calls. After n first attempts there were at most max(3, 0.1·n)
// retries: from the 30th call on, amplification is at most 1.1, as without the credit. A process
// that makes fewer than 30 calls adds at most 3 requests in total.
//
// A local rejection earns nothing, as nothing was sent. The capacity of the bucket is what a
// thousand first attempts earn, the length of the window of the chapter's figure 21-1.
//
// A rejection by one task only ([fault.ScopeTask]) is retried after 0 to 5 ms, the second time
// after 0 to 10 ms, whatever its hint: the hint is for this task, and the retry is for another. The
// retry is paid for like any other. A second bucket measures whether other tasks serve such
// retries: it has up to 10 tokens, each of these retries that fails takes one, down to -100, and
// each served call adds a tenth. With less than one token, the hint counts as if it had no scope.
// So if all tasks are overloaded, or there is only one, almost no retry is wasted.
//
// A rejection of one customer ([fault.Failure.OverQuota]) is retried only if it has a hint.
// Deposits and prices of such calls go to a second bucket of the same size: a customer over
// its quota neither uses up the retries of the others nor lets them retry more.
package retry
