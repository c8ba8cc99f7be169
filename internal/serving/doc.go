// Package serving is what the servers of all adapters do in the same way, whatever their wire: it decides what is believed of the claims of
// a request ([Arrival]), makes the context that a request is served with ([Context]), finds out when the handler of a stream waits for its
// client ([Stream]), and classifies the codes of RPC. The adapters read and write their wire, and call package ingress.
package serving
