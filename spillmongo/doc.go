// Package spillmongo makes MongoDB clients back off from an overloaded server. It adds
// the specification "Client Backpressure" to the official driver, which stays
// unmodified:
//
//	retrier, err := spillmongo.New(options.Client().ApplyURI(uri), spillmongo.Config{})
//	…
//	client, err := mongo.Connect(retrier.ClientOptions())
//
// The rest of the program does not change. Package mongotest is a server for tests.
//
// # What is retried
//
// All commands support retries on server overload: reads, all kinds of writes, index
// commands, getMore, the commands of transactions, and runCommand. A command is retried
// after an overload if its error has both labels, SystemOverloadedError and
// RetryableError: the server is overloaded and did not run the command. A connection
// attempt is retried too if the network fails before the hello is answered, because
// servers reject connections that way.
//
// Not retried: monitoring, handshakes and authentication, whatever the server answers to
// them; writes with w: 0; and errors with only one of the labels.
//
// With a = attempts made so far, whatever the reason they failed:
//
//	retries     at most 5 once an attempt met an overload
//	backoff     u · min(10 s, 100 ms · 2^(a-1)), u uniform in [0, 1); only after an overload
//	server      another suitable server if there is one, after an overload;
//	            another mongos after any error
//	deadline    no retry that would start after it, and no wait for one
//	reads       only with retryReads, writes only with retryWrites, runCommand only with both
//
// [retry.MongoDB] decides. During the backoff the connection is in its pool. The
// command is sent again unchanged, with the same transaction number and the same
// startTransaction, except for the request ID, maxTimeMS, and the write concern of a
// commit that is sent again after its answer was lost. Commands of a cursor stay on its
// server. So does a transaction that started on a mongos, and everything that is pinned
// to a connection behind a load balancer.
//
// Retryable reads and writes, which the driver otherwise retries itself, are retried
// here instead, the same number of times: once, or until the deadline if there is one, or
// without limit with a Timeout of zero. So one cap holds for mixed errors, with and
// without a timeout, and after a failed checkout as well.
//
// # The queue for connections
//
// The driver lets operations wait for a connection in the order of their arrival. Here at most twice as many
// operations as MaxPoolSize wait for a connection of a server or have one. The others wait in front of that by
// the criticality of their context, without a bound, until their deadline. MaxPoolSize is all that this needs:
// nothing is measured, and nothing is rejected. With a MaxPoolSize of zero there is no queue.
//
// # Adaptive retries
//
// Five retries can mean six times the load. With [Config.AdaptiveRetries], or
// adaptiveRetries=true in the URI, each retry after an overload costs a token. Each
// client has a bucket of 1000 tokens:
//
//	a retry after an overload                    -1
//	success on the first attempt                 +0.1
//	success on a retry                           +1.1
//	a retry fails with an error of another kind  +1
//
// A retry that fails because its context was canceled returns nothing: the
// specification takes such an error as a sign that the server is healthy, but the server
// sent none. A retry that reaches its deadline returns a token, as the specification
// says. A retry that was paid for and not sent is refunded.
//
// [Config.ServerBudgets] adds a bucket for each server, which is not in the
// specification: one overloaded server of a replica set or cluster then uses up its own
// tokens only. The server that rejected the command is charged.
//
// # What the application sees
//
// The application receives the error of the last attempt, with all of its labels. If
// that error has the label NoWritesPerformed, it receives the last error without it.
//
// Command monitors receive one Started and one Succeeded or Failed event for each
// attempt, each with its own request ID. The driver's log has the same
// messages with the same request IDs, for the commands that the driver logs; getMore,
// aggregate and some others are not among them.
//
// A server session is discarded after a network error, as the sessions specification
// says, also if a retry succeeded: from its next use on, the command has another lsid.
// Events and log messages show the lsid that the server receives. Session.ID shows the
// driver's.
//
// # Criticality
//
// With [Config.LabelCommands] the comment of a command carries the criticality of the
// context of its operation: {comment: {criticality: "SHEDDABLE"}}. The MongoDB listener
// of "spillway proxy" rejects commands by it. Members of the application's comment are
// kept, and a comment that is no document is left as it is.
//
// # What it costs
//
// A command that succeeds at the first attempt costs one allocation and a look at the
// keys of its answer: 0.3 µs of 9 µs, without the network and the server. It takes no
// lock and reads one clock. Adaptive retries add a deposit.
//
// # Revisions
//
// The rules above are the revision of 2026-02-20. [Config.Revision] selects the one of
// July 2026: 2 retries, or maxAdaptiveRetries; a backoff of up to 200 ms before the
// first retry, whose base the server may set (baseBackoffMS); other servers after an
// overload only with enableOverloadRetargeting; and "2" instead of true in the field
// backpressure of the handshake.
//
// The driver has this later revision as well, without a budget. Its version 2.9.3 does
// not keep the cap: after one overload error it retries other errors once without a
// deadline, and without limit and without a wait with one. Therefore the Retrier does
// not delegate to it; TestDriverKeepsNoCap fails for a driver that does better.
//
// # Limits
//
// The driver does not say what a connection is for. The kind of most commands is taken
// from the call stack. The names there are not part of the driver's API, so [New] has the driver
// make one operation of each kind without a server, and returns an error if they differ. An aggregation and a runCommand whose connection fails are
// retried only if both retryReads and retryWrites are on.
//
// Further options that are given to mongo.Connect do not reach the Retrier's
// servers, nor does Client.AppendDriverInfo. [Retrier.ClientOptions] can be connected
// once; a second mongo.Connect returns an error.
//
// With TLS, the connections of the driver's monitors, and only those, send "2" instead
// of true as backpressure in revision 2026-02. The driver sets their handshake itself
// (Server.createConnection, topology/server.go line 810 of version 2.9.3) and encrypts
// below it; a dialer would have to do the TLS handshake and the OCSP checks in place of
// the driver. Servers only count the field.
//
// # Release note
//
// What users need to know when they move to a client with this policy:
//
//   - Servers from MongoDB 8.2 on may reject commands and connections to protect
//     themselves. Under extreme load an application can see more errors than before,
//     when the server became slow or went down. The policy hides most errors of short
//     bursts.
//   - Upgrade to a client that backs off: this one, or a driver that supports
//     backpressure officially. Other clients retry at once or not at all, and may need
//     to handle more errors with the label SystemOverloadedError.
//   - Retry loops of the application multiply with the policy: three tries around
//     it are up to 18 attempts, with up to 9 s of backoff. Remove such loops, or limit
//     their time; at least they should not retry errors with the label
//     SystemOverloadedError.
//   - A command under overload can take up to 3.1 s longer before it fails. Set
//     deadlines on contexts, or a Timeout on the client, where that is too long.
//
// Sources: MongoDB, "Client Backpressure", with "Retryable Reads", "Retryable
// Writes", "Transactions", "Driver Sessions" and "Client Side Operations Timeout", on
// which it builds.
package spillmongo
