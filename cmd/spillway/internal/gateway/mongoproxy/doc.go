// Package mongoproxy is the part of "spillway proxy" for clients of MongoDB: it gives
// any MongoDB-compatible server the two ingress limiters of MongoDB 8.2, and any
// driver, however old, the client backpressure of the specification.
//
//	client ─► accept ──► read ──► gate ──► upstream ─► reply ─► client
//	          ingress    header,  ingress  same server    │
//	          .Listener  command  .Server  and connection │
//	                     └──── retry.Overload ◄───────────┘
//
// # One connection for one connection
//
// Each connection of its own client has one to the server, made when its first
// message comes, and one goroutine that takes turns: it reads a command, decides, sends
// it on, and sends the answer back. So clients authenticate to the server:
// its messages go through as they are. Compression, cursors, sessions and transactions
// are where they would be without a proxy, and no client ever waits for another one's
// turn. The price is that connections are not pooled, and that a retry goes to the
// server that refused: no other has authenticated this connection.
//
// With several mongos, all connections of a client go to the same one for the time that
// it has any: cursors and transactions live in a mongos, and a driver that knows of one
// server only uses any of its connections for them. A client is its address. New
// clients go to the mongos with the fewest connections, and not to one that was not
// reached, or answered that it was overloaded, within the last second (which is how
// overloaded servers are deprioritised here). Connections to a server that a new
// configuration does not have end after the command under way. With loadBalanced=true drivers pin cursors
// and transactions to connections themselves; the serviceId that they need is added
// where the server gives none.
//
// Between messages a connection keeps no buffer, or one of 16 KiB where TLS ends here. A message is looked at as far as it
// fits into one, and what does not fit is copied by the kernel where it can (splice).
//
// # What is looked at
//
// Of a command: the header and the flags, and of the body the first element, $db,
// maxTimeMS and comment, whose member criticality can lower the class of the command. A hello also names the application, the driver, and whether that has
// backpressure. Commands that authenticate name the user, who counts when the server
// has accepted. Of an answer: ok, and if it is not, errorLabels and baseBackoffMS. An
// OP_COMPRESSED is expanded as far as that needs.
//
// # hello
//
// Unless told otherwise, a member of a replica set looks like a mongos: what its hello
// says of the set is left out, so that drivers do not connect around the proxy. URIs
// must not have replicaSet then. topologyVersion stays, and so do the answers that a
// driver awaits, one after the other, on one connection.
//
// # Gates
//
// The limiter of connections and that of commands have the parameters and counts of a
// MongoDB server ([Stats.ServerStatus]). A command that is refused by it, for its quota
// or for its criticality, gets the code 462 with the labels SystemOverloadedError and
// RetryableError, without the latter where retries are not allowed or do not help. One
// that expects no answer is dropped. hello and the commands that authenticate pass all
// gates; so do all commands before authentication, where the configuration says that
// the server demands it. Once authenticated, a connection stays so: another attempt that
// fails, or a logout, takes no gate away. A getMore that waits for news is let in, but not kept in
// flight: it does no work.
//
// The shedder depends on what is in flight to the servers, and not by the run queue of this
// process: a proxy is not the one that does the work.
//
// # Client backpressure
//
// Commands of drivers that do not say backpressure in their hello are sent again after
// an answer with both labels, by the rules of [retry.Overload]: five times, with backoff
// and a budget for each server, never without the labels, never for commands that expect no
// answer or a write concern of 0, never past maxTimeMS, and only if they are short
// enough to be kept. What is sent are the same bytes, with the same session and
// number, but for maxTimeMS, which shrinks; where that is inside of something that is
// compressed, or the body is too long to be looked at there, the command is sent once.
// For these drivers the gates of the proxy are the server: the proxy itself comes back
// after a refusal, as the driver would if it knew how. That is why such a refusal costs
// the budget a token, other than a local refusal elsewhere.
//
// # What is reported
//
// An observer hears the decisions of the gates on each attempt, and of the policy retry
// once the outcome of each command that the gates saw: NotStarted with the refusal of the gate
// if it was refused here, with the attempts made in vain. An error that the server
// answers is an answer, unless it is one of time or of the server's own state. The
// latency ends where the answer begins; it is 0 where that tells nothing, as the command
// waits for news or expects no answer. The latter are served when they are sent.
//
// # Untrusted clients
//
// A message that is malformed closes its connection, with a reason that is counted
// ([Stats.Closed]) and logged, at most ten a second. So does a message that stops in the
// middle for the stall timeout.
//
// The first message has at most 16 KiB and must be complete within the handshake timeout;
// before that no server is connected to, and the buffer is 1 KiB. While three quarters of
// max_connections are taken, it must be complete within a second. Where the servers
// demand authentication, a connection may send 32 commands besides hello, each of at most
// 16 KiB and not compressed, within 30 s, until it has authenticated; between messages it
// may wait for 5 minutes. Connections that have authenticated have the idle timeout.
//
// Where the proxy has its own certificate for the servers, MONGODB-X509 is rejected,
// unless shared_x509 is set: the server would see the certificate of the proxy.
//
// Buffers grow with what arrives, up to what is kept for a retry, out of the process's
// memory budget; without memory a command is passed on and sent once. TLS that is passed
// through has the same timeouts. On Linux, a client that leaves while it waits is noticed
// within two seconds, and so is a server that hangs up between commands.
//
// # Departures from MongoDB
//
// hello is exempt from the limiter of commands even where the server has no users:
// monitors must not be refused. A burst is one second's worth by default, and not
// without bound. A full queue of connections resets instead of closing. A client that leaves while its connection
// is in that queue is noticed when its turn has come.
//
// Sources: the MongoDB wire protocol; "Client Backpressure"; the parameters of MongoDB
// 8.2; "Server Discovery and Monitoring", "Load Balancers".
package mongoproxy
