// Package spillrueidis puts the client policies of Spillway into github.com/redis/rueidis:
// adaptive throttling, an in-flight limit, and retries that are paid from a budget, by the
// criticality of the context.
//
//	client, err := spillrueidis.NewClient(rueidis.ClientOption{InitAddress: []string{addr}}, egress.Config{})
//
// The result is a [rueidis.Client].
//
// # One layer retries
//
// rueidis repeats reads until their context ends. Here the Client repeats commands, and rueidis
// must not: DisableRetry is set. A command is sent again if the server has certainly not executed
// it, if it only reads, or if it is marked with ToRetryable; at most twice, and
// retries are at most 10 % of the commands, unless [egress.Config] says otherwise.
//
// In a cluster each shard has its own throttle and in-flight limit, and all share the budget. The
// shards are read with CLUSTER SLOTS once per minute. rueidis follows MOVED and ASK, here at
// most three times, within one attempt.
//
// # What an answer means
//
//	BUSY                                        overloaded, not executed
//	max number of clients reached               overloaded, not executed
//	OOM                                         overloaded, no retry: waiting frees no memory
//	LOADING, MASTERDOWN, CLUSTERDOWN            not executed; not for lack of capacity
//	TRYAGAIN, READONLY, NOREPLICAS              likewise
//	MOVED, ASK                                  too many redirections: no retry
//	any other error                             the command is wrong: no retry
//	nil                                         a success
//
// A rejected connection is not an overload: the server is not there, and the throttle does not
// count it. After a broken connection it is unknown whether the command was executed. An expired
// deadline is a timeout. A command that fails because another caller left, who was to open the
// connection or to fetch the value for both, was not sent and is repeated.
//
// # Whose load
//
// A command is in flight until its answer has arrived or its caller has left. Commands of one
// DoMulti are one request with one place in flight for each shard; they are repeated only if none
// of them was executed. Commands that wait for other clients (BLPOP and similar, XREAD with
// BLOCK, WAIT) and subscriptions give their place back when they are sent. So do streams, whose
// answers no policy sees. A caller that stops waiting says nothing about the server.
//
// A value from the client's cache is no load: no policy counts it, observers see it as a call that
// was not started, and DoCache returns it even while the policies reject commands.
//
// Commands of a dedicated client pass the policies one by one and are never repeated.
package spillrueidis
