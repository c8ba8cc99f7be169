// Package balance chooses the endpoint for each attempt of a cluster. It is a policy:
// it takes the time as an argument, and reads no clock, starts no goroutine and sends
// nothing.
//
// # Which endpoints may be used
//
// An endpoint is skipped while there are better ones if it
//
//   - fails its health checks (reported by [Endpoint.SetHealthy]);
//   - could not be connected to within the last second;
//   - asked to be left alone: a rejection with a hint (Retry-After, pushback) leaves the
//     endpoint out for that long, for the class that it rejected and all lower ones,
//     but no longer than five minutes. The hint is obeyed only if the endpoint has rejected at
//     least three quarters of its recent attempts of these classes: one that rejects a call now
//     and then is full, and to leave it out for a second would overload the others;
//   - is ejected as an outlier, in Envoy's terms: after as many answers 5xx in a row as
//     [OutlierDetection] says, or for a success rate far below that of the others, for
//     base_ejection_time times the number of its ejections.
//
// If fewer endpoints are left than [Config.PanicThreshold] says, hints and ejections are
// ignored, as Envoy does in panic mode: the remaining endpoints would only fail, too. If all
// endpoints fail their health checks, the checks are ignored.
//
// # How many requests an endpoint gets
//
// With equal weights, the endpoint with fewer attempts in flight of two chosen at
// random. If one of them is slower, by a factor of 1.5 and by three standard errors, the one
// that is expected to answer first: the expected latency is the usual one, times the attempts
// in flight over the usual number of them. (Finagle's EWMA has latency times attempts; an
// endpoint at a fourth of the speed then gets 3 % of the requests, which is what p99 shows.)
// What is known of latency is forgotten in 20 s without answers, and the endpoint tried again.
//
// With unequal weights, earliest deadline first: after each pick the deadline
// of endpoint i moves by
//
//	max(1/4, (active + 1) / (usual + 1))^bias / weight
//
// where active is what it has in flight, and usual the average of that. Envoy's weighted
// least request has (active + 1)^bias. That takes requests from an endpoint for being
// large: one with four times the capacity and the same latency gets 2.4 times the
// requests. What is usual for the endpoint cancels out, so that loads are as the weights
// say, and an endpoint that gets slow still loses requests at once.
//
// An endpoint that rejects quickly has few attempts in flight, and would look least busy. So
// each endpoint has its own adaptive throttle (package throttle, SRE eq. 21-1, by criticality)
// with K = 1.25: an endpoint that rejects gets at most a quarter more than it accepts, and
// what its throttle rejects goes to another endpoint. If all throttles reject, the throttles
// do not decide: whether a request is sent at all is not decided here.
//
// # Weights
//
// Weights come from ORCA load reports, by the formula of gRFC A58:
//
//	weight = qps / (utilization + eps/qps · error_utilization_penalty)
//
// A report counts after the blackout period and until it expires. An endpoint without
// one has the mean weight. No weight is more than ten times, or less than a tenth of,
// the median: one endpoint that lies attracts a bounded share.
//
// An endpoint that is new, or comes back from failed checks or an ejection, starts
// slowly if [SlowStart] says so: its weight is multiplied by
// max(min_weight, (elapsed/window)^(1/aggression)).
package balance
