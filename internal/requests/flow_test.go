package requests

import (
	"net/netip"
	"testing"

	"github.com/seed90641741/spillway/ratelimit"
)

// A caller is its proven identity, else its customer, else the part of its address that it
// cannot change; for servers and for simulations.
func TestFlow(t *testing.T) {
	from := func(identity, address string) *ratelimit.Caller {
		c := &ratelimit.Caller{Identity: identity, Application: address + identity}
		if address != "" {
			c.Addr = netip.MustParseAddr(address)
		}
		return c
	}
	for _, row := range []struct {
		customers [2]string
		callers   [2]*ratelimit.Caller
		same      bool
	}{
		{[2]string{"a", "b"}, [2]*ratelimit.Caller{from("x", "10.0.0.1"), from("x", "10.0.0.2")}, true},
		{[2]string{"a", "a"}, [2]*ratelimit.Caller{from("x", "10.0.0.1"), from("y", "10.0.0.1")}, false},
		{[2]string{"a", "a"}, [2]*ratelimit.Caller{from("", "10.0.0.1"), from("", "10.0.0.2")}, true},
		{[2]string{"a", "b"}, [2]*ratelimit.Caller{from("", "10.0.0.1"), from("", "10.0.0.1")}, false},
		{[2]string{"a", ""}, [2]*ratelimit.Caller{from("", ""), from("a", "")}, false},
		{[2]string{"", ""}, [2]*ratelimit.Caller{from("", "10.0.0.1"), from("", "::ffff:10.0.0.1")}, true},
		{[2]string{"", ""}, [2]*ratelimit.Caller{from("", "10.0.0.1"), from("", "10.0.0.2")}, false},
		{[2]string{"", ""}, [2]*ratelimit.Caller{from("", "2001:db8::1"), from("", "2001:db8::ffff:1:2")}, true},
		{[2]string{"", ""}, [2]*ratelimit.Caller{from("", "2001:db8::1"), from("", "2001:db8:0:1::1")}, false},
	} {
		for _, secret := range []bool{true, false} {
			a, b := flowOf(row.customers[0], row.callers[0], secret), flowOf(row.customers[1], row.callers[1], secret)
			if a == 0 || b == 0 || (a == b) != row.same {
				t.Errorf("%q %+v and %q %+v: %x and %x, same: want %v",
					row.customers[0], row.callers[0], row.customers[1], row.callers[1], a, b, row.same)
			}
		}
	}
	for _, secret := range []bool{true, false} {
		if f := flowOf("", from("", ""), secret); f != 0 {
			t.Errorf("an unknown caller is %x, want 0", f)
		}
	}
}
