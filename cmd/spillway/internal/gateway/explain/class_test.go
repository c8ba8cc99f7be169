package explain

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/seed90641741/spillway/cmd/spillway/internal/gateway/config"
)

const classes = `mode: enforce
listeners:
  - {name: edge, address: "127.0.0.1:0"}
  - {name: inside, address: "127.0.0.1:0", boundary: internal, peers: [127.0.0.0/8], others: SHEDDABLE_PLUS}
clusters:
  - {name: web, endpoints: ["127.0.0.1:1"]}
  - {name: jobs, endpoints: ["127.0.0.1:2"], protocol: http1, batch: {}}
routes:
  - {path: /jobs/, cluster: jobs}
  - {path: /named/, cluster: web, criticality: CRITICAL_PLUS}
  - {path: /, cluster: web}
`

// Which of route, identity and header has decided, for each way to a class.
func TestWhatDecidesTheClass(t *testing.T) {
	c, err := config.Parse("spillway.yaml", fmt.Append(nil, classes))
	if err != nil {
		t.Fatal(err)
	}
	const own, baggage = "X-Request-Criticality", "Baggage"
	for _, row := range []struct {
		listener, path, header, value string
		class, by                     string
	}{
		{"edge", "/", "", "", "CRITICAL", "default, as neither route nor header sets a class"},
		{"edge", "/", own, "CRITICAL_PLUS", "CRITICAL", "default, as neither route nor header sets a class"},
		{"edge", "/", own, "SHEDDABLE", "SHEDDABLE", "header X-Request-Criticality"},
		{"edge", "/", baggage, "criticality=SHEDDABLE", "SHEDDABLE", "header Baggage"},
		{"edge", "/named/", "", "", "CRITICAL_PLUS", "route"},
		{"edge", "/named/", own, "CRITICAL_PLUS", "CRITICAL_PLUS", "route"},
		{"edge", "/named/", own, "CRITICAL", "CRITICAL", "header X-Request-Criticality"},
		{"edge", "/jobs/", "", "", "SHEDDABLE_PLUS", "route"},
		{"inside", "/named/", "", "", "SHEDDABLE_PLUS", "identity: SHEDDABLE_PLUS is the highest that"},
		{"inside", "/", own, "CRITICAL", "SHEDDABLE_PLUS", "identity: SHEDDABLE_PLUS is the highest that"},
		{"inside", "/", own, "SHEDDABLE", "SHEDDABLE", "header X-Request-Criticality"},
		{"inside", "/", "", "", "SHEDDABLE_PLUS", "identity"},
	} {
		r, err := http.NewRequest(http.MethodGet, "http://a.test"+row.path, nil)
		if err != nil {
			t.Fatal(err)
		}
		r.RequestURI, r.RemoteAddr = r.URL.RequestURI(), "127.0.0.1:9"
		if row.header != "" {
			r.Header.Set(row.header, row.value)
		}
		e, err := Explain(c, Question{Listener: row.listener, Request: r})
		if err != nil {
			t.Fatal(err)
		}
		if e.Call.Criticality != row.class || !strings.HasPrefix(e.Call.DecidedBy, row.by) {
			t.Errorf("%s %s %s: %s: %s is %s, decided by %s; want %s by %s", row.listener, row.path, row.header, row.value, e.Request,
				e.Call.Criticality, e.Call.DecidedBy, row.class, row.by)
		}
	}
}

// CustomerDecidedBy names identity or header, or says why there is no customer.
func TestWhatDecidesTheCustomer(t *testing.T) {
	text := strings.Replace(classes, "routes:\n", `routes:
  - {path: /identity/, cluster: web, customer: {identity: true}}
  - {path: /header/, cluster: web, customer: {header: x-customer, trusted_header: true}}
  - {path: /inside/, cluster: web, listeners: [inside], customer: {header: x-customer}}
`, 1)
	c, err := config.Parse("spillway.yaml", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	for _, row := range []struct {
		listener, path string
		named          bool
		customer, by   string
	}{
		{"edge", "/", true, "", "none: the route sets no customer"},
		{"edge", "/identity/", true, "", "none: the route uses identity, and the client has no certificate"},
		{"edge", "/header/", true, "acme", "header X-Customer, which counts because of trusted_header"},
		{"edge", "/header/", false, "", "none: the request must have header X-Customer exactly once"},
		{"inside", "/inside/", true, "acme", "header X-Customer, which counts at an internal boundary"},
	} {
		r, err := http.NewRequest(http.MethodGet, "http://a.test"+row.path, nil)
		if err != nil {
			t.Fatal(err)
		}
		r.RequestURI, r.RemoteAddr = r.URL.RequestURI(), "127.0.0.1:9"
		if row.named {
			r.Header.Set("X-Customer", "acme")
		}
		e, err := Explain(c, Question{Listener: row.listener, Request: r})
		if err != nil {
			t.Fatal(err)
		}
		if e.Call.Customer != row.customer || !strings.HasPrefix(e.Call.CustomerDecidedBy, row.by) {
			t.Errorf("%s %s: %q, decided by %s; want %q by %s", row.listener, row.path, e.Call.Customer, e.Call.CustomerDecidedBy, row.customer, row.by)
		}
	}
}
