// Package spillconnect puts the policies of Spillway into connect-go: a [Server] and a
// [Client]. Both are a [connect.Interceptor]. They work with all three protocols
// of connect-go: Connect, gRPC and gRPC-Web.
//
//	server, err := spillconnect.NewServer(spillconnect.ServerConfig{})
//	…
//	path, handler := pingv1connect.NewPingServiceHandler(ping, connect.WithInterceptors(server))
//
//	client, err := spillconnect.NewClient(spillconnect.ClientConfig{})
//	…
//	pings := pingv1connect.NewPingServiceClient(http.DefaultClient, url, connect.WithInterceptors(client))
//
// # Rejections
//
// A call that the server rejects gets a [connect.Error] with typed details:
//
//	overloaded                unavailable         RetryInfo, ErrorInfo OVERLOADED
//	overloaded; don't retry   unavailable         ErrorInfo OVERLOADED_DONT_RETRY
//	over quota                resource_exhausted  QuotaFailure, RetryInfo, ErrorInfo OVER_QUOTA
//
// Its metadata say the same for clients that do not read details: grpc-retry-pushback-ms,
// which is -1 for "don't retry", x-overload-scope, and for clients of HTTP Retry-After and
// x-should-retry. At an internal boundary x-overload-reason has the [spillway.Reason]. An ErrorInfo
// has the domain spillway.
//
// The interceptor runs when connect-go has read the request. A rejection costs less, and a
// large body is not read, with the Handler of package spillhttp in front of the mux. It
// answers calls of Connect with 503 or 429, which have no details. Use one of the two.
//
// # Degradation
//
// A handler asks [spillway.DegradationFrom] how much cheaper than usual to answer. The level is above none while the server is
// overloaded or about to be, for lower classes first.
//
// # Untrusted claims
//
// A class that was not trusted is replaced or removed in the headers of the request, in
// x-request-criticality and in the baggage, and so are level and progress of its task, so that a handler which passes on the request or
// all baggage does not pass on untrusted claims. Give interceptors that read either after the Server.
//
// # Retries
//
// A call is retried if the error proves that the server has not processed it, or if its
// proto file says
//
//	option idempotency_level = NO_SIDE_EFFECTS;  // or IDEMPOTENT
//
// Streams are throttled and bounded, and never retried. A deadline is sent by connect-go.
// If a call is given up that a handler makes with the context of its request, the answer of
// the handler says "don't retry": one layer retries.
package spillconnect
