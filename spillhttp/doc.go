// Package spillhttp puts the policies of Spillway into net/http.
//
// A [Transport] is an [http.RoundTripper] in front of another one:
//
//	transport, err := spillhttp.NewTransport(spillhttp.TransportConfig{})
//	…
//	client := &http.Client{Transport: transport, Timeout: 10 * time.Second}
//
// For each host it keeps a [egress.Client], which throttles what the host would
// refuse, bounds what is in flight, and retries what may be retried within a
// budget. The Transport only translates:
//
// # What is sent
//
// Each attempt says how much the call matters, which attempt it is, and how much
// time is left, so that the other side can refuse in the right order and need
// not work for nobody:
//
//	X-Request-Criticality           of the context, where it carries one, unless the
//	                                caller set the header
//	X-Envoy-Attempt-Count           from the second attempt on; never the caller's
//	X-Envoy-Expected-Rq-Timeout-Ms  what is left of the context's deadline at the start
//	                                of the attempt, rounded down to three digits
//
// Requests to others than [TransportConfig.Internal] services carry none of
// them.
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
//	retry-after-ms, retry-after         how long to wait, as number or date
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
package spillhttp
