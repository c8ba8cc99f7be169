package main

import (
	"crypto/tls"
	"crypto/x509"
	"net/http"
	"time"
)

// A wire is how calls reach the server.
type wire struct {
	name  string
	about string
	tls   bool // TLS 1.3
	http2 bool
	grpc  bool // by grpc-go, and not net/http
	fresh bool // a new connection for each call; with TLS a whole handshake, no resumption
	body  int  // bytes that a call sends, which the server reads before its work
}

// wires has the tables in their order.
var wires = []wire{
	{name: "http1", about: "HTTP/1.1"},
	{name: "http1-body", about: "HTTP/1.1, with a body of 4 kB", body: 4096},
	{name: "http2", about: "HTTP/2 without TLS", http2: true},
	{name: "grpc", about: "gRPC without TLS, over one connection", grpc: true},
	{name: "tls-http1", about: "HTTP/1.1 over TLS 1.3", tls: true},
	{name: "tls-http2", about: "HTTP/2 over TLS 1.3", tls: true, http2: true},
	{name: "http1-new", about: "HTTP/1.1, a new connection for each call", fresh: true},
	{name: "tls-http1-new", about: "HTTP/1.1 over TLS 1.3, a new connection and a whole handshake for each call", tls: true, fresh: true},
}

func wireNames() []string { return names(wires, func(w wire) string { return w.name }) }

// wireNamed returns the wire of that name.
func wireNamed(name string) (wire, bool) {
	for _, w := range wires {
		if w.name == name {
			return w, true
		}
	}
	return wire{}, false
}

func names[T any](all []T, name func(T) string) []string {
	list := make([]string, len(all))
	for i := range all {
		list[i] = name(all[i])
	}
	return list
}

func (w wire) scheme() string {
	if w.tls {
		return "https"
	}
	return "http"
}

// protocols is what a server or a client of the wire speaks.
func (w wire) protocols() *http.Protocols {
	p := new(http.Protocols)
	p.SetHTTP1(!w.http2)
	p.SetHTTP2(w.http2 && w.tls)
	p.SetUnencryptedHTTP2(w.http2 && !w.tls)
	return p
}

// transport returns a transport that opens at most so many connections. Without such a
// bound an overloaded client opens connections until no ports are left.
func (w wire) transport(conns int, roots *x509.CertPool) *http.Transport {
	t := &http.Transport{
		Protocols:           w.protocols(),
		MaxConnsPerHost:     conns,
		MaxIdleConnsPerHost: conns,
		IdleConnTimeout:     time.Minute,
		DisableCompression:  true,
		DisableKeepAlives:   w.fresh,
		WriteBufferSize:     2 * len(payload), // a head and its body arrive together
	}
	if w.tls {
		t.TLSClientConfig = &tls.Config{MinVersion: tls.VersionTLS13, RootCAs: roots}
	}
	return t
}
