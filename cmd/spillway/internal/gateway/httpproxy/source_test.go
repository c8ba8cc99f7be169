package httpproxy

import (
	"bufio"
	"context"
	"fmt"
	"net"
	"net/http"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/seed90641741/spillway/cmd/spillway/internal/gateway/config"
	"github.com/seed90641741/spillway/internal/admin/decisions"
)

const trace = "4bf92f3577b34da6a3ce929d0e0e4736"

// decided starts a proxy, and returns its decisions.
func decided(t *testing.T, h http.Handler, change func(*config.Config)) (address string, log *decisions.Log) {
	t.Helper()
	upstream, _ := upstreamAt(t, h)
	c := config.ForUpstream("127.0.0.1:0", upstream)
	c.Mode = "enforce"
	c.Listeners[0].Name, c.Listeners[0].PreserveRequestID = "main", true
	c.Routes = []config.Route{{Path: "/api/", Customer: config.Customer{Header: "X-Customer", Trusted: true}}}
	if change != nil {
		change(c)
	}
	log = decisions.New(nil)
	p, err := Start(context.Background(), c, Config{Observer: log, Decisions: log})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = p.Close() })
	return p.Addr("").String(), log
}

// TestADecisionSaysWhose: for rejections by a policy, before and after net/http has read the
// request, and by the proxy itself.
func TestADecisionSaysWhose(t *testing.T) {
	served := http.HandlerFunc(func(http.ResponseWriter, *http.Request) {})
	limited := func(c *config.Config) { c.Clusters[0].RateLimit = config.RateLimit{Rate: 0.001} }
	for name, row := range map[string]struct {
		change func(*config.Config)
		path   string
		body   string
		spare  int // requests before those that are looked at
		want   decisions.Decision
	}{
		"by a policy": {limited, "/api/orders/17?secret=x", "long", 1, decisions.Decision{
			Reason: "rate_limit", Policy: "ratelimit", Cluster: "upstream", Route: "/api/", Path: "/api/orders/", Customer: "acme",
		}},
		"early": {limited, "/api/orders/17?secret=x", "", 6, decisions.Decision{
			Reason: "rate_limit", Policy: "ratelimit", Cluster: "upstream", Route: "/api/", Path: "/api/orders/", Customer: "acme",
		}},
		"without a route": {nil, "/else", "", 0, decisions.Decision{Reason: "no_route", Policy: "proxy", Path: "/else"}},
		"with a long body": {func(c *config.Config) { c.Listeners[0].MaxBodyBytes = 1 }, "/api/x", "long", 0, decisions.Decision{
			Reason: "bad_request", Policy: "proxy", Path: "/api/x",
		}},
	} {
		t.Run(name, func(t *testing.T) {
			address, log := decided(t, served, row.change)
			var conn net.Conn
			for i := range row.spare + 1 {
				if conn == nil {
					var err error
					if conn, err = net.Dial("tcp", address); err != nil {
						t.Fatal(err)
					}
				}
				method, body := "GET", ""
				if row.body != "" {
					method, body = "POST", fmt.Sprintf("Content-Length: %d\r\n", len(row.body))
				}
				fmt.Fprintf(conn, "%s %s HTTP/1.1\r\nHost: x\r\nX-Customer: acme\r\nX-Request-Id: id-%d\r\nTraceparent: 00-%s-00f067aa0ba902b7-01\r\n%s\r\n%s",
					method, row.path, i, trace, body, row.body)
				resp, err := http.ReadResponse(bufio.NewReader(conn), nil)
				if err != nil {
					t.Fatal(err)
				}
				resp.Body.Close()
				if resp.Close { // some rejections end the connection
					conn.Close()
					conn = nil
				}
			}
			if conn != nil {
				conn.Close()
			}
			id := fmt.Sprint("id-", row.spare)
			all, _ := log.Read(&decisions.Filter{RequestID: id, Trace: trace}, 10)
			for len(all) == 0 { // the proxy's own ones are known when the request has ended
				runtime.Gosched()
				all, _ = log.Read(&decisions.Filter{RequestID: id}, 10)
			}
			if len(all) != 1 {
				t.Fatalf("%+v", all)
			}
			got := all[0]
			if got.Time.IsZero() || got.Caller != "127.0.0.1" || got.TraceID != trace || got.Mode != "enforce" || got.Criticality != "CRITICAL" || got.Listener != "main" {
				t.Errorf("%+v", got)
			}
			short := decisions.Decision{
				Reason: got.Reason, Policy: got.Policy, Cluster: got.Cluster, Route: got.Route, Path: got.Path, Customer: got.Customer,
			}
			if short != row.want {
				t.Errorf("%+v, want %+v", short, row.want)
			}
		})
	}
}

// TestTopOfTheLimitInFlight: the limit on requests in flight of a cluster counts attempts. The list of routes has that of the
// request, and not the cluster alone, which reads like the route /.
func TestTopOfTheLimitInFlight(t *testing.T) {
	for _, mode := range []string{"observe", "enforce"} {
		came, held := make(chan struct{}, 9), make(chan struct{})
		address, log := decided(t, http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
			came <- struct{}{}
			if r.URL.Path == "/api/first" {
				<-held
			}
		}), func(c *config.Config) {
			c.Mode, c.Clusters[0].Inflight.MaxInFlight = config.Mode(mode), 1
			c.Clusters[0].Throttle.Mode, c.Clusters[0].Shed.Mode = "off", "off"
		})
		var first sync.WaitGroup
		first.Go(func() {
			r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+address+"/api/first", nil)
			if err != nil {
				t.Error(err)
				return
			}
			if resp, err := client(t, false).Do(r); err == nil {
				resp.Body.Close()
			}
		})
		<-came
		do(t, client(t, false), http.MethodGet, "http://"+address+"/api/second", "", "X-Customer", "acme")
		close(held)
		first.Wait()
		all := log.Top(time.Now(), 10)
		want := decisions.Row{Name: "upstream: /api/", Reason: "max_in_flight", Criticality: "CRITICAL", Mode: mode, Count: 1}
		if len(all.Routes.Rows) != 1 || all.Routes.Rows[0] != want || len(all.Customers.Rows) != 1 || all.Customers.Rows[0].Name != "acme" {
			t.Errorf("%s: %+v, %+v", mode, all.Routes, all.Customers)
		}
	}
}

// TestHostileIdentities: what a client says of itself is bounded, and no control characters of it
// are kept.
func TestHostileIdentities(t *testing.T) {
	address, log := decided(t, http.NotFoundHandler(), nil)
	r, _ := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+address+"/%1b[2J%0a"+strings.Repeat("x", 5000), nil)
	r.Header.Set("X-Request-Id", "\t\u202e"+strings.Repeat("id", 10_000))
	r.Header.Set("Traceparent", strings.Repeat("0", 10_000))
	resp, err := client(t, false).Do(r)
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	all, _ := log.Read(&decisions.Filter{}, 10)
	for len(all) == 0 {
		runtime.Gosched()
		all, _ = log.Read(&decisions.Filter{}, 10)
	}
	got := all[0]
	if len(got.Path) > decisions.MaxValue || len(got.RequestID) > decisions.MaxValue || strings.ContainsAny(got.Path+got.RequestID, "\x1b\n\t\u202e") || got.TraceID != "" {
		t.Errorf("%+v", got)
	}
}
