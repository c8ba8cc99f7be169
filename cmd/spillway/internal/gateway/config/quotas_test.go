package config

import (
	"strings"
	"testing"
)

// sharing is a file with a quota that an engine shares.
const sharing = `quotas:
  shared: {domain: shop, tasks: 20, redis: {addresses: ["127.0.0.1:6379"]}}
listeners: [{address: "127.0.0.1:0"}]
clusters:
- name: web
  endpoints: ["127.0.0.1:1"]
  quota: {engine: shared, customers: {mail: {rate: 1000}}, max_unlisted: 100000}
`

func TestSharedQuotas(t *testing.T) {
	c := parse(t, sharing)
	n := 0
	c.SharedQuotas(func(name string, e *Engine, q *Quota) {
		n++
		f := e.Fleet(q)
		if SharedDomain(e, name, q) != "shop/web" || f.Tasks != 20 || f.Limits.Customers["mail"].Rate != 1000 || f.MaxUnlisted != 100_000 {
			t.Errorf("%s: %+v", name, f)
		}
	})
	if n != 1 {
		t.Errorf("%d quotas are shared, want 1", n)
	}
	c = parse(t, strings.Replace(sharing, "engine: shared", "engine: shared, domain: shop", 1))
	if e, q := c.Quotas["shared"], c.Clusters[0].Quota; SharedDomain(&e, "web", q) != "shop" {
		t.Errorf("the domain is %s, want shop", SharedDomain(&e, "web", q))
	}
	for name, test := range map[string]struct{ from, to, want string }{
		"many unlisted":     {"max_unlisted: 100000", "max_unlisted: 100001", "clusters[0].quota.max_unlisted is 100001, must be at most 100000"},
		"no such engine":    {"engine: shared", "engine: other", `clusters[0].quota.engine is "other", must be one of quotas: shared`},
		"no domain":         {"domain: shop, ", "", "quotas.shared.domain"},
		"braces":            {"domain: shop", "domain: '{shop}'", "quotas.shared.domain"},
		"long domain":       {"domain: shop", "domain: " + strings.Repeat("x", 101), "quotas.shared.domain"},
		"no servers":        {`, redis: {addresses: ["127.0.0.1:6379"]}`, "", "quotas.shared.redis is missing"},
		"no address":        {`["127.0.0.1:6379"]`, "[]", "quotas.shared.redis.addresses is missing"},
		"wrong address":     {`"127.0.0.1:6379"`, `"127.0.0.1"`, "quotas.shared.redis.addresses"},
		"user alone":        {`["127.0.0.1:6379"]`, `["127.0.0.1:6379"], username: a`, "quotas.shared.redis.password_file is missing"},
		"certificate alone": {`["127.0.0.1:6379"]`, `["127.0.0.1:6379"], tls: {certificate: a}`, "quotas.shared.redis.tls.key is missing"},
		"wrong tasks":       {"tasks: 20", "tasks: -1", "quotas.shared.tasks is -1"},
		"wrong interval":    {"tasks: 20", "interval: 1ms", "quotas.shared.interval is 1ms"},
		"own interval":      {"max_unlisted: 100000", "interval: 1s", "clusters[0].quota.interval is given, but engine shared"},
		"shares":            {"{rate: 1000}", "{rate: 1000, shares: {sheddable: 0.5}}", "clusters[0].quota.customers.mail.shares is given"},
		"nameless customer": {"mail:", "'':", "clusters[0].quota.customers has"},
		"domain alone":      {"engine: shared", "domain: shop", `clusters[0].quota.domain is "shop", but without engine nothing is shared`},
		"own long domain":   {"engine: shared", "engine: shared, domain: " + strings.Repeat("x", 201), "clusters[0].quota.domain is"},
		"own braces":        {"engine: shared", "engine: shared, domain: '{shop}'", "clusters[0].quota.domain is"},
		"same domain":       {"clusters:\n", "clusters:\n- {name: other, endpoints: [\"127.0.0.1:1\"], quota: {engine: shared, domain: shop/web}}\n", `clusters[1].quota.engine shares the quota "shop/web", which "other" shares`},
		"braces in a name":  {"name: web", "name: '{web}'", "clusters[0].quota.engine is given for"},
	} {
		text := strings.Replace(sharing, test.from, test.to, 1)
		if text == sharing {
			t.Fatalf("%s: the file has no %s", name, test.from)
		}
		if _, err := Parse("proxy.yaml", []byte(text)); err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s: %v, want %s", name, err, test.want)
		}
	}
}
