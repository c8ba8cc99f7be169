package config

import (
	"github.com/seed90641741/spillway/internal/claims"
)

func (k *checker) listener(at string, l *Listener) {
	k.address(at+".address", l.Address, true)
	for name := range l.Callers {
		if !claims.IsIdentity(name) {
			k.failf(at+".callers", "has %.64q, must begin with uri:, dns: or cn:, as uri:spiffe://shop/cart", name)
		}
	}
	k.each(at+".peers", l.Peers, isNetwork, "a network such as 10.0.0.0/8")
	if len(l.Callers) > 0 && (l.TLS == nil || l.TLS.ClientCA == "") {
		k.failf(at+".callers", "is given, but without tls.client_ca no caller proves its name")
	}
	if l.Boundary == "internal" && len(l.Peers) == 0 && (l.TLS == nil || l.TLS.ClientCA == "") {
		k.failf(at+".boundary", "is internal, but anybody can connect; set tls.client_ca, or peers to the networks of callers, or use edge")
	}
	if l.Boundary != "internal" {
		const ignored = "is given, but at an edge no class that a client says is believed; leave it out, or set boundary: internal"
		if l.Others != "" {
			k.failf(at+".others", ignored)
		}
		if len(l.Callers) > 0 {
			k.failf(at+".callers", ignored)
		}
	}
	k.oneOf(at+".connection_rate.mode", string(l.ConnectionRate.Mode), "off", "enforce")
}
