// Package connlimit limits the connections of a server: how many may be open, how many may come
// per second, and how many of both one address may hold.
//
//	accept ─► MaxOpen ─► Rate ─► serve
//	             │          │
//	             └──────────┴──► reset
//
// A connection costs a handshake before there is a request that could be rejected, and memory for as
// long as it is open. So these limits stand before all others, and ask only for the address.
//
// # The rule
//
// A connection counts from the moment that the kernel hands it over until it is closed. When MaxOpen
// are open, and when the queue of Rate is full, one connection has to go. It is the newest of the
// address that has most of them, if that address has at least double the number that the new client
// would then have; otherwise it is the new connection. Packet queues call this rule longest queue drop
// (Suter and others, 1998). One address can therefore keep no other out, and two that have about as
// many never close each other's connections in turn.
//
// What goes is reset: an answer would cost the handshake that the limit is there to save, and a client
// whose connection is reset tries elsewhere.
//
// Sources: the Ingress Connection Rate Limiter of MongoDB 8.2 (client backpressure, terms); the
// connection limit filter of Envoy.
package connlimit
