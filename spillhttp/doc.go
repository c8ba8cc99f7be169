// Package spillhttp puts the policies of Spillway into net/http: a [Transport] into
// a client, a [Handler] into a server. What the one says the other understands.
//
// # The client
//
// A Transport is an [http.RoundTripper] in front of another one:
//
//	transport, err := spillhttp.NewTransport(spillhttp.TransportConfig{})
//	…
//	client := &http.Client{Transport: transport, Timeout: 10 * time.Second}
//
// For each host it keeps a [egress.Client], which throttles what the host would
// refuse, bounds what is in flight, and retries what may be retried within a
// budget. The Transport only translates:
//
// With [egress.Config].Hedge, an idempotent request that has no answer after a while is sent a
// second time, as package retry explains ([retry.Hedge]). The answer that comes first counts.
//
// # What is sent
//
// Each attempt says how much the call matters, which attempt it is, and how much
// time is left, so that the other side can refuse in the right order and need
// not work for nobody:
//
//	X-Request-Criticality           of the context, where it carries one, unless the
//	                                caller set the header
//	Baggage                         the same as its member criticality, for services
//	                                that pass baggage on and know nothing of the header
//	X-Envoy-Attempt-Count           from the second attempt on; never the caller's
//	X-Envoy-Expected-Rq-Timeout-Ms  what is left of the context's deadline at the start
//	                                of the attempt, rounded down to three digits
//
// Requests to others than [TransportConfig.Internal] services carry none of
// them.
//
// Other members of the baggage are kept. Where a further one would break the limits
// of W3C Baggage (64 members, 8192 bytes) there is none. A transport below this one
// that writes baggage of its own replaces it: put the one of OpenTelemetry above.
//
// # What an answer means
//
//	503, 529                            overloaded; may have been processed
//	429                                 over quota; retried only with a hint
//	504                                 timed out
//	425                                 not processed
//	501, 505, 506, 507, 508, 510, 511   will not change
//	408, any other 5xx                  failed; may have been processed
//	x-envoy-overloaded                  overloaded, not processed
//	finagle-http-nack                   the same, and safe to retry
//	finagle-http-nonretryable-nack      the same, but don't retry
//	x-envoy-ratelimited                 over quota, don't retry
//	x-should-retry, stripe-should-retry true: safe to retry; false: don't
//	x-overload-scope                    task: not processed, another task may serve it at
//	                                    once; service: don't retry; customer: over quota
//	retry-after-ms, retry-after         how long to wait, as number or date
//
// X-Request-Accept-Ratio in an answer of an internal service is the share of calls of
// this criticality that it has accepted of late. A throttle with few calls of its own
// starts from it. The caller does not get to see it.
//
// An answer of gRPC that is a status in the place of headers may be a refusal:
//
//	grpc-status: 14                     overloaded; may have been processed
//	grpc-status: 8                      over quota; retried only with a hint
//	grpc-retry-pushback-ms              how long to wait, and that it is safe to retry;
//	                                    negative, or no number: don't
//
// What may have been processed is retried only if the request is idempotent: by
// its method, as RFC 9110 has it, or because it carries an Idempotency-Key. All
// other answers below 500 are successes of the backend. Hints in an answer that
// is no failure are ignored, and how long a hint may be is the retry strategy's
// to say.
//
// # What the caller gets
//
// The last answer is returned as it is, failure or not, as any RoundTripper does;
// a client of http handles a 503 in one way, retried or not. An error comes only
// where there is no answer: a refusal by a policy ([spillway.ErrRejected]), the
// error of the base, or a [retry.Error] around it that says why the call was not
// tried again. Before the wait for a retry the answer has to be let go; if the
// retry is then refused here or the caller leaves, the error holds the status of
// that answer as a [StatusError].
//
// A request counts as in flight until the body of its answer was read to the end
// or closed. As with any client, a body that is never closed is a leak.
//
// # Bodies
//
// No body is ever buffered. A request with a body is sent again only if it has
// GetBody, as those made by [http.NewRequest] from a buffer or a string have; any
// other is sent once. The body of an answer that makes way for a retry is read on
// for a bounded size and time, so that its connection can be used again, and
// closed before the wait.
//
// # The server
//
// A Handler is an [http.Handler] in front of another one, which asks the policies
// of an [ingress.Server] whether a request is to be served:
//
//	handler, err := spillhttp.NewHandler(mux, spillhttp.HandlerConfig{})
//	…
//	err = handler.Serve(&http.Server{Handler: handler}, listener)
//
// It translates what a request says of itself, of which [ingress.Trust] says how
// much is believed:
//
//	criticality   X-Request-Criticality, or else the member criticality of Baggage
//	attempt       X-Envoy-Attempt-Count, Amz-Sdk-Request, Grpc-Previous-Rpc-Attempts
//	time left     X-Envoy-Expected-Rq-Timeout-Ms, Grpc-Timeout
//
// The headers of gRPC are looked for in POST requests, which all of its calls are.
// Where a request says several things, the one counts that gains it least. The
// context of a request that is served carries the class and the deadline that it
// was admitted with, and calls made with it inherit both. A request that has no
// label, and none from [HandlerConfig.Classify], has none in its context either.
//
// A member criticality of the baggage that was not believed is replaced or removed, so
// that a handler which passes baggage on does not pass on more than was believed. What
// reads baggage must come behind the Handler.
//
// # Degradation
//
// A handler asks [spillway.DegradationFrom] how much cheaper than usual to answer a
// request. The level is above none while the server is overloaded or about to be, for
// lower classes first. Answers that cost less let it serve more before it refuses.
//
// # Refusals
//
// A refusal is sent before the body of the request is read, and has none itself:
//
//	overloaded                503, x-envoy-overloaded: true, Retry-After, Retry-After-Ms
//	                          x-overload-scope: task
//	overloaded; don't retry   503, x-envoy-overloaded: true, x-should-retry: false
//	                          x-overload-scope: service
//	over quota                429, x-envoy-ratelimited: true, Retry-After, Retry-After-Ms, RateLimit
//	                          x-overload-scope: customer
//
// A refusal with the scope of this task tells the caller to try another one at once; the
// time is for this task. Clients that do not know the scope come back after that time.
// "Don't retry" comes without a time, as many clients take one for an invitation.
//
// A connection is closed if more of a body is to come than is worth reading. Some
// connections are closed with a refusal of this task: behind a balancer of connections,
// each leads to one task for as long as it is open. With HTTP/1 that is at most 50 a
// second for each processor, and each that a retry came by; with HTTP/2, 10 a second.
//
// # One layer retries
//
// If a [Transport] gives up a call that it makes with the context of a request, or refuses
// it, or is told "don't retry", the answer to that request says x-should-retry: false (a
// call of gRPC: grpc-retry-pushback-ms: -1). Handlers need do nothing. An answer that is a
// success, or that nobody would retry, stays as it is. A call that was canceled, or whose
// retries are switched off, does not count.
//
// A call of gRPC is answered in its own way, with a status in place of headers: 14,
// or 8 when over quota, with grpc-retry-pushback-ms, which is -1 for "don't retry".
// A handler that has reasons of its own to refuse does so with [Reject].
//
// # Waiting for the client
//
// Time that a request spends waiting for its client is not work. While a handler reads a
// body, writes an answer beyond what net/http buffers, or has taken over the connection, the
// request is not counted as in flight by the shedder, and the time is not counted as
// latency. A handler that waits for an event, as in a long poll, calls [Suspend] and
// [Resume]. Set the timeouts of [http.Server]: they bound how long a client may take.
//
// Nothing is exempt at an edge but the paths in [HandlerConfig.HealthPaths], which match
// exactly.
//
// # Early refusal
//
// A third of what a refusal costs is net/http reading the request. A [Listener] looks
// at the bytes before that, and answers by itself where it safely can. It begins
// when the Handler has refused a request for overload, and ends a thousand
// requests after the last. The client cannot tell, but for the Date that is
// missing; nor can observers. Requests pass through on connections with TLS.
package spillhttp
