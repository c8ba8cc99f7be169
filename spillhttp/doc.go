// Package spillhttp adds the policies of Spillway to net/http: a [Transport] to a client, a
// [Handler] to a server. Each understands the headers that the other sends.
//
// # The client
//
// A Transport is an [http.RoundTripper] in front of another one:
//
//	transport, err := spillhttp.NewTransport(spillhttp.TransportConfig{})
//	…
//	client := &http.Client{Transport: transport, Timeout: 10 * time.Second}
//
// For each host it keeps an [egress.Client], which throttles calls that the host would reject,
// limits the calls in flight, and retries within a budget. The Transport only translates
// between HTTP and the Client.
//
// With [egress.Config].Hedge, a request that only reads is sent a second time if it has no answer
// after a while; with its Writes, any idempotent request is. [retry.Hedge] explains when. The
// answer that arrives first is used.
//
// # What is sent
//
// Each attempt carries its criticality, its attempt number, and the time left, so that the
// server can reject in the right order and does no work that its client no longer waits for:
//
//	X-Request-Criticality           of the context, where it carries one, unless the
//	                                caller set the header
//	Baggage                         the same as its member criticality, for services
//	                                that pass baggage on and know nothing of the header
//	X-Request-Level                 of the task in the context ([spillway.TaskFrom]), or
//	                                else as the caller set it; also as the member level
//	                                of the baggage, if that has the criticality
//	X-Request-Progress              how many calls of the task were served; absent for 0
//	X-Envoy-Attempt-Count           from the second attempt on; never the caller's
//	X-Envoy-Expected-Rq-Timeout-Ms  what is left of the context's deadline at the start
//	                                of the attempt, rounded down to three digits
//
// Requests to services that are [TransportConfig.External] carry none of these headers.
//
// Other members of the baggage are kept. The member criticality is left out if it would break the
// limits of W3C Baggage (64 members, 8192 bytes). A transport below this one that writes baggage
// replaces it, so put the transport of OpenTelemetry above.
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
//	x-envoy-ratelimited                 over quota; retried only with a hint
//	x-should-retry, stripe-should-retry true: safe to retry; false: don't
//	x-overload-scope                    task: not processed, another task may serve it at
//	                                    once; service: don't retry; customer: over quota
//	retry-after-ms, retry-after         how long to wait, as number or date
//
// A date in Retry-After is compared with the Date of the answer, because the clocks of client and
// server may differ. If the answer has an Age, it comes from a cache, and its Date is not used.
//
// X-Request-Accept-Ratio in an answer of an internal service is the share of recent calls of
// this criticality that the service has accepted. A throttle that has seen few calls starts
// from it. The header is removed before the caller gets the answer.
//
// A gRPC answer that has only trailers may be a rejection:
//
//	grpc-status: 14                     overloaded; may have been processed
//	grpc-status: 8                      over quota; retried only with a hint
//	grpc-retry-pushback-ms              how long to wait, and that it is safe to retry;
//	                                    negative, or no number: don't
//
// A request that may have been processed is retried only if it is idempotent: by its method,
// as defined in RFC 9110, or because it carries an Idempotency-Key. All other answers below
// 500 are successes of the backend. Hints in an answer that is not a failure are ignored. The
// retry strategy decides how long a hint may be.
//
// # What an error means
//
// Package fault reads the errors of net/http. A request that was never sent says nothing about the
// backend, and earns no retry budget. This is so if its context has ended or its Cancel is closed,
// if it is not valid, if its body could not be read, or if it waited for a connection of
// [http.Transport.MaxConnsPerHost]. It is also so if this process had no connection for it: no
// descriptor, no port, no address, no proxy. Only in this last case the request is sent again,
// within the budget. An HTTP/2 backend that answers ENHANCE_YOUR_CALM is overloaded.
//
// # What the caller gets
//
// The last answer is returned unchanged, failure or not, as with any RoundTripper: an HTTP
// client handles a 503 in one way, retried or not. An error is returned only if there is no
// answer: the rejection by a policy ([spillway.ErrRejected]), the error of the base, or a
// [retry.Error] around it that says why the call was not tried again. The answer has to be
// closed before the wait for a retry; if the retry is then rejected by a policy or the caller
// leaves, the error holds the status of that answer as a [StatusError].
//
// A request counts as in flight until the body of its answer has been read to the end or
// closed. As with any client, a body that is never closed is a leak.
//
// # Bodies
//
// Bodies are never buffered. A request with a body is sent again only if it has GetBody, as
// requests made by [http.NewRequest] from a buffer or a string have; any other is sent once.
// Before the wait for a retry, the body of the failed answer is read, up to a bounded size and
// time, so that its connection can be reused, and closed.
//
// # The server
//
// A Handler is an [http.Handler] in front of another one. It asks the policies of an
// [ingress.Server] whether to serve a request:
//
//	handler, err := spillhttp.NewHandler(mux, spillhttp.HandlerConfig{})
//	…
//	err = handler.Serve(&http.Server{Handler: handler}, listener)
//
// It reads these claims of a request; [ingress.Trust] says how far they are trusted:
//
//	criticality   X-Request-Criticality, or else the member criticality of Baggage
//	level         X-Request-Level, or else the member level of Baggage; if that is no level, Traceparent
//	progress      X-Request-Progress, or else the member progress of Baggage; with a level only
//	attempt       X-Envoy-Attempt-Count, Amz-Sdk-Request, Grpc-Previous-Rpc-Attempts
//	time left     X-Envoy-Expected-Rq-Timeout-Ms, Grpc-Timeout
//
// The headers of gRPC are read only from POST requests, as all gRPC calls are. If a request makes
// several claims, the least favorable one counts. The context of a request that is served carries
// the class, the task and the deadline with which it was admitted, and calls made with this context
// inherit all three. If a request has no label, and [HandlerConfig.Classify] sets none, its context
// has no label either.
//
// A class that was not trusted is replaced or removed in X-Request-Criticality and in the baggage,
// and level and progress are removed. So a handler that passes on all headers, such as a reverse
// proxy, or the whole baggage, does not pass on untrusted claims. Code that reads either must run
// behind the Handler. The headers with the attempt number stay unchanged, because a signature of
// AWS covers Amz-Sdk-Request. A [Transport] sends its own X-Envoy-Attempt-Count; a reverse proxy at
// an edge should remove the other two.
//
// # Degradation
//
// A handler asks [spillway.DegradationFrom] how much cheaper than usual to answer a request.
// The level is above none while the server is overloaded or about to be, for lower classes
// first. With cheaper answers it serves more requests before it rejects.
//
// # Rejections
//
// A rejection is sent before the body of the request is read. It has the reason in the header
// x-overload-reason, as [ingress.Reasons] allows, and over HTTP/1.1 in a body of one line:
//
//	overloaded                503, x-envoy-overloaded: true, Retry-After, Retry-After-Ms
//	                          x-overload-scope: task
//	overloaded; don't retry   503, x-envoy-overloaded: true, x-should-retry: false
//	                          x-overload-scope: service
//	over quota                429, x-envoy-ratelimited: true, Retry-After, Retry-After-Ms, RateLimit
//	                          x-overload-scope: customer
//
// A rejection with the scope "task" lets the caller try another task at once; the time in
// Retry-After is for this task. Clients that do not know the scope come back after that time.
// "Don't retry" is sent without Retry-After, because many clients retry whenever they see one.
//
// A connection is closed if the rest of a request body is too long to be worth reading. Some
// connections are closed with a rejection of this task: behind a connection-level load
// balancer, each leads to one task while it is open. With HTTP/1 these are at most 50 a second
// per processor, plus each connection that carried a retry; with HTTP/2, 10 a second. With
// HTTP/1, the answer to a request that was served after a wait of 5 ms or longer counts as a
// rejection here: as many connections as a task serves without a wait stay.
//
// # One layer retries
//
// If a [Transport] makes a call with the context of a request, and gives it up, rejects it, or
// receives "don't retry", then the answer to that request says x-should-retry: false (for a
// gRPC call: grpc-retry-pushback-ms: -1). Handlers need do nothing. An answer that is a
// success, or that clients would not retry, is not changed. A call that was canceled, or whose
// retries are switched off, does not count.
//
// A gRPC call gets a gRPC rejection, with a status in place of headers: 14, or 8 when over
// quota, with grpc-retry-pushback-ms, which is -1 for "don't retry". A handler that rejects
// requests itself uses [Reject].
//
// # Waiting for the client
//
// Time that a request spends waiting for its client is not work. While a handler reads a body,
// writes an answer beyond what net/http buffers, or has taken over the connection, the shedder
// does not count the request as in flight, and the time is not part of its latency. A handler
// that waits for an event, as in a long poll, calls [Suspend] and [Resume]. Set the timeouts
// of [http.Server]: they limit how long a client may take.
//
// # Early rejection
//
// A third of the cost of a rejection is net/http reading the request. A [Listener] looks at
// the bytes before net/http does, and answers by itself where that is safe. It begins when the
// Handler has rejected a request for overload, and ends a thousand requests after the last
// such rejection. The answers lack only the Date; observers see no difference.
package spillhttp
