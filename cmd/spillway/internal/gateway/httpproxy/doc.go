// Package httpproxy is "spillway proxy" for HTTP/1.1, HTTP/2 and gRPC: the policies of Spillway
// in front of services in any language.
//
//	client ─► accept ─► route ─► gate ─► turn ─► retry ─► endpoint ─► upstream
//	          ingress    table    ingress  batch   egress   two choices
//	          .Listener           .Server  only    .Client
//
// For each listener and cluster there is one [httputil.ReverseProxy] between a
// [spillhttp.Handler], which decides what is admitted, and a [spillhttp.Transport],
// which decides what is sent and retried. This package selects them for each request, and
// bounds the resources that a client or an upstream can use.
//
// # Gates
//
// There is one gate for each pair of listener and cluster that routes connect. Its limit
// adapts to the capacity of the cluster; what it trusts of a request depends on the listener.
// A proxy needs little processor time for a request, so the relevant measure of load is
// the in-flight limit of package shed, which is learnt from throughput and latency
// of the cluster. Where two listeners send to one cluster, each gate finds its own share.
//
// # Clients
//
// Package clients bounds how long the proxy waits for the client of a request. Meanwhile package spillhttp
// suspends the request, so that it is not load. Short bodies are read before the gate, within one byte
// budget of the process (package message).
//
// # Retries
//
// A request is retried only if it may be (package spillhttp), the mode of the
// retries is enforce, and its body, if any, can be sent again. A body with a declared
// length within the bound is read before the request is sent. The body of a gRPC call is
// streamed; what was sent is kept until the answer begins, or the body exceeds the
// bound (package message). All other bodies are streamed, and sent once.
// A rejection by an upstream in terms of gRPC, a status in the headers, counts as
// a rejection in terms of HTTP does: it feeds the throttle, directs the retry to another
// endpoint, and is retried where it allows that (package spillhttp). net/http itself
// repeats only requests that it knows to be unprocessed, and idempotent requests on a
// connection that was closed.
//
// # Endpoints
//
// Package balance chooses the endpoint of each attempt. After a rejection that is about the
// endpoint (package upstream), the next attempt is made at once if another endpoint is available
// for it, paid for by the retry budget. If no endpoint is left, the answer goes to the client,
// with its retry hint. In front of a batch cluster requests wait for their turn (package turns): each
// slot has a separate connection to an endpoint. Trace context and all other end-to-end headers are
// passed through unchanged.
//
// # Adaptive limits
//
// The rate limit of a cluster, or its in-flight limit, may follow the capacity of the
// cluster (tune.go, package tune), as the answers of its endpoints show it ([upstream.Meter]). A
// rate limit applies to each listener, so with several listeners the busiest one counts. The
// limit outlives changes of the configuration that do not concern it.
//
// The limits of a control plane ([upstream.ControlPlane]) are kept across changes of the
// configuration and while the control plane is unreachable. A control plane that is replaced
// ends when the clusters use the new one.
//
// # Changes
//
// [Proxy.Prepare] and [Change.Commit] apply another configuration, as a whole or not at all.
// Gates keep their learnt limits while their listener and cluster keep their names. The client
// of a cluster, with its connections, is kept if neither the cluster nor the mode has changed:
// otherwise throttle, budget and connections start afresh, and requests in flight still count.
// In-flight requests end with the settings that they began with. A listener whose own settings have changed is replaced on the
// same socket, so no connection is refused meanwhile.
package httpproxy
