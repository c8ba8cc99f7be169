package ratelimit

import (
	"net/netip"
	"testing"
)

func prefixes(t testing.TB, list ...string) (all []netip.Prefix) {
	t.Helper()
	for _, s := range list {
		var p netip.Prefix
		if s != "" {
			p = netip.MustParsePrefix(s)
		}
		all = append(all, p)
	}
	return all
}

func TestExempt(t *testing.T) {
	l := must(t, Config{Exempt: Exempt{
		CIDRs:           prefixes(t, "10.1.0.0/16", "fd00::/8"),
		Identities:      []string{"monitor"},
		Applications:    []string{"mongo", "backup-"},
		Unauthenticated: true,
	}})
	addr := netip.MustParseAddr
	exempted := uint64(0)
	for _, row := range []struct {
		name   string
		caller Caller
		want   bool
	}{
		{"nothing known", Caller{}, false},
		{"inside the network", Caller{Addr: addr("10.1.2.3")}, true},
		{"inside, mapped", Caller{Addr: addr("::ffff:10.1.2.3")}, true},
		{"inside, with a zone", Caller{Addr: addr("fd00::1%eth0")}, true},
		{"outside", Caller{Addr: addr("10.2.2.3")}, false},
		{"the identity", Caller{Identity: "monitor"}, true},
		{"a longer identity", Caller{Identity: "monitor2"}, false},
		{"an application by prefix", Caller{Application: "mongosh 2.1"}, true},
		{"an application that contains it", Caller{Application: "my-mongo"}, false},
		{"an application that is shorter", Caller{Application: "backup"}, false},
		{"an identity is no application", Caller{Identity: "mongosh"}, false},
		{"has still to authenticate", Caller{Unauthenticated: true}, true},
	} {
		if got := l.Exempt(row.caller); got != row.want {
			t.Errorf("%s: exempt is %v, want %v", row.name, got, row.want)
		}
		if row.want {
			exempted++
		}
	}
	if got := l.Stats(t0).ExemptedTotal; got != exempted {
		t.Errorf("%d counted as exempt, want %d", got, exempted)
	}
}

func TestZeroExemptNamesNobody(t *testing.T) {
	var e Exempt
	if e.Match(Caller{netip.MustParseAddr("127.0.0.1"), "root", "mongosh", true}) {
		t.Error("the zero Exempt names somebody")
	}
}

// What is in force does not change behind the limiter's back.
func TestExemptIsCopied(t *testing.T) {
	names := []string{"monitor"}
	l := must(t, Config{Exempt: Exempt{Identities: names}})
	names[0] = "stranger"
	if l.Exempt(Caller{Identity: "stranger"}) || !l.Exempt(Caller{Identity: "monitor"}) {
		t.Error("the caller's slice is in use")
	}
}
