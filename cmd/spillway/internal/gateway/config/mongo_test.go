package config

import (
	_ "embed"
	"strings"
	"testing"

	"github.com/seed90641741/spillway"
)

//go:embed testdata/good/mongo.yaml
var mongo string

func TestMongo(t *testing.T) {
	c, err := Parse("m.yaml", []byte(mongo))
	if err != nil {
		t.Fatal(err)
	}
	d := c.Defaulted()
	m := &d.Mongo[0]
	conns, in := m.Connections(), m.Ingress(d)
	if conns.MaxOpen != 10000 || conns.Rate.Rate != 100 || conns.Rate.QueueDepth != 50 || len(conns.Rate.Exempt.CIDRs) != 2 {
		t.Errorf("connections: %+v", conns)
	}
	if in.RateLimit.Rate != 2000 || in.RateLimit.BurstSeconds != 2 || in.RateLimit.QueueDepth != 20 || in.RateLimitMode != spillway.ModeEnforce ||
		in.RateLimit.Exempt.Applications[0] != "backup" || in.ShedMode != spillway.ModeObserve || in.Quota.Allocator == nil {
		t.Errorf("ingress: %+v", in)
	}
	if s, _, err := m.Strategy(d); s == nil || err != nil || m.AllowsRetries() || m.ConnectTimeout == 0 {
		t.Errorf("%v, %v, %+v", s, err, m)
	}
	if names := strings.Join(c.Files(), " "); names != "a.pem b.pem c.pem" {
		t.Errorf("files: %s", names)
	}
	var zero Mongo
	if zero.Connections().Rate.Rate != 0 || zero.Ingress(d).RateLimit.Rate != 0 || zero.Ingress(d).ShedMode != d.modeOf("") || !zero.AllowsRetries() {
		t.Error("something limits that nobody has asked for")
	}
	if s, _, err := zero.Strategy(&Config{}); s != nil || err != nil {
		t.Error("something is sent again in the mode observe")
	}
}

func TestMongoErrors(t *testing.T) {
	for name, test := range map[string]struct{ old, text, want string }{
		"no address":     {"address: 127.0.0.1:27018", "max_connections: 1", "mongo[0].address is missing"},
		"no endpoints":   {`["10.0.0.1:27017", "10.0.0.2:27017"]`, "[]", "mongo[0].endpoints is missing"},
		"no port":        {"10.0.0.1:27017", "10.0.0.1", `mongo[0].endpoints[0] is "10.0.0.1"`},
		"passed through": {"authentication: true", "tls_passthrough: true", "mongo[0].tls_passthrough is true"},
		"no key":         {", key: b.pem", "", "mongo[0].tls.key is missing"},
		"optional":       {", key: b.pem", ", key: b.pem, optional: true", "mongo[0].tls.optional is true, but there is no client_ca"},
		"topology":       {"authentication: true", "topology: show", "mongo[0].topology is"},
		"a rate":         {"RatePerSec: 2000", "RatePerSec: -1", "mongo[0].parameters.ingressRequestAdmissionRatePerSec is -1"},
		"a queue":        {"EstablishmentMaxQueueDepth: 50", "EstablishmentMaxQueueDepth: -5", "mongo[0].parameters.ingressConnectionEstablishmentRatePerSec is 100 with"},
		"a network":      {"10.0.0.0/8", "10/8", "Bypass[0] is \"10/8\""},
		"every name":     {"[backup]", `[""]`, "ApplicationExemptions[0] is empty"},
		"base backoff":   {"MS: 50", "MS: -50", "mongo[0].parameters.externalClientBaseBackoffMS is -50"},
		"a class":        {"SHEDDABLE,", "LOW,", "mongo[0].classes[0].criticality is"},
		"a customer":     {"customer: application", "customer: address", "mongo[0].classes[0].customer is"},
		"a mode":         {"shed: {mode: observe}", "shed: {mode: on}", "mongo[0].shed.mode is"},
		"retries":        {"max_retries: 3", "max: -300s", "mongo[0].retry.max is -5m0s"},
		"a budget":       {"budget: 100", "budget: 1e12", "mongo[0].retry.budget is 1e+12"},
		"a revision":     {"max_retries: 3", "revision: latest", "mongo[0].retry.revision is"},
		"kept":           {"max_retries: 3", "max_bytes: 10", "mongo[0].retry.max_bytes is 10"},
		"unknown":        {"authentication", "authorization", "authorization"},
		"a cluster's name": {"mongo:\n", "listeners: [{address: 127.0.0.1:1}]\nclusters: [{name: orders, endpoints: [\"b:1\"]}]\nmongo:\n",
			`mongo[0].name is "orders", as that of clusters[0] is`},
		"a cluster's name, by default": {"mongo:\n- name: orders\n  ", "listeners: [{name: a, address: 127.0.0.1:1}]\n" +
			"clusters: [{name: \"127.0.0.1:27018\", endpoints: [\"b:1\"]}]\nmongo:\n- ", `mongo[0].name is "127.0.0.1:27018", as that of clusters[0] is`},
		"a listener's name": {"mongo:\n", "listeners: [{name: orders, address: 127.0.0.1:1}]\nclusters: [{name: a, endpoints: [\"b:1\"]}]\nmongo:\n",
			`mongo[0].name is "orders", as that of listeners[0] is`},
		"half of HTTP": {"mongo:\n", "clusters: [{name: a, endpoints: [\"b:1\"]}]\nmongo:\n", "listeners is missing"},
	} {
		t.Run(name, func(t *testing.T) {
			if !strings.Contains(mongo, test.old) {
				t.Fatalf("there is no %q", test.old)
			}
			_, err := Parse("m.yaml", []byte(strings.Replace(mongo, test.old, test.text, 1)))
			if err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("got %v, want %s", err, test.want)
			}
		})
	}
	two := mongo + strings.Replace(strings.SplitN(mongo, "mongo:\n", 2)[1], "name: orders", "name: others", 1)
	if _, err := Parse("m.yaml", []byte(two)); err == nil || !strings.Contains(err.Error(), "mongo[1].address is") {
		t.Errorf("two listeners on one address: %v", err)
	}
}

// TestMongoLimitKey: requests of a listener for MongoDB have its name as their limit key.
func TestMongoLimitKey(t *testing.T) {
	for key, good := range map[string]bool{"db": true, "web": false} {
		c := ForUpstream("127.0.0.1:0", "127.0.0.1:1")
		c.Mongo = []Mongo{{Name: "db", Address: "127.0.0.1:0", Endpoints: []string{"127.0.0.1:27017"}, Shed: Shed{MaxInFlightByKey: map[string]int{key: 5}}}}
		if err := c.Check(); (err == nil) != good {
			t.Errorf("%s: %v", key, err)
		}
		c = &Config{Mongo: c.Mongo}
		if err := c.Check(); (err == nil) != good {
			t.Errorf("%s, without HTTP: %v", key, err)
		}
	}
}
