// Package spillrlqs serves the quotas of quota/fleet to Envoys: as the server of Envoy's
// rate_limit_quota.v3 (RLQS), and of the older ratelimit.v3.
//
// # RLQS
//
// An Envoy reports the use of its buckets and gets an assignment for each. A stream is a task of
// the fleet. So demand is shared among Envoys as among tasks: by customer, then by
// criticality from the top, then at equal levels. A bucket belongs to the customer and the
// class that its id names under Config.CustomerKey and Config.CriticalityKey. Other keys of the
// id only separate buckets, which divide the share of the customer.
//
// # What Envoys do
//
// The server allows for what Envoys do, which differs from the protocol in some points:
//
//   - Envoy reports whole seconds of elapsed time, and 0 below one. The server uses the time
//     of arrival.
//   - Envoy reads whole seconds of a fill interval and of a time to live. The server
//     sends whole seconds only. It chooses a fill interval long enough that rounding
//     tokens to whole numbers changes the rate by at most 1 %.
//   - Envoy ignores a requests_per_time_unit strategy. The server sends token buckets, ALLOW_ALL
//     and DENY_ALL.
//   - Envoy takes an assignment without a time to live as expired. The server always sets one.
//   - Envoys before 1.33 fill a bucket completely with each assignment. The server sends an
//     assignment only if the rate moves by 2 % or half of the time to live has passed. The
//     shared bucket corrects the rest.
//
// Until the first assignment an Envoy does what no_assignment_behavior says, which is to
// allow everything by default. After the time to live it does what expired_assignment_behavior
// says: configure a token bucket of limit/tasks there.
//
// # The older protocol
//
// ratelimit.v3 asks for each request. The server answers from a lease in memory, without a
// round trip to the board. A request with several descriptors is charged once for each
// customer that they name, and not at all if one of them is over its limit. The limits in the
// descriptors themselves have no effect.
//
// # Untrusted names
//
// Names of customers often come from requests, so that clients can invent them. The server
// keeps a bounded number of buckets for each stream and in total. Buckets beyond that share
// the limit of one unlisted customer: up to 1000 for each stream and class, and an id holds its part until its
// assignment expires, so new ids in each round get no more. Customers with a separate limit
// have their own bound: names without a limit cannot displace them. A stream without recent
// demand holds no buckets and does not use the board.
//
// An Envoy is trusted: one that reports more than it has seen takes from the other Envoys,
// up to an equal share. Use TLS with client certificates, or a private network.
//
// # Source
//
// envoy/service/rate_limit_quota/v3/rlqs.proto, envoy/service/ratelimit/v3/rls.proto and
// the filter source/extensions/filters/http/rate_limit_quota of Envoy.
package spillrlqs
