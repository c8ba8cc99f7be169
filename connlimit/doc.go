// Package connlimit limits the connections of a server: how many may be open, how many may come
// per second, and how many of both one address may hold.
//
//	accept ─► MaxOpen ─► Rate ─► serve
//	             │          │
//	             └──────────┴──► reset
//
// A connection costs a handshake before there is a request that could be rejected, and memory for
// as long as it is open. So these limits come first, and ask only for the address.
//
// # The rule
//
// A connection counts from the moment that the kernel hands it over until it is closed. When
// MaxOpen are open, and when the queue of Rate is full, one connection is closed. It is the newest
// of the address that has most of them, if that address has at least double the number that the new
// client would then have; otherwise it is the new connection. Packet queues call this rule longest
// queue drop (Suter and others, 1998). One address can therefore keep no other out, and two that
// have about as many never close each other's connections in turn.
//
// Connections are closed by a reset. An answer would cost the handshake that the limit is meant to
// save, and a client whose connection is reset tries elsewhere.
//
// # Overload
//
// A TLS handshake costs what 15 to 20 rejected requests cost, and comes before the first of them.
// Clients of HTTP/1.1 close the connection of a late answer and come back with a handshake, so an
// overloaded server can be busy with handshakes alone, and has no request that it could reject.
// With [Config.Work] a Listener needs no number for that:
//
//  1. There is an overload by connections if, on average over a second, more than two connections
//     come for each request that begins, and the process uses more than half of its processors.
//  2. Then two connections are let in for each request that begins, counted in windows of 100 ms,
//     and 100 per second at least. The others are reset, because each connection brings at least
//     one request, and the requests of more connections could not be served. While the process uses
//     less than half of its processors, the limit doubles.
//  3. An address that opens less than an equal share of the admitted connections loses none. The
//     others get an equal share each (max-min fairness), evenly spread over the window.
//  4. The limit ends when no connection was rejected for a second.
//
// Where each request has its own connection and costs less than the handshake, about half of the
// possible requests are served.
//
// # Long heads
//
// net/http parses the head of a request before any handler sees it, 64 KiB of short lines for some
// milliseconds. A server that says where heads begin and end, as Handler.Serve of package spillhttp
// does, has them charged to the address that sends them:
//
//  1. The first 4 KiB of each head are free, and with TLS 8 KiB of handshakes. The rest of a longer
//     head is charged if it becomes no request, or a request with more than 1,000 lines of headers.
//  2. An address may be charged 64 KiB per second, and 256 KiB at once. Beyond that, its
//     connections are reset when they send more of a head than is free, also while more than 4 MiB
//     of its long heads are being read.
//  3. An address (IPv6: /64) never pays for another one. Clients behind one address share its debt,
//     and heads of up to 4 KiB stay free.
//  4. A debt ends 8 s after the last long head, and long heads are accepted again after 4 s. The
//     table has 4096 addresses. If it is full, a new address is not charged.
//  5. While a request is served, and until the connection is idle again, no bytes are counted. On a
//     connection of HTTP/2 this is so while it has any request.
//
// Sources: the Ingress Connection Rate Limiter of MongoDB 8.2 (client backpressure, terms); the
// connection limit filter of Envoy.
package connlimit
