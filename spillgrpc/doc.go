// Package spillgrpc adds the policies of Spillway to grpc-go: a [Client] and a load balancing
// policy to a channel, a [Server] to a server. The metadata that one sends is understood by
// the other, and by other gRPC implementations.
//
// # The client
//
//	client, err := spillgrpc.NewClient(spillgrpc.ClientConfig{})
//	…
//	cc, err := grpc.NewClient("dns:///orders:443", append(client.DialOptions(), credentials)...)
//
// For each target it keeps an [egress.Client], which throttles calls that the target would
// reject, limits the calls in flight, and retries within a budget. Whether a call may be sent
// twice is declared in its proto file, by the option idempotency_level, or by
// [ClientConfig.Classify].
//
// grpc has its own retries, by the retryPolicy of a service config. Three attempts here of
// five there would be fifteen, so [Client.DialOptions] switches them off for the channel. One
// kind remains and is harmless: grpc repeats once, by itself, a call that a server certainly
// has not processed (after GOAWAY, or above the maximum number of streams). To keep the rules
// of a service config, import them: [ImportServiceConfig].
//
// # What is sent
//
//	x-request-criticality       of the context, where it carries one, unless the
//	                            caller put it into the metadata
//	baggage                     the same as its member criticality, for services that
//	                            pass baggage on and know nothing of the key
//	x-request-level             of the task in the context ([spillway.TaskFrom]), or else
//	                            as the caller set it; also as the member level of the
//	                            baggage, if that has the criticality
//	x-request-progress          how many calls of the task were served; absent for 0
//	grpc-previous-rpc-attempts  from the second attempt on; never the caller's
//	grpc-timeout                what is left of the deadline, by grpc itself
//
// Calls to services of other organizations ([ClientConfig.External]) carry only the last.
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
//	x-overload-reason           deadline: the deadline of the call was too close, which does
//	                            not count against the backend if an untrusted client set it,
//	                            nor against the endpoint
//	ErrorInfo                   with domain spillway: scope and reason in its metadata, and
//	                            with reason OVERLOADED_DONT_RETRY: don't retry
//	QuotaFailure                over quota
//
// A call that may have been processed is retried only if it is idempotent.
//
// # What the caller gets
//
// The caller gets the status of the last attempt, with its details. An error that reports
// retries wraps a [retry.Error]. An error that this process has made itself, with code
// UNAVAILABLE, matches [spillway.ErrRejected]. A caller that has left gets CANCELLED or
// DEADLINE_EXCEEDED. Functions given by [grpc.OnFinish] are called once for each call; other
// call options see each attempt.
//
// # Streams
//
// A stream is retried until a part of its answer was received: a message, or the header before
// it. Until then, copies of the messages that were sent are kept: the one of a server-streaming
// call, and up to 32 with up to 64 KiB of other calls. The caller may use a message again when
// Send has returned. More messages, and messages
// that are not protobuf, commit the stream to its attempt. A stream that is neither read to
// its end nor cancelled is a leak, as always with grpc.
//
// How a stream counts, and where to set it by method:
//
//	client, in flight         from the first attempt to the end of the stream, also while
//	                          neither side sends: 1024 for each target ([egress.Config].MaxInFlight).
//	                          Give methods with long streams a limit of their own, by full
//	                          name: [egress.Config].MaxInFlightByKey
//	client, [NewBalancer]     the same, once it is on a connection. Methods whose calls go
//	                          over a channel of their own, with another
//	                          [BalancerConfig].Cluster, count apart
//	client, throttle          once, as accepted when the caller has received the first message,
//	                          or the header; else when it ends
//	server, load and limits   while its handler works. While the handler waits in RecvMsg
//	                          for the client, or in SendMsg until the client has read, the
//	                          stream is suspended: it takes no place in flight, and the
//	                          time is not part of its latency. A handler that has sent a
//	                          message, or the header, and then neither sends nor receives for
//	                          2 s waits for an event: its stream is suspended, too, until
//	                          it does. Limits that the server
//	                          learns are by the Key of [ServerConfig].Classify, the method
//	                          by default; methods of [ServerConfig].Exempt have none
//	server, rate and quota    once, when it begins
//
// # Circuit breaking
//
// The limit of the Client counts calls, including calls that wait for a connection.
// [NewBalancer] makes the policy that gRFC A32 describes: a limit per cluster, over all
// channels of the process, on attempts that are on a connection.
//
//	var limits inflight.Registry
//
//	func init() { balancer.Register(spillgrpc.NewBalancer(&limits)) }
//	…
//	text, err := spillgrpc.BalancerConfig{Cluster: "orders", MaxConcurrentRequests: new(uint32(500))}.ServiceConfig()
//	cc, err := grpc.NewClient(target, grpc.WithDefaultServiceConfig(text), …)
//	…
//	limit, release := limits.Share(inflight.Key{Cluster: "orders"})
//	limit.SetMaxInFlight(800) // at once
//
// The 800 stay in force when the channel wakes from idle and when another channel uses the
// same service config, until the config has another limit, or release was called and the last
// channel to the cluster is closed or idle.
//
// For each pick:
//
//	full and ready?           drop, without asking the policy underneath
//	pick by it                one that waits, fails or finds nothing is left as it is
//	take a place              if all are taken, drop, and give the pick back to it
//	settle when it is done    once
//
// A drop has the code UNAVAILABLE and is never retried: grpc treats a status error from a
// picker as final, even for calls that wait for ready, and a Client recognizes it as a local
// rejection. The limit and the count are one word, so that there are never more attempts than
// the limit in force at that instant; a lowered limit admits nothing until the number in
// flight has fallen below it. If a Client has the same limit ([egress.Config].Inflight), an
// attempt counts once: it takes its slot in the Client, and the policy takes no second one.
// This departs from xds_cluster_impl of grpc, which checks and counts in two steps, counts
// before the pick, and keeps the limit in each channel.
//
// A channel of grpc's own xDS (xds:///…) itself drops calls by circuit breaking and by
// drop_overload of EDS. A Client on it recognizes these drops as local rejections: they match
// [spillway.ErrRejected], no policy retries them, and the throttle does not count them.
// [Client.Drops] counts them. grpc marks them only by their text, so this depends on its
// version (1.85).
//
// A client stops counting a call at its deadline, while the handler may still work on it. A
// limit at clients does not replace one at the server.
//
// # The server
//
//	server, err := spillgrpc.NewServer(spillgrpc.ServerConfig{})
//	…
//	s := grpc.NewServer(server.Options()...)
//
// It asks the policies of an [ingress.Server] whether to serve a call, and reads these claims
// from its metadata; [ingress.Trust] decides how far they are trusted:
//
//	criticality   x-request-criticality, or else the member criticality of baggage
//	level         x-request-level, or else the member level of baggage, or else traceparent
//	progress      x-request-progress, or else the member progress of baggage; with a level only
//	attempt       grpc-previous-rpc-attempts
//	time left     grpc-timeout
//	identity      the certificate of the caller, if it was verified
//
// Where a call makes several claims, the least favorable one counts. The context of a call
// that is served carries the class, the task and the deadline that it was admitted with, and calls made
// with it inherit all three: handlers need do nothing. Health checks that the configuration names
// are always admitted.
//
// A handler asks [spillway.DegradationFrom] how much cheaper than usual to answer. The level
// of a stream is set when it begins; the handler of a long stream asks
// [ingress.Server.Degradation]. A class that was not trusted is replaced or removed in the metadata, and level and progress are removed, so that
// handlers which pass on all metadata, or all baggage, do not pass it on; in the baggage already in the tap, so
// that stats handlers do not, either. At an internal
// boundary the trailer has the share of calls that the server accepts
// (x-request-accept-ratio). Throttles that have seen few calls start from it.
//
// # Rejections
//
//	overloaded                UNAVAILABLE, grpc-retry-pushback-ms, RetryInfo
//	overloaded; don't retry   UNAVAILABLE, grpc-retry-pushback-ms: -1
//	over quota                RESOURCE_EXHAUSTED, grpc-retry-pushback-ms, QuotaFailure, RetryInfo
//
// Each has an ErrorInfo and x-overload-scope: task, service or customer. At an internal
// boundary the message and the ErrorInfo (gate) name the gate that has rejected the call:
// ratelimit, quota, inflight, shed or concurrency, and x-overload-reason, also in the ErrorInfo,
// has the [spillway.Reason]. At an edge they do not, unless [ingress.Trust].Reasons says so. The retry delay of
// a rejection with the scope "task" is for this task only. A channel with [NewBalancer] sends
// the endpoint fewer calls, or none for that time, and for up to 16 times as long if it rejects
// again afterwards. A unary call that was served after a wait of 5 ms or longer has the same
// trailer, x-overload-scope: task, so that the balancer sends fewer calls before any is rejected. A
// channel with one connection to a virtual address reaches one task only: set
// keepalive.ServerParameters.MaxConnectionAge at such servers.
//
// No headers are sent before the status: clients only read the retry delay from an answer
// without headers. Once calls are rejected, [Server.Tap] rejects most of them before grpc has
// read them; such an answer has a RetryInfo and no pushback.
//
// A handler may make a call with its own context that is given up, is rejected on this side,
// or must not be retried. If the handler then returns an error that clients would retry, its
// caller gets a pushback of -1 and an ErrorInfo, so that it does not: only the layer right
// above a failing one retries. This works from HTTP to gRPC and back. The RetryInfo and the
// scope of a backend are not passed on with its error.
package spillgrpc
