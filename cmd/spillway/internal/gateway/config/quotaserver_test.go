package config

import (
	_ "embed"
	"reflect"
	"strings"
	"testing"
	"time"
)

//go:embed testdata/quota.yaml
var quotaServer string

func TestQuotaServer(t *testing.T) {
	q, err := ParseQuotaServer("quota.yaml", []byte(quotaServer))
	if err != nil {
		t.Fatal(err)
	}
	if got := strings.Join(q.Files(), " "); got != "password cert.pem key.pem ca.pem token" {
		t.Errorf("it names %s", got)
	}
	f := q.Fleet()
	if f.Tasks != 20 || f.Interval != time.Second || f.Limits.Customers["mail"].Rate != 1000 || f.Limits.DefaultLimit.Rate != 10 {
		t.Errorf("a task has %+v", f)
	}
	if d := q.Defaulted(); q.CustomerKey != "" || d.CustomerKey == "" || d.Interval == 0 {
		t.Errorf("without their defaults: %+v", d)
	}
	next, err := ParseQuotaServer("quota.yaml", []byte(strings.NewReplacer("domain: shop", "domain: other", "rate: 10}", "rate: 20}").Replace(quotaServer)))
	if err != nil {
		t.Fatal(err)
	}
	if got := q.Restart(next); !reflect.DeepEqual(got, []string{"domain"}) {
		t.Errorf("a restart is needed for %v", got)
	}
	if got := strings.Join(DiffQuotaServers(q, next), "\n"); got != "default_limit.rate: 10 is now 20\ndomain: shop is now other" {
		t.Error(got)
	}
}

// Mistakes are found with the same words as in the file of the proxy, and at their line.
func TestWrongQuotaServer(t *testing.T) {
	for text, want := range map[string]string{
		"customer: {}": "quota.yaml:1: customer is no field here",
		"domain: x\ntasks: -1\ndefault_limit: {rate: 1}":        "quota.yaml:2: tasks is -1, must be 1 to 1000000",
		"interval: 1h\ndefault_limit: {rate: 1}":                "quota.yaml:1: interval is 1h0m0s, must be 50ms to 10s",
		"customers: {mail: {rate: -1}}":                         "quota.yaml:1: customers.mail.rate is -1",
		"hold: 1s\ndefault_limit: {rate: 1}":                    "quota.yaml:1: hold is 1s, must be 5 intervals (5s)",
		"default_limit: {rate: 1, shares: {critical: 0.5}}":     "default_limit.shares is given",
		"default_limit: {rate: 1}\nredis: {addresses: [x]}":     "redis.addresses[0]",
		"default_limit: {rate: 1}\nredis: {}":                   "redis.addresses is missing",
		"default_limit: {rate: 1}\ntls: {certificate: x}":       "tls.key is missing",
		"default_limit: {rate: 1}\nadmin: {address: x}":         "admin.address",
		"default_limit: {rate: 1}\ndomain: '{x}'":               `quota.yaml:2: domain is "{x}"`,
		"default_limit: {rate: 1}\nredis: {addresses: ['a:1']}": "domain is \"\"",
		"domain: shop": "limits no customer",
		"":             "limits no customer",
	} {
		if _, err := ParseQuotaServer("quota.yaml", []byte(text)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %s", text, err, want)
		}
	}
	q, err := ParseQuotaServer("quota.yaml", []byte("customers: {mail: {rate: 1}}"))
	if err != nil {
		t.Fatal(err)
	}
	if got := q.Warnings().Error(); !strings.Contains(got, "customers are the only ones with a limit") || !strings.Contains(got, "tasks is not given") {
		t.Error(got)
	}
}
