// Package spillgrpc puts the policies of Spillway into grpc-go: a [Client] and a
// load balancing policy into a channel, a [Server] into a server. What the one says
// the other understands, and so do all others that speak gRPC.
//
// # The client
//
//	client, err := spillgrpc.NewClient(spillgrpc.ClientConfig{})
//	…
//	cc, err := grpc.NewClient("dns:///orders:443", append(client.DialOptions(), credentials)...)
//
// For each target it keeps an [egress.Client], which throttles what the target
// would refuse, bounds what is in flight, and retries what may be retried within a
// budget. Whether a call may be sent twice its proto file says, by the option
// idempotency_level, or [ClientConfig.Classify].
//
// grpc has its own retries, by the retryPolicy of a service config. Three
// attempts here of five there would be fifteen, so [Client.DialOptions] switches
// them off for the channel. What remains of them is harmless: grpc repeats once, by
// itself, what a server certainly has not looked at (after GOAWAY, or more streams
// than it allows). To keep the rules of a service config, import them:
// [ImportServiceConfig].
//
// # What is sent
//
//	x-request-criticality       of the context, where it carries one, unless the
//	                            caller put it into the metadata
//	baggage                     the same as its member criticality, for services that
//	                            pass baggage on and know nothing of the key
//	grpc-previous-rpc-attempts  from the second attempt on; never the caller's
//	grpc-timeout                what is left of the deadline, by grpc itself
//
// Calls to others than one's own services ([ClientConfig.External]) carry none
// of the first three.
//
// # What an answer means
//
//	UNAVAILABLE                 overloaded; may have been processed, unless there was
//	                            no connection
//	RESOURCE_EXHAUSTED          over quota; retried only with a hint. A message that
//	                            is too large has the same code: an answer
//	DEADLINE_EXCEEDED           timed out
//	UNKNOWN, INTERNAL           failed; may have been processed
//	DATA_LOSS                   failed, and will again
//	CANCELLED                   the caller has left, or else failed
//	all others                  an answer: a success of the backend
//	grpc-retry-pushback-ms      how long to wait, and that a retry is safe; negative,
//	                            no number, or several: don't retry
//	RetryInfo                   the same
//	x-overload-scope            task: not processed, another task may serve it at once;
//	                            service: don't retry; customer: over quota
//	ErrorInfo                   with domain spillway: the scope in its metadata, and with
//	                            reason OVERLOADED_DONT_RETRY: don't retry
//	QuotaFailure                over quota
//
// What may have been processed is retried only if the call is idempotent.
//
// # What the caller gets
//
// The status of the last attempt, with its details. An error that reports retries
// is a [retry.Error] underneath, and one that this process has made itself, with
// code UNAVAILABLE, matches [spillway.ErrRejected]. A caller that has left finds
// CANCELLED or DEADLINE_EXCEEDED. Functions given by [grpc.OnFinish] are called once
// for each call; other call options see each attempt.
//
// # Streams
//
// A stream is retried until something of its answer was received: a message, or
// the header before it. So that it can be, messages that were sent are kept until
// then: the one of a server-streaming call, and up to 32 with up to 64 KiB of
// others, which are copied. More than that, and messages that are not of
// protobuf, commit the stream to its attempt. One that is neither read to its end nor
// cancelled is a leak, as always with grpc.
//
// What a stream counts for, and where to set it by method:
//
//	client, in flight         from the first attempt to the end of the stream, also while
//	                          neither side sends: 1024 for each target ([egress.Config].MaxRequests).
//	                          Give methods with long streams a limit of their own, by full
//	                          name: [egress.Config].MaxRequestsByKey
//	client, [NewBalancer]     the same, once it is on a connection. Methods whose calls go
//	                          over a channel of their own, with another
//	                          [BalancerConfig].Cluster, count apart
//	client, throttle          once, when it ends
//	server, load and limits   while its handler works. While the handler waits in RecvMsg
//	                          for the client, or in SendMsg until the client has read, the
//	                          stream is suspended: it takes no place in flight, and the
//	                          time is not part of its latency. Limits that the server
//	                          learns are by the Key of [ServerConfig].Classify, the method
//	                          by default; methods of [ServerConfig].Exempt have none
//	server, rate and quota    once, when it begins
//
// # Circuit breaking
//
// The limit of the Client counts calls, those included that wait for a connection.
// [NewBalancer] makes the policy that gRFC A32 describes: a limit for a cluster, over
// all channels of the process, of attempts that are on a connection.
//
//	var limits inflight.Registry
//
//	func init() { balancer.Register(spillgrpc.NewBalancer(&limits)) }
//	…
//	text, err := spillgrpc.BalancerConfig{Cluster: "orders", MaxConcurrentRequests: new(uint32(500))}.ServiceConfig()
//	cc, err := grpc.NewClient(target, grpc.WithDefaultServiceConfig(text), …)
//	…
//	limit, release := limits.Share(inflight.Key{Cluster: "orders"})
//	limit.SetMaxRequests(800) // at once
//
// The 800 stay when the channel wakes from idle and when another channel with the same
// service config comes, until the config has another limit, or release was called and the
// last channel to the cluster is closed or idle.
//
// For each pick:
//
//	full and ready?           drop, without asking the policy underneath
//	pick by it                one that waits, fails or finds nothing is left as it is
//	take a place              if all are taken, drop, and give the pick back to it
//	settle when it is done    once
//
// A drop has the code UNAVAILABLE and is never retried: grpc takes an error with
// a status from a picker as final, even for calls that wait for ready, and a Client
// knows it as a local refusal. The limit and the count are one word, so that there
// are never more attempts than the limit in force at that instant; a lowered limit
// admits nothing until what is in flight has fallen below it. Where a Client has the same
// limit ([egress.Config].Inflight), an attempt counts once: it takes its place in the
// Client, and the policy takes no second one. Departures from
// xds_cluster_impl of grpc, which checks and counts in two steps, counts before the
// pick, and keeps the limit in each channel: none of its effects is needed.
//
// A channel of grpc's own xDS (xds:///…) drops calls by circuit breaking and by
// drop_overload of EDS itself. A Client on it knows these drops as local refusals: they
// match [spillway.ErrRejected], are retried by no policy, and are not counted by the
// throttle. [Client.Drops] counts them. grpc marks them by their text alone, so this
// depends on its version (1.85).
//
// A client counts what it waits for, and ends that at its deadline; a handler may
// work on. A limit at clients does not replace one at the server.
//
// # The server
//
//	server, err := spillgrpc.NewServer(spillgrpc.ServerConfig{})
//	…
//	s := grpc.NewServer(server.Options()...)
//
// It asks the policies of an [ingress.Server] whether a call is to be served, and
// translates the metadata of the call; [ingress.Trust] decides how much of it is
// believed:
//
//	criticality   x-request-criticality, or else the member criticality of baggage
//	attempt       grpc-previous-rpc-attempts
//	time left     grpc-timeout
//	identity      the certificate of the caller, if it was verified
//
// Where a call says several things, the one counts that gains it least. The context
// of a call that is served carries the class and the deadline that it was admitted
// with, and calls made with it inherit both: handlers need do nothing. Calls for
// health checks that the configuration names pass.
//
// A handler asks [spillway.DegradationFrom] how much cheaper than usual to answer. The
// level of a stream is that of its beginning; a handler of a long one asks
// [ingress.Server.Degradation]. A member criticality of the baggage that was not
// believed is replaced or removed, by the tap already, so that stats handlers do not
// pass it on. At an internal boundary the trailer has the share of calls that the
// server accepts (x-request-accept-ratio), from which throttles with few calls of
// their own start.
//
// # Refusals
//
//	overloaded                UNAVAILABLE, grpc-retry-pushback-ms, RetryInfo
//	overloaded; don't retry   UNAVAILABLE, grpc-retry-pushback-ms: -1
//	over quota                RESOURCE_EXHAUSTED, grpc-retry-pushback-ms, QuotaFailure, RetryInfo
//
// Each has an ErrorInfo and x-overload-scope: task, service or customer. At an internal
// boundary the message and the ErrorInfo (gate) name the gate that has refused the call:
// ratelimit, quota, inflight, shed or concurrency. At an edge they do not. The time of a
// refusal with the scope of this task is for this task only. A channel with [NewBalancer]
// leaves the endpoint out for that long, and for up to 16 times as long if it refuses
// again once it is back. A channel with one connection to a virtual address reaches
// one task only: set keepalive.ServerParameters.MaxConnectionAge at such servers.
//
// Nothing is sent before, so that the status comes without headers: only then do
// clients heed when to come back. Once calls are refused, [Server.Tap] refuses most
// of them before grpc has read them; such an answer has a RetryInfo and no
// pushback.
//
// If a call that is made with the context of another one is given up, or refused on this
// side, or must not be retried, and the handler returns an error that anybody would retry,
// its caller learns not to, by a pushback of -1 and an ErrorInfo: only the layer right
// above a failing one retries. This works from HTTP to gRPC and back. What a backend said
// of itself (RetryInfo, scope) is not passed on with its error.
package spillgrpc
