// Package spillmongo makes clients of MongoDB back off from an overloaded server. It
// puts the specification "Client Backpressure" around the official driver, which
// stays as it is:
//
//	retrier, err := spillmongo.New(options.Client().ApplyURI(uri), spillmongo.Config{})
//	…
//	client, err := mongo.Connect(retrier.ClientOptions())
//
// All else in the program stays the same. Package mongotest is a server to test it
// with.
//
// # What is retried
//
// All commands support retries on server overload: reads, writes of every kind,
// those that set nothing and those that set up indexes, getMore, the commands of
// transactions, and runCommand. A command is retried after an overload if its error
// has both of the labels SystemOverloadedError and RetryableError, by which the
// server says that it is overloaded, and that it has done nothing of the command. So
// is a connection that is closed or times out before its handshake is through, which
// is how a server refuses connections. Not retried are monitoring, handshakes and
// authentication, writes with w: 0, and whatever has one of the labels only.
//
// With a = attempts made so far, for whatever reason they failed:
//
//	retries     5 at most once an attempt has met an overload
//	backoff     u · min(10 s, 100 ms · 2^(a-1)), u uniform in [0, 1); only after an overload
//	server      another one if there is one that may serve it, after an overload;
//	            another mongos after any error
//	deadline    no retry that would begin after it; none is waited for
//	reads       only with retryReads, writes only with retryWrites, runCommand only with both
//
// The decision is that of [retry.Overload]. During the backoff the connection is in
// its pool. The command goes out as it was, with the same transaction number and the
// same startTransaction, but for what has to change: the request ID, maxTimeMS, and
// the write concern of a commit that is sent again after an answer was lost. Commands
// of a cursor stay at its server; so does a transaction that begins at a mongos,
// and whatever is pinned to a connection behind a load balancer.
//
// Retryable reads and writes, which the driver would otherwise retry in a loop of its
// own, are retried here too, as often as before: once, or until the deadline if there
// is one, or without end under a Timeout of zero. That is what makes the cap hold for
// mixtures of errors, with a timeout and without.
//
// # Adaptive retries
//
// Five retries can mean six times the load. With [Config.AdaptiveRetries], or
// adaptiveRetries=true in the URI, retries after an overload cost a token each, out
// of a bucket of 1000 that each client has:
//
//	a retry after an overload             -1
//	success, on the first attempt         +0.1
//	success, on a retry                   +1.1
//	a retry fails, but not for overload   +1
//
// A retry that fails because its context was canceled deposits nothing: the document
// takes such an error for a sign that the server is healthy, and here none came from
// it. One that runs into its deadline deposits, as the document has it. One that was
// paid for and not sent is paid back.
//
// [Config.ServerBudgets] adds a bucket for each server, which no specification has:
// one overloaded server of a set or a cluster then uses up its own tokens and not
// those of the others. A retry is charged to the server that refused.
//
// # What the application sees
//
// The error of the last attempt, with all of its labels; or, if that says that it has
// written nothing (NoWritesPerformed), the last error that does not. Monitors see one
// Started and one Finished event of each attempt, with ids of its own.
//
// # What it costs
//
// A command that succeeds at once costs one allocation and a look at the keys of its
// answer: 0.3 µs of 9, not counting the network and the server. No lock is taken and
// no clock is read, unless there is a monitor or an Observer to tell. With adaptive
// retries there is a deposit in the bucket as well.
//
// # Revisions
//
// The rules above are those of the document of 2026-02-20. [Config.Revision] chooses
// that of July 2026, which has 2 retries, or as many as maxAdaptiveRetries says; a
// backoff of up to 200 ms before the first, whose base the server may set
// (baseBackoffMS); other servers after an overload only with
// enableOverloadRetargeting; and "2" in place of true as the flag backpressure of
// the handshake.
//
// # Limits
//
// The driver tells nobody what a connection is wanted for, so a connection that
// could not be had is retried only if both retryReads and retryWrites are on. Options
// that are given to mongo.Connect beside those of the Retrier do not reach its servers,
// nor does Client.AppendDriverInfo.
//
// Three things the driver keeps to itself, so that they cannot be done from outside:
//
//   - Its log, if it is on, has lines for the first attempt only, with how the last
//     one ended. Monitors see each attempt.
//   - With TLS, the connections of its own monitors, and only those, keep "2" as
//     their flag backpressure: they can be reached below the encryption alone.
//   - It discards a session after a network error, as the lost command may still be
//     at work in it. Of an error that a retry got over it does not learn, and nothing
//     that an operation shows leads to its session, so it uses that one again.
//
// # Release note
//
// What users should be told on the way to a client with this policy:
//
//   - Servers from MongoDB 8.2 on may refuse commands and connections to protect
//     themselves. Under extreme load an application can see more errors than
//     it did, where before the server became slow or went down. The policy hides most
//     of those that come in bursts.
//   - Upgrade to a client that backs off, be it this one or a driver that supports
//     backpressure officially. Clients without it retry at once or not at all, and
//     may need to handle a higher rate of errors with the label
//     SystemOverloadedError.
//   - Retry loops of the application multiply with the policy: three tries around
//     it are up to 18 attempts, with up to 9 s of backoff. Take such loops out, or
//     adjust them so that they do not retry for too long; at least they should not
//     retry errors that have the label SystemOverloadedError.
//   - A command under overload can take up to 3.1 s longer before it fails. Set
//     deadlines on contexts, or a Timeout on the client, where that is too long.
//
// Sources: MongoDB, "Client Backpressure", with "Retryable Reads", "Retryable
// Writes", "Transactions" and "Client Side Operations Timeout", on which it builds.
package spillmongo
