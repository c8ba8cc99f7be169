// Package mongoproxy is the part of "spillway proxy" for clients of MongoDB: it gives
// any MongoDB-compatible server the two ingress limiters of MongoDB 8.2, and any
// driver, however old, the client backpressure of the specification.
//
//	client ─► accept ──► read ──► gate ──► upstream ─► reply ─► client
//	          ingress    header,  ingress  same server    │
//	          .Listener  command  .Server  and connection │
//	                     └──── retry.MongoDB ◄───────────┘
//
// docs/mongodb-proxy.md says what operators and clients see, this comment what the code must keep to.
//
// # One connection for one connection
//
// Each client connection has one connection to the server, made when the first message
// arrives, and one goroutine: it reads a command, decides, sends it on, and sends the answer
// back. The price is that a retry goes to the server that rejected the command: no other server
// has authenticated this connection.
//
// With several mongos, all connections of a client go to the same mongos while it has any:
// cursors and transactions live in a mongos, and a driver that sees a single server uses any
// of its connections for them. Clients are identified by IP address. New clients go to the
// mongos with the fewest connections, and not to one that was unreachable or overloaded within
// the last second (this is how overloaded servers are deprioritised). Connections to a server
// that a new configuration does not have end after the command in flight. With
// loadBalanced=true drivers pin cursors and transactions to connections themselves; the
// serviceId that they need is added where the server gives none.
//
// Between messages a connection keeps no buffer, or one of 16 KiB where TLS ends here. Only
// the part of a message that fits into the buffer is inspected. The kernel copies the rest
// where possible (splice).
//
// # What is looked at
//
// Of a command: the header and the flags, and of the body the first element, $db, maxTimeMS
// and comment, whose member criticality can lower the class of the command. Whether a cursor is
// one of a change stream, or waits for news in a capped collection, is seen when it is opened; the
// latest 8,192 of them in use are known. A hello also names
// the application, the driver, and whether the driver supports backpressure. Commands that
// authenticate name the user, which is used once the server has accepted it. Of an answer: ok,
// and for an error errorLabels and baseBackoffMS. An OP_COMPRESSED is expanded as far as
// needed.
//
// zlib and zstd can be expanded in part, snappy cannot: so it is not offered to drivers.
//
// # Gates
//
// Both limiters have the counters of a MongoDB server ([Stats.Counts]). A rejection has
// no label RetryableError where retries are not allowed or do not help. A rejected command that
// expects no answer is discarded. Once authenticated, a connection stays subject to the gates,
// even after a failed authentication or a logout.
//
// From a hello only the fields about the replica set are removed. topologyVersion stays, and so
// do the streamed answers that a driver awaits on one connection.
//
// # Client backpressure
//
// Commands of drivers without backpressure in their hello are retried after an answer with
// both labels, by the rules of [retry.MongoDB]: five times, with backoff and a budget for
// each server, never without the labels, never for commands that expect no answer or have a
// write concern of 0, never past maxTimeMS, and only if they are short enough to be buffered.
// A retry has the same bytes, with the same session and number, except that maxTimeMS shrinks;
// where maxTimeMS is in a compressed message, or the body is too long to be inspected, the
// command is sent once. For these drivers the gates of the proxy count as the server: the
// proxy retries after a rejection, as a driver with backpressure would. Such a rejection
// therefore costs the budget a token, unlike a local rejection elsewhere.
//
// # What is reported
//
// An observer receives the decisions of the gates on each attempt and, with the policy retry,
// one outcome for each command that passed through the gates: NotStarted with the rejection
// and the number of attempts if a gate rejected it. An error that the server answers counts as
// an answer, unless it is about time or the state of the server. The latency ends when the
// answer begins; it is 0 for commands that wait for new data or expect no answer. Commands
// without an answer count as served when they are sent.
//
// Each command is counted in exactly one account (package accounts), except hello and commands that
// authenticate. A command is also rejected if the client may not send it before it has authenticated,
// and if it waits at a gate when the listener ends. A command that is sent when the server
// hangs up, or when no server can be reached, has failed. A rejection is described by the
// database and the name of the command, and the user or else the address of the client.
//
// # Untrusted clients
//
// A message that is malformed closes its connection, with a reason that is counted
// ([Stats.Closed]) and logged, at most ten a second. So does a message that stops in the
// middle for the stall timeout.
//
// The first message has at most 16 KiB and must be complete within the handshake timeout;
// before that the proxy connects to no server, and the buffer is 1 KiB. While three quarters
// of max_connections are taken, it must be complete within a second. Where the servers demand
// authentication, a connection that has not authenticated may send 32 commands other than
// hello, each of at most 16 KiB and not compressed, within 30 s; between messages it may wait
// for 5 minutes. Authenticated connections have the idle timeout.
//
// Buffers grow with the data that arrives, up to the size that is kept for a retry, and count
// against the memory budget of the process; without memory a command is streamed and sent
// once. A command that zstd has compressed cannot be streamed: it waits for memory until the stall
// timeout. TLS that is passed through has the same timeouts. On Linux, a client that leaves while
// it waits is noticed within two seconds, and so is a server that hangs up between commands.
//
// # Departures from MongoDB
//
// hello is exempt from the limiter of commands even where the server has no users: monitors
// must not be rejected. The default burst is one second of the rate, not unlimited. When the
// connection queue is full, connections are reset instead of closed. A client that disconnects
// while it is in that queue is noticed at its turn.
//
// Sources: the MongoDB wire protocol; "Client Backpressure"; the parameters of MongoDB
// 8.2; "Server Discovery and Monitoring", "Load Balancers".
package mongoproxy
