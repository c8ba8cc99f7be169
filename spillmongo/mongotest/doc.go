// Package mongotest is a MongoDB deployment inside the test: one or several nodes that
// speak the wire protocol over loopback or through memory, with the fail points and the
// ingress limiters by which a MongoDB server shows its clients what overload is.
//
//	d := mongotest.Start(t, mongotest.Config{})
//	client, err := mongo.Connect(d.Options())
//
// It is for tests of clients and tools that handle overload: it rejects, closes, delays
// and counts exactly as configured, on machines without MongoDB. It is not for tests
// of queries, and it is no database: all data is in memory, and a user may do all.
//
// # Nodes
//
// The nodes of a [Deployment] share their data: a write to one is visible on all. In a replica
// set one is primary; [Deployment.SetPrimary] changes it, and clients learn of the change at
// once, through the hello that their monitors await. As mongoses, all nodes are alike. Behind
// a load balancer, connections go to the nodes in turn, and their hello has the serviceId.
// Each node has separate fail points, parameters, limiters, cursors and counts ([Node.Stats]),
// and can be stopped, restarted and disconnected.
//
// # Overload
//
// With [Config.Work] a node has a capacity: commands and new connections take a ticket
// for some time, and wait for one in a queue without bound, also after their clients have
// left. serverStatus shows the queue and the tickets.
//
// # Time
//
// With [Config.Pipes] nodes and clients are connected through memory, and everything
// waits on timers and channels. In a bubble of testing/synctest, backoffs and timeouts
// then take no time, and time.Since is exact.
//
// # Fail points
//
// Fail points are set with the command configureFailPoint, over the wire or by
// [Node.RunCommand], and do what they do in MongoDB. All have the modes off, alwaysOn,
// {times: n}, {skip: n} and {activationProbability: p}.
//
// failCommand takes failCommands, failAllCommands, errorCode, errorLabels,
// closeConnection, blockConnection with blockTimeMS, writeConcernError, appName and
// namespace, and ignores other fields. It first blocks the command, then closes its
// connection or answers with the error; a command that does not fail runs, and gets the
// write concern error. errorLabels, even if empty, replace the labels of the code.
//
// onPrimaryTransactionalWrite fails a retryable write with failBeforeCommitExceptionCode
// before it is applied, or else closes the connection after it was applied, unless
// closeConnection is false.
//
// failGetMoreAfterCursorCheckout fails a getMore with errorCode, or closes its
// connection; the cursor is lost.
//
// # Ingress limiters
//
// Both limiters of MongoDB 8.2 are here, off until a parameter enables them
// ([Config.Parameters], or the command setParameter), on the token bucket of package
// ratelimit. Their counts are in serverStatus under MongoDB's names, and so are the
// latencies of operations.
//
// The limiter of connections takes a token before the first byte is read. Without one
// the connection waits, if there is room in the queue, else it is closed without a
// reply:
//
//	ingressConnectionEstablishmentRateLimiterEnabled    false
//	ingressConnectionEstablishmentRatePerSec            2147483647
//	ingressConnectionEstablishmentBurstCapacitySecs     without bound
//	ingressConnectionEstablishmentMaxQueueDepth         0
//	ingressConnectionEstablishmentRateLimiterBypass     {ranges: []}
//
// The limiter of requests takes a token for each command. Without one it answers with
// the code 462, IngressRequestRateLimitExceeded, and the labels SystemOverloadedError
// and RetryableError:
//
//	ingressRequestRateLimiterEnabled                    false
//	ingressRequestAdmissionRatePerSec                   2147483647
//	ingressRequestAdmissionBurstCapacitySecs            without bound
//	ingressRequestAdmissionMaxQueueDepth                0
//	ingressRequestRateLimiterExemptions                 {ranges: []}
//	ingressRequestRateLimiterApplicationExemptions      {appNames: []}, prefixes; read as an array, or null
//	ingressRequestRateLimiterAllowRetries               true; else without RetryableError
//	externalClientBaseBackoffMS                         0; else sent as baseBackoffMS
//
// # Departures from MongoDB
//
// There is no TLS. Of authentication there is SCRAM, for [Config.Users]. A MongoDB
// server exempts from the limiter of requests whatever comes before authentication;
// without users that would be all, or nothing. Here hello, isMaster and the commands
// that authenticate are exempt, so that monitors and handshakes do not take the tokens
// that a test has counted.
//
// A rate may be a fraction, down to one a day, so that a test can have a bucket that
// does not fill while it runs. A rate above 1e6, or a burst of more than a day, limits
// nothing.
//
// A hello that awaits a change is held back for [Config.HelloInterval] only.
//
// Retryable writes and transactions are kept by their session and number, and written
// by no client twice. A transaction sees the writes of others as they come; two that write
// the same document conflict. There is no replication to wait for, so write concern,
// read concern and causal consistency are accepted, and hold. maxTimeMS is accepted and
// ends nothing.
//
// The language of queries, updates and aggregations is a part of MongoDB's; what is
// missing is rejected, with an error that says so, and never ignored. Change streams
// report whole documents. $where can do one thing, which is to sleep.
//
// # Bounds
//
// What a client can name is bounded: messages, documents and their depth, connections,
// cursors, sessions, and the bytes in the collections ([Config.MaxBytes]).
//
// Sources: the MongoDB wire protocol; the specifications "Server Discovery and
// Monitoring", "Load Balancers", "Retryable Writes", "Transactions" and "Client
// Backpressure"; the documentation of failCommand and of the ingress limiters.
package mongotest
