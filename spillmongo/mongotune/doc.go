// Package mongotune lets the ingress limiters of a MongoDB server be moved from outside:
// it reads the signals for package tune from serverStatus, and sets the rate of a limiter
// with setParameter.
//
//	tuner ◄── Read ── serverStatus: opLatencies, globalLock, network, queues
//	tuner ─── Set ──► setParameter: ingressRequestAdmissionRatePerSec
//	                            or: ingressConnectionEstablishmentRatePerSec
//
// A [Server] reads and sets one limit; package tune decides which rate is right. A
// [Controller] is the whole loop for both limits: it takes them over, logs each move with
// its reason, sets them again after a restart of the server, and restores what it found
// when it ends. "spillway tune" is the same as a command. The example has a loop of its
// own.
//
// # The server
//
// It takes MongoDB 8.2, or a release to which the limiter was brought back; [New] rejects
// others with [ErrUnsupported]. The parameters belong to one process, so the client
// must be connected to one: with directConnection=true to a mongod, or with one address
// to a mongos. Parameters that are set so last until the process ends; after that Read
// finds another process, and the limit must be set again.
//
// The client of the tuner is limited like others. It should have an application name of
// its own, and that name should be in ingressRequestRateLimiterApplicationExemptions;
// else the tuner is rejected when it is needed most. Its user needs the privileges
// serverStatus, getParameter and setParameter on the cluster.
//
// # Units
//
// A limit is a rate per second, a whole number from 1. What is used of it is what the
// limiter let in per second, which for requests is what the server works off, as each
// connection has one at a time.
//
// Sources: MongoDB's documentation of serverStatus and of the ingress limiters; the
// specification "Client Backpressure", which has the idea of such an engine.
package mongotune
