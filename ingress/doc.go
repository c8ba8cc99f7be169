// Package ingress is the server side of a call: it applies the server policies in the right
// order, so that adapters and handlers do not have to.
//
//	request ─► classify ─► ratelimit ─► quota ─► inflight ─► shed ─► serve
//	           (adapter,                                      │
//	            Trust)                                        └─► reject: attempts say
//	                                                              whether to retry
//
// A [Server] serves one process. An adapter fills in a [spillway.Call] from the request, lets
// [Trust] limit the claims of the request, and calls [Server.Enter], which may wait for a moment.
// If [Rejection.Rejected] reports true, the adapter answers with the Rejection. Otherwise the
// request is served and [Slot.Done] called when it has ended. Where rejecting a request is cheaper
// before it is read, the adapter calls [Server.Reject] first.
//
// # Work that is no request
//
// [Server.Do] has other work pass the same gates: a message of a queue, a job, a step of a batch.
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
// dispatcher, decides which request runs next. It must run only when a processor has nothing else
// to do: then every request that arrived has been examined, and the best one is known. Go has no
// priorities, but it has an order: a processor runs its own queue, then the global one, and polls
// the network only when both are empty. So the dispatcher waits for a file to become readable, as
// a connection does, and is woken by that poll; then it yields, which puts it behind everything
// else that the same poll has found. TestPollsLast fails if a release of Go changes this order.
// On other systems than Linux, where there is no such file, the dispatcher only yields. It may
// then let a waiter in a moment before a more critical request is examined.
//
// # Modes
//
// Each gate enforces, observes, or is off. A gate that observes counts the requests that it would
// reject, and does nothing else: each request goes on at once, and is in flight as it really is.
// Observing starts no goroutine and allocates nothing. After a gate that would reject a request,
// no further gate counts a decision on it.
//
// The rate limit and the quota decide by the arriving requests alone, as in the mode enforce. The
// shedder also decides by the load and by its queue. As a server that only observes rejects
// nothing, its load is not that of one that enforces. So the shedder keeps the queue that would
// stand: a request that would wait enters it, and each answer lets one leave. While clients stay,
// the share of each class that would be rejected is then about the share that is rejected in the
// mode enforce ([shed.Shedder.Observe]). If clients leave, an overloaded server answers less than
// it could, and the count is too high. A rejection that would have come after a wait is reported
// when the request ends.
package ingress
