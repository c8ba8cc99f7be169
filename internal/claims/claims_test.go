package claims

import (
	"crypto/x509"
	"crypto/x509/pkix"
	"net/url"
	"strings"
	"testing"
)

func TestCriticality(t *testing.T) {
	const none = "none"
	far := strings.Repeat("a=1,", maxBaggage/4)
	const member = "criticality=SHEDDABLE"
	for _, row := range []struct {
		own, baggage []string
		want         string
	}{
		{nil, nil, none},
		{[]string{"SHEDDABLE"}, nil, "SHEDDABLE"},
		{[]string{" critical_plus\t"}, nil, "CRITICAL_PLUS"},
		{[]string{"CRITICAL_PLUS", "SHEDDABLE_PLUS", "CRITICAL"}, nil, "SHEDDABLE_PLUS"},
		{[]string{"URGENT", "CRITICAL_PLUS", ""}, nil, "CRITICAL_PLUS"},
		{[]string{"CRITICAL_PLUS, SHEDDABLE"}, nil, none},
		{[]string{strings.Repeat("CRITICAL", 1000)}, nil, none},
		{nil, []string{member}, "SHEDDABLE"},
		{nil, []string{"a=1, criticality = CRITICAL_PLUS ;p=1,b=2"}, "CRITICAL_PLUS"},
		{nil, []string{"criticality=CRITICAL_PLUS", "a=1,criticality=CRITICAL"}, "CRITICAL"},
		{nil, []string{"xcriticality=SHEDDABLE,criticality,=,;,"}, none},
		{nil, []string{far[:maxBaggage-24] + member}, "SHEDDABLE"}, // which just ends in time
		{nil, []string{far + member}, none},
		{nil, []string{far, member}, none},
		{[]string{"URGENT"}, []string{member}, none},
		{[]string{"CRITICAL"}, []string{member}, "CRITICAL"},
	} {
		got := none
		if c, ok := Criticality(row.own, row.baggage); ok {
			got = c.String()
		}
		if got != row.want {
			t.Errorf("%.60q, baggage %.60q: %s, want %s", row.own, row.baggage, got, row.want)
		}
	}
}

func TestCriticalityAllocatesNothing(t *testing.T) {
	own, baggage := []string{"sheddable", "CRITICAL"}, []string{"a=b, criticality=SHEDDABLE;ttl=1 ,c"}
	if n := testing.AllocsPerRun(100, func() { Criticality(own, nil); Criticality(nil, baggage) }); n > 0 {
		t.Errorf("%v allocations", n)
	}
}

func TestIdentity(t *testing.T) {
	c := &x509.Certificate{Subject: pkix.Name{CommonName: "name"}}
	for _, row := range []struct {
		add  func()
		want string
	}{
		{func() {}, "cn:name"},
		{func() { c.DNSNames = []string{"a.example", "b.example"} }, "dns:a.example"},
		{func() { c.URIs = []*url.URL{{Scheme: "spiffe", Host: "example", Path: "/a"}} }, "uri:spiffe://example/a"},
	} {
		row.add()
		if got := Identity(c); got != row.want {
			t.Errorf("%q, want %q", got, row.want)
		}
	}
}
