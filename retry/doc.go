// Package retry decides whether, when and at whose expense a failed call is made
// again, and makes it.
//
// # Strategies and tokens
//
// A [Strategy] holds what all calls of a client share; a [Token] holds what one
// call has been through. Begin hands out a Token for the first attempt; Refresh
// trades the Token of a failed attempt for that of the next one, or says why
// there is none; Succeed and Release end the call. A Token is spent by each of
// the last three, whatever they answer: one that is used twice, or shown to
// another strategy, is an error and charges nothing. [Do] is the loop around
// this. An adapter that has its own loop drives a Strategy in the same way.
// Source: Smithy, "Retrying Requests"; Release, and the time and the deadline as
// inputs, are added to its interface, which cannot end a call that failed, and
// cannot know that there is no time left.
//
// There are three strategies. They share one engine and differ in numbers. To
// change one in use, make another with the same [Budget] for the calls to come:
// each call keeps to the strategy that began it.
//
// # What every strategy does
//
// A failed attempt is described by a [fault.Failure]. It is retried only if all
// of this holds, checked in this order, so that nothing is charged for a retry
// that is not made:
//
//  1. The failure is retryable: [fault.Failure.Retryable]. A call counts as
//     idempotent if it says so or reads.
//  2. The limit of attempts is not reached. It counts all attempts, first one
//     included, for whatever reason they failed.
//  3. The delay ends before the deadline. Nobody sleeps for a retry that comes
//     too late.
//  4. The budget pays.
//
// The delay before the i-th retry (i = 0 for the first) is exponential with full
// jitter:
//
//	t_i = u · min(Max, Base·2^i)    u uniform in [0, 1)
//
// The random factor keeps clients that failed together from coming back
// together. Where the backend asked to be left alone for a time h, the retry
// comes no earlier, and not with everybody else either:
//
//	delay = h + u · max(min(Max, Base·2^i), h/10)
//
// If h is above MaxRetryAfter (1 min), or the deadline is nearer, the call ends
// at once, with the hint in its error. Revision 2.1 of [Standard] departs from
// this.
//
// A retry that was paid for and never sent (the caller left during the wait, or
// another policy refused it here) is paid back. A call that waits at the server
// for work ([spillway.Call.LongPoll]) and has no budget left waits t_i before it
// returns its error, since its caller will send it again at once.
//
// # Overload
//
// [Overload] is MongoDB's "Client Backpressure" together with the retry policies
// that it joins. With a = attempts made so far:
//
//	retries allowed  1 (OtherRetries); 5 (MaxRetries) once one met an overload
//	backoff          overload: u · min(10 s, 100 ms·2^(a-1)); anything else: none
//	price            overload: 1 token; anything else: free
//	deposits         success on the first attempt 0.1, on a retry 1.1;
//	                 a retry that fails, but not for overload: 1
//
// An overloaded backend gets more retries than a failing one, because refusals
// are cheap and the call never ran; the cap stays for the rest of the call, so
// that a mixture of failures cannot outrun it. An overload is retried only if the
// failure says that it is safe. Without a Budget there is no token bucket, which
// is the document's default; a [Budget] of 1000 tokens enables adaptive retries.
// The revision of July 2026 has no bucket, 2 retries, exponent a, a base that the
// server may set, and deprioritises servers only on request.
//
// How a command is changed for its retry, and which of its errors a driver
// returns (rules 5 and 6 of the document), are the adapter's to know. Departure:
// a retry that ends because the caller gave up deposits nothing, as it says
// nothing about the server.
//
// # Standard
//
// [Standard] is the example strategy of Smithy's "Retrying Requests", as AWS SDKs
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
// Departures from the example as it is printed, which in these points is not
// sound: it sends one request more than its limit; it fails on errors without a
// hint, after charging; it retries what says that it must not be; it takes
// "maybe" for "yes"; it waits for a hint of any length; and with a deposit of one
// for every success, retries that succeed drain the bucket.
//
// # Budgeted
//
// [Budgeted] is "Deciding to Retry" of chapter 21 of Site Reliability
// Engineering: up to three attempts, and retries at most 10 % of the client's
// calls. An original earns 0.1 tokens, a retry costs one; the chapter's "1.1x" is this
// reading of its 10 %. Three attempts alone would allow three times the load. Retries
// are made at once, as in the chapter, where another task will do; a Backoff can be set.
//
// The bucket starts with 3 tokens on credit, which the first 30 originals repay, so that
// a fresh process can retry its first calls. After n originals there were at most
// max(3, 0.1·n) retries: from the 30th call on, and so in the first minute of any process
// that makes 30 calls in it, amplification is at most 1.1 as without the credit. A
// process that makes fewer adds 3 requests in all.
//
// A local refusal earns nothing, as nothing was sent. The bucket holds what a
// thousand originals earn, the length of the window of the chapter's figure 21-1.
//
// A refusal of one task only ([fault.ScopeTask]) is retried after 0 to 5 ms, the second
// time after 0 to 10 ms, whatever its hint: that is for this task, and the retry is for
// another. It is paid for like any other. That others serve it is believed while it proves
// true: such a retry costs one of 10 tokens, and one that is served returns it; each call
// that is served adds a tenth. Without a token the hint counts as if it had no scope. So
// where all tasks are overloaded, or there is only one, almost no retry is wasted.
//
// A refusal of one customer ([fault.Failure.OverQuota]) is retried only if it has a hint.
// What such refusals earn and their retries cost is kept in a second bucket of the same
// size: a customer over its quota neither uses up the retries of the others nor lets them
// retry more.
package retry
