// Package gatewaytest plays the peers of a gateway in tests: a client that writes frames of HTTP/2 and breaks its
// rules ([Frame]), a service that works on for clients that have left ([Pool]), a server of MongoDB that answers ok
// ([Mongo]), and a collector of OTLP ([Receiver]).
package gatewaytest
