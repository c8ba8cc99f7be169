package config

import (
	_ "embed"
	"strings"
	"testing"
)

//go:embed testdata/good/xds.yaml
var controlled string

func TestControlPlaneInFiles(t *testing.T) {
	c := parse(t, controlled)
	if files := c.Files(); len(files) != 1 || files[0] != "ca.pem" {
		t.Errorf("files: %q", files)
	}
	d := c.Defaulted()
	if x := d.Clusters[0].XDS; x == nil || x.Cluster != "web" || c.Clusters[0].XDS.Cluster != "" {
		t.Errorf("without a name: %+v", x)
	}
	for name, row := range map[string]struct{ from, to, want string }{
		"no plane": {"xds:\n  address: xds.example.com:18000\n  node: {id: proxy-1, cluster: edge}\n  tls: {ca: ca.pem, server_name: xds.example.com}\n", "",
			"clusters[0].xds is given, but no control plane is"},
		"no port":      {"xds.example.com:18000", "xds.example.com", "proxy.yaml:4: xds.address"},
		"no id":        {"id: proxy-1, ", "", "xds.node.id is missing"},
		"half a pair":  {"ca: ca.pem", "key: key.pem", "xds.tls.certificate is missing"},
		"two limits":   {"xds: {}", "xds: {}\n    inflight: {max_in_flight: 7}", "proxy.yaml:11: clusters[0].inflight.max_in_flight is 7, must be left out"},
		"two who move": {"xds: {}", "xds: {}\n    tune: {limit: in_flight, latency: 1s}", "clusters[0].tune.limit is in_flight, must be rate"},
	} {
		_, err := Parse("proxy.yaml", []byte(strings.Replace(controlled, row.from, row.to, 1)))
		if err == nil || !strings.Contains(err.Error(), row.want) {
			t.Errorf("%s: %v, want %s", name, err, row.want)
		}
	}
}
