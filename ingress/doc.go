// Package ingress is the server side of a call: it puts the server policies in
// order, so that no adapter and no handler has to.
//
//	request ─► classify ─► ratelimit ─► quota ─► inflight ─► shed ─► serve
//	           (adapter,                                      │
//	            Trust)                                        └─► refuse: attempts say
//	                                                              whether to retry
//
// A [Server] serves one process. An adapter fills in a [spillway.Call] from the
// request, lets [Trust] judge what the request says of itself, and calls
// [Server.Enter], which may wait for a moment. If the [Refusal] that it returns is
// one, the adapter answers with it. Otherwise the request is served and
// [Passage.Done] called when it has ended. Where a request can be refused more
// cheaply before it was read, the adapter asks [Server.Reject] first.
//
// # The order
//
// The rate limit comes first as it knows nothing of the request and costs least.
// The quota comes before the shedder so that one customer's excess is refused on
// its own account and never makes the server refuse others. A limit in flight, if
// there is one, also counts requests that wait at the shedder, and comes before it so
// that it disturbs nothing that the shedder learns. What these two refuse is given
// back to the quota. All see the time that was read when the
// request came.
//
// A request that [Config.Exempt] names (health checks, metrics) passes all gates
// unseen: a server that is busy must not look dead.
//
// # Idle priority
//
// A request that is to wait does so in its goroutine, which is parked. Another goroutine,
// the dispatcher, decides which request runs next. It must
// run only when a processor has nothing else to do: then every request that arrived was
// examined, and the best one is known. Go has no priorities, but an order: a
// processor runs its own queue, then the global one, and polls the network only
// when both are empty. So the dispatcher waits for a file to become readable like
// a connection does, and is found by that poll; then it yields, which puts it
// behind everything that the same poll has found.
//
// # Modes
//
// Each gate enforces, observes, or is off. A gate that observes decides and
// reports, and lets the request through at once. So that what it reports is what
// it would decide if it enforced, each request has a shadow, which takes the way
// through the gates that observe: refused at one, it is shown to no further;
// told to wait, it waits while the request goes on; and then it stays in flight for as
// long as the request was. Fed the same requests, at the same load, gates that
// observe decide as gates that enforce. But the load is not the same: a server on
// which all gates observe has an overload to bear, and the share that they report
// as refused is greater than the one that they would refuse.
package ingress
