package query

import (
	"context"
	"errors"
	"net"
	"net/netip"
	"slices"
	"strings"
	"testing"

	"github.com/seed90641741/spillway/cmd/spillway/internal/adminclient"
)

func TestParse(t *testing.T) {
	for _, row := range []struct{ address, want, url string }{
		{"127.0.0.1:9001", "127.0.0.1:9001", "http://127.0.0.1:9001/api/v1/state"},
		{"proxy-1", "proxy-1:8001", "http://proxy-1:8001/api/v1/state"},
		{"::1", "[::1]:8001", "http://[::1]:8001/api/v1/state"},
		{"[::1]:9001", "[::1]:9001", "http://[::1]:9001/api/v1/state"},
		{"http://a:1/spillway/", "a:1/spillway", "http://a:1/spillway/api/v1/state"},
		{"https://a", "https://a:8001", "https://a:8001/api/v1/state"},
		{"unix:/run/s", "unix:/run/s", "http://localhost/api/v1/state"},
	} {
		if got, err := Parse(row.address); err != nil || got.Address != row.want || got.at.URL+path != row.url {
			t.Errorf("%s: %+v, %v", row.address, got, err)
		}
	}
	for _, address := range []string{"", "unix:", "ftp://a", "http://", "a:1:b", "http://u:p@a:1", "a:99x", "a?b", "http://a#b", "a b", "\x1b"} {
		if got, err := Parse(address); err == nil || !strings.Contains(err.Error(), "must") || strings.Contains(err.Error(), "\x1b") {
			t.Errorf("%q: %+v, %v", address, got, err)
		}
	}
}

// zone is a Resolver with a few names.
type zone map[string][]string

func (n zone) LookupNetIP(_ context.Context, network, host string) (all []netip.Addr, err error) {
	if network != "ip" || n[host] == nil {
		return nil, &net.DNSError{Err: "no such host", Name: host}
	}
	for _, a := range n[host] {
		all = append(all, netip.MustParseAddr(a))
	}
	return all, nil
}

func (n zone) LookupSRV(_ context.Context, service, proto, name string) (string, []*net.SRV, error) {
	if service != "" || proto != "" || name != "_admin._tcp.web" {
		return "", nil, errors.New("no such name")
	}
	return name, []*net.SRV{{Target: "a.web.", Port: 1}, {Target: "b.web.", Port: 2}, {Target: "gone.web.", Port: 3}}, nil
}

func TestLookup(t *testing.T) {
	dns := zone{"web": {"10.0.0.2", "::ffff:10.0.0.1", "fd00::1", "10.0.0.2"}, "a.web.": {"10.0.0.1"}, "b.web.": {"10.0.0.2"}}
	for _, row := range []struct {
		name string
		want []string
	}{
		{"web", []string{"10.0.0.1:8001", "10.0.0.2:8001", "[fd00::1]:8001"}},
		{"web:9", []string{"10.0.0.1:9", "10.0.0.2:9", "[fd00::1]:9"}},
		{"_admin._tcp.web", []string{"10.0.0.1:1", "10.0.0.2:2"}},
		{"nowhere", nil},
		{"_other._tcp.web", nil},
	} {
		l, err := ParseLookup(row.name, dns)
		if err != nil {
			t.Fatal(err)
		}
		found, err := l.Find(t.Context())
		if (err != nil) != (row.want == nil) {
			t.Errorf("%s: %v", row.name, err)
		}
		var got []string
		for _, target := range Unique(found) {
			got = append(got, target.Address)
		}
		if !slices.Equal(got, row.want) {
			t.Errorf("%s: %q, want %q", row.name, got, row.want)
		}
	}
	l, err := ParseLookup("https://web:9", dns)
	if err != nil {
		t.Fatal(err)
	}
	if found, err := l.Find(t.Context()); err != nil || found[0].at != (adminclient.Target{URL: "https://10.0.0.2:9", ServerName: "web"}) {
		t.Errorf("%+v, %v", found, err)
	}
	for _, name := range []string{"", "_admin._tcp.web:80", "http://web/x", "a b"} {
		if _, err := ParseLookup(name, dns); err == nil {
			t.Errorf("%q is a name", name)
		}
	}
}

// TestUnique: there are never more than MaxTargets.
func TestUnique(t *testing.T) {
	all := make([]Target, 0, 2*MaxTargets)
	for i := range 2 * MaxTargets {
		all = append(all, Target{at: adminclient.Target{URL: string(rune('A' + i))}})
	}
	if got := len(Unique(append(all, all...))); got != MaxTargets {
		t.Errorf("%d targets", got)
	}
}
