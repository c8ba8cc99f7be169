// Package ingress is the server side of a call: it applies the server policies in the right
// order, so that adapters and handlers do not have to.
//
//	request ─► classify ─► ratelimit ─► quota ─► inflight ─► shed ─► serve
//	           (adapter,                                      │
//	            Trust)                                        └─► reject: attempts say
//	                                                              whether to retry
//
// A [Server] serves one process. An adapter fills in a [spillway.Call] from the request, lets
// [Trust] limit the claims of the request, and calls [Server.Enter], which may wait for a
// moment. If the [Rejection] that it returns is one, the adapter answers with it. Otherwise
// the request is served and [Slot.Done] called when it has ended. Where rejecting a request
// is cheaper before it is read, the adapter calls [Server.Reject] first.
//
// # Work that is no request
//
// A message of a queue, a job or a step of a batch passes the same gates by [Server.Do], which takes the work as a func.
//
// # The order
//
// The rate limit comes first as it needs no state of the request and costs least. The quota
// comes before the shedder so that the excess of one customer is charged to that customer and
// never makes the server reject others. An in-flight limit, if there is one, also counts
// requests that wait at the shedder. It comes before the shedder so that it does not distort
// the shedder's measurements. The quota gets back the cost of requests that these two reject.
// All gates see the time that was read when the request came.
//
// A request that [Config.Exempt] names (health checks, metrics) bypasses all gates: a server
// that is busy must not look dead.
//
// # Idle priority
//
// A request that has to wait does so in its goroutine, which is parked. Another goroutine, the
// dispatcher, decides which request runs next. It must run only when a processor has nothing
// else to do: then every request that arrived has been examined, and the best one is known. Go
// has no priorities, but it has an order: a processor runs its own queue, then the global one,
// and polls the network only when both are empty. So the dispatcher waits for a file to become
// readable, as a connection does, and is woken by that poll; then it yields, which puts it
// behind everything else that the same poll has found.
//
// # Modes
//
// Each gate enforces, observes, or is off. A gate that observes decides and reports, and
// admits the request at once. Its reports must equal the decisions that it would make if it
// enforced. So each request also has an observe-mode admission, which passes the gates that
// observe: after a rejection at one gate it reaches no further ones; if it has to wait, it
// waits while the request goes on; and then it stays in flight for the duration of the
// request. With the same requests, at the same load, gates that observe decide as gates that
// enforce. But the load is not the same: a server on which all gates observe has to serve an
// overload, so the share that they report as rejected is greater than the share that they
// would reject.
package ingress
