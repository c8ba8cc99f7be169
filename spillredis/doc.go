// Package spillredis puts the client policies of Spillway into github.com/redis/go-redis:
// adaptive throttling, an in-flight limit, and retries that are paid from a budget, by the
// criticality of the context.
//
//	client, err := spillredis.NewClient(&redis.Options{Addr: addr}, egress.Config{})
//
// The result is an ordinary [redis.Client]. [Install] does the same to a client that
// exists, and [NewClusterClient] makes one for a cluster.
//
// # One layer retries
//
// go-redis repeats commands three times and dials five times by default, whether the server
// may have executed them or not. Here the hook repeats them, and go-redis must not:
// MaxRetries is -1 and DialerRetries 1. A command is sent again if the server has
// certainly not executed it, if it only reads, or if its context is [Idempotent]; at most
// twice, and retries are at most 10 % of the commands, unless [egress.Config] says otherwise.
//
// In a cluster each node has its own throttle and in-flight limit, and all share the
// budget. go-redis follows MOVED and ASK, at most MaxRedirects times. Each redirection is an
// attempt at the next node, which passes its policies. go-redis repeats nothing that was sent, except a
// transaction that a node has not executed. A pipeline or transaction that it had no connection for it tries again
// MaxRedirects times, each time as a new call.
//
// # What an answer means
//
//	BUSY                                        overloaded, not executed
//	max number of clients reached               overloaded, not executed
//	OOM                                         overloaded, no retry: waiting frees no memory
//	LOADING, MASTERDOWN, CLUSTERDOWN            not executed; not for lack of capacity
//	TRYAGAIN, READONLY, NOREPLICAS              likewise
//	MOVED, ASK                                  for go-redis
//	any other error                             the command is wrong: no retry
//	nil, a transaction whose key has changed    a success
//
// A rejected connection is not an overload: the server is not there, and the throttle does not
// count it. The dial is repeated every 10 ms for up to a second, by one caller on behalf of
// all waiting ones, so commands are served again 10 ms after the server is back. After
// PoolSize dials that failed for a second, go-redis fails commands at once, and tries for 5 s
// of every 6. After a broken connection it is unknown whether the command was executed. An
// expired deadline is a timeout. A timeout of go-redis' pool is a limit of this process: it
// says nothing about the server.
//
// # Whose load
//
// A command is in flight until its answer has arrived. A pipeline or transaction is one
// request with one place in flight; it is repeated only if none of its commands was executed,
// or if its connection broke and all of them only read. Commands that wait for other clients (BLPOP and similar, XREAD
// with BLOCK, WAIT), and pipelines with one of them, give their place back when they are sent: PoolSize bounds them. A caller
// that stops waiting says nothing about the server. Subscriptions have connections of their
// own in go-redis and pass no policy.
//
// The handshake of a new connection is part of the command that needs it.
package spillredis
