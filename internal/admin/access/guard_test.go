package access

import (
	"strings"
	"testing"
)

// FuzzHosts holds that a host which is known is an address, or one of the names.
func FuzzHosts(f *testing.F) {
	for _, host := range []string{"127.0.0.1:8001", "[::1]", "localhost", "evil.example", "[fe80::1%evil.example]:1", "::ffff:1.2.3.4", "]["} {
		f.Add(host)
	}
	f.Fuzz(func(t *testing.T, host string) {
		a := Rules{Hosts: []string{"proxy.example.com"}}
		name := strings.ToLower(host)
		if i := strings.LastIndexByte(name, ':'); i > 0 && (strings.Count(name, ":") == 1 || name[i-1] == ']') {
			name = name[:i]
		}
		address := strings.Trim(name, "[]0123456789abcdef.:") == "" && strings.ContainsAny(name, ".:")
		if knows(&a, host) && !address && name != "localhost" && name != "proxy.example.com" && name != "[localhost]" && name != "[proxy.example.com]" {
			t.Errorf("%q is known", host)
		}
	})
}
