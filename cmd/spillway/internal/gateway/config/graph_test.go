package config

import (
	"strings"
	"testing"
)

const twoListeners = `listeners:
  - {name: edge, address: "127.0.0.1:81"}
  - {name: inner, address: ":82"}
admin: {address: "0.0.0.0:83"}
clusters:
  - {name: web, endpoints: ["127.0.0.1:8080"]}
  - {name: chain, endpoints: ["10.0.0.1:82"]}
routes:
  - {path: /a/, listeners: [edge], cluster: chain}
  - {cluster: web}
`

// TestEndpointOfItself points an endpoint of web, which has requests of both listeners, and one of chain, which has
// requests of one, at what the proxy listens at itself.
func TestEndpointOfItself(t *testing.T) {
	const endless, twice, operators = "from which requests go to", "counts and limits such requests twice", "is admin.address"
	for _, row := range []struct{ from, to, fails, warns string }{
		{"", "", "", ""},
		{"127.0.0.1:8080", "127.0.0.1:81", "clusters[0].endpoints[0] is listeners[0] of this proxy, " + endless, ""},
		{"127.0.0.1:8080", "LOCALHOST:81", endless, ""},
		{"127.0.0.1:8080", "[::ffff:127.0.0.1]:81", endless, ""},
		{"127.0.0.1:8080", "localhost:82", "listeners[1]", ""},
		{"127.0.0.1:8080", "[::1]:82", endless, ""},
		{"127.0.0.1:8080", "0.0.0.0:81", endless, ""},
		{"127.0.0.1:8080", "127.0.0.2:81", "", ""},
		{"127.0.0.1:8080", "10.0.0.1:81", "", ""},
		{"10.0.0.1:82", "127.0.0.1:82", "", "clusters[1].endpoints[0] is listeners[1] of this proxy: it " + twice},
		{"10.0.0.1:82", "127.0.0.1:81", "clusters[1].endpoints[0] is listeners[0] of this proxy, " + endless, ""},
		{"10.0.0.1:82", "127.0.0.1:83", "", "clusters[1].endpoints[0] " + operators},
		{"0.0.0.0:83", "unix:/run/s", "", ""},
		{"admin: {address: \"0.0.0.0:83\"}\nclusters:\n  - {name: web, endpoints: [\"127.0.0.1:8080", "clusters:\n  - {name: web, endpoints: [\"127.0.0.1:8001", "", operators},
		{"admin: ", "mongo: [{address: \"127.0.0.1:84\", endpoints: [\"localhost:84\"]}]\nadmin: ", "mongo[0].endpoints[0] is the address of mongo[0]", ""},
	} {
		text := strings.Replace(twoListeners, row.from, row.to, 1)
		c, err := Parse("f", []byte(text))
		if err != nil || row.fails != "" {
			if err == nil || row.fails == "" || !strings.Contains(err.Error(), row.fails) {
				t.Errorf("%s: error %v, want %q", row.to, err, row.fails)
			}
			continue
		}
		w := c.Warnings()
		if row.warns == "" && len(w) > 0 || row.warns != "" && (len(w) != 1 || !strings.Contains(w[0].Error(), row.warns)) {
			t.Errorf("%s: warns %v, want %q", row.to, w, row.warns)
		}
	}
}
