// Package httpproxy is "spillway proxy": the policies of Spillway in front of services
// in any language, for HTTP/1.1, HTTP/2 and gRPC.
//
//	client ─► accept ─► route ─► gate ─► turn ─► retry ─► endpoint ─► upstream
//	          ingress    table    ingress  batch   egress   two choices
//	          .Listener           .Server  only    .Client
//
// All of it is one [httputil.ReverseProxy] for each listener and cluster, between a
// [spillhttp.Handler], which decides what is let in, and a [spillhttp.Transport],
// which decides what is sent and sent again. This package only finds them, and
// bounds what a client or an upstream could have too much of.
//
// # Gates
//
// There is one gate for each listener and cluster that routes connect: the capacity
// that it finds is that of the cluster, and what it believes depends on the listener.
// A proxy needs little processor time for a request, so the measure that counts is
// the in-flight limit of package shed, which is learnt from throughput and latency
// of the cluster. Where two listeners send to one cluster, each finds its part of it.
//
// # Clients
//
// A [clients.Exchange] is one request and its answer. It measures how long the proxy waits for
// the client in excess of the bytes that moved, and ends when that exceeds its bounds. Meanwhile
// package spillhttp suspends the request, so that it is not load. Short bodies are read before
// the gate, within one byte budget of the process (package body). The connections of a listener
// have caps that no client can use up: near a cap, exchanges and connections that wait for their
// client are evicted (package clients). The caps follow the limit on open files. Package routes
// normalizes each path once.
//
// # Retries
//
// A request is sent again only if it may be (package spillhttp), the mode of the
// retries is enforce, and its body, if there is one, can be sent again. A body that was
// announced with a length within the bound is read before the request is sent. That of
// a call of gRPC goes through as it comes, and what has come is kept until the answer
// begins, or it exceeds the bound (package body). All others go through, and are sent once.
// A refusal by an upstream in words of gRPC, a status instead of headers, counts as
// one of HTTP does: it teaches the throttle, turns the retry away from the endpoint, and
// is sent again where it asks for that (package spillhttp). What net/http itself repeats
// is only what it knows to be unprocessed, or an idempotent request on a connection that
// was closed.
//
// # Endpoints
//
// Package balance chooses the endpoint of each attempt: the less busy of two, or by the
// weights of load reports, and none that fails its checks, asked to be left alone or is
// ejected while there are others. An endpoint that refuses gets little more than it
// accepts. A rejection that is about the endpoint (package upstream) has the next attempt made
// at once if another endpoint is there for it, paid for by the retry budget; the time
// that the endpoint named is for the endpoint alone. If none is left, the answer and what
// it says about coming back go to the client.
//
// # The throttle of a cluster
//
// It is asked once for each request and not for each attempt, so that it goes by what
// all endpoints together say. Each operation has its own (package upstream): one path that
// always fails does not stop the others. Refusals of one customer move nothing.
//
// # Batch
//
// In front of a batch cluster requests wait for one of few places, each with a
// connection of its own to an endpoint. Where the protocol is auto, one connection to
// each endpoint is kept for HTTP/2. The queue is bounded; the highest class is first,
// and in a class customers take turns (package turns). A client that leaves gives up its
// turn.
//
// # What it says
//
// [Proxy.Stats] has the levels of all policies, and an observer gets all decisions. What
// is rejected is written to the log at a bounded rate, with a count of what was left out
// (package decisions). Trace context and all other headers that are not about the hop go
// through as they came.
//
// # Limits that follow
//
// The rate limit of a cluster, or its limit in flight, may follow what the cluster can
// do (tune.go, package tune). What the endpoints answer is counted from when an attempt
// is sent until the head of its answer is there; 503 is a refusal, and 429 is not, as it is about one customer. A rate is
// that of each listener, so where there are several the busiest one counts. The limit
// outlives changes of the configuration that do not concern it.
//
// # Limits of a control plane
//
// What may be in flight to a cluster, and how many retries, may be set by a control
// plane ([ControlPlane]), which is told what was refused and sent. The limits are kept
// over changes of the configuration and while the control plane is away; one that is
// replaced by another ends when the clusters have gone over.
//
// # Changes
//
// [Proxy.Update] puts another configuration in place, as a whole or not at all. Gates
// keep what they have learnt as long as their listener and cluster keep their names, and
// so does what sends to a cluster, with its connections, if nothing of the cluster has
// changed, nor the mode: otherwise throttle, budget and connections begin again.
// Requests under way end as they began. A listener whose own settings have changed is
// replaced on the same socket, so no connection is refused meanwhile.
//
// # Explanations
//
// [Rehearse] has package explain send a request through all of this, with a server in memory
// instead of the endpoints.
package httpproxy
