package claims

import (
	"net/netip"
	"testing"
)

func TestNetwork(t *testing.T) {
	for addr, want := range map[string]string{
		"192.0.2.1": "192.0.2.1/32", "::ffff:192.0.2.1": "192.0.2.1/32", "2001:db8:1:2:3:4:5:6": "2001:db8:1:2::/64", "fe80::1%eth0": "fe80::/64", "::1": "::/64",
	} {
		if got := Network(netip.MustParseAddr(addr)); got.String() != want {
			t.Errorf("%s is of %s, want %s", addr, got, want)
		}
	}
	if got := Network(netip.Addr{}); got.IsValid() {
		t.Errorf("no address is of %s", got)
	}
}

func TestNetworkBytes(t *testing.T) {
	for _, text := range []string{"10.1.2.3", "::ffff:10.1.2.3", "2001:db8:1:2:3:4:5:6", "fe80::1%eth0", "::1", "0.0.0.0", "::"} {
		a := netip.MustParseAddr(text)
		if got, want := NetworkBytes(a), Network(a).Addr().As16(); got != want {
			t.Errorf("%s: %v, want %v", text, got, want)
		}
	}
}
