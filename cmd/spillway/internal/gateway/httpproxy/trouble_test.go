package httpproxy

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/seed90641741/spillway/cmd/spillway/internal/gateway/config"
	"github.com/seed90641741/spillway/cmd/spillway/internal/gateway/logs"
)

// lineOfOne sends a request through a proxy and returns its line in the access log. Another one comes
// before it, if spare is set.
func lineOfOne(t *testing.T, c *config.Config, spare bool, headers ...string) (x logs.Record) {
	t.Helper()
	name := filepath.Join(t.TempDir(), "access.json")
	log, err := logs.OpenAccessLog(&config.Access{File: name, MaxBytes: 1 << 20, Sample: 1, SampleLost: 1, Rate: 1000})
	if err != nil {
		t.Fatal(err)
	}
	c.Mode = "enforce"
	p, err := Start(t.Context(), c, Config{})
	if err != nil {
		t.Fatal(err)
	}
	send := func() {
		r, _ := http.NewRequestWithContext(t.Context(), http.MethodPost, "http://"+p.Addr("").String()+"/orders", http.NoBody)
		for i := 0; i+1 < len(headers); i += 2 {
			r.Header.Set(headers[i], headers[i+1])
		}
		if resp, err := client(t, slices.Contains(headers, "application/grpc")).Do(r); err == nil {
			_, _ = io.Copy(io.Discard, resp.Body) // it may break off
			resp.Body.Close()
		}
	}
	if spare {
		send()
	}
	p.SetAccessLog(log)
	send()
	_ = p.Close()
	p.SetAccessLog(nil).Close()
	text, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	if d := json.NewDecoder(bytes.NewReader(text)); d.Decode(&x) != nil || d.More() {
		t.Fatalf("want one line: %s", text)
	}
	return x
}

// halfOf is an upstream whose answer breaks off long before its length.
func halfOf(length string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Length", length)
		_, _ = io.WriteString(w, "half")
		_ = http.NewResponseController(w).Flush()
		panic(http.ErrAbortHandler)
	}
}

// TestWhatFailed: the line of a request that was not served says who has answered, what failed, how
// often it was sent, and where to last. A 502 or 504 of the upstream is told from one of the proxy.
func TestWhatFailed(t *testing.T) {
	quiet(t)
	status := func(code int) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(code) }
	}
	hangs := http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() })
	for name, row := range map[string]struct {
		upstream http.HandlerFunc // nil: nothing listens
		change   func(*config.Config)
		header   string // with its value after a colon
		want     logs.Record
		failure  string // what the error has
	}{
		"502 by the upstream": {status(502), nil, "", logs.Record{Account: "failed", Status: 502, AnsweredBy: "upstream", Attempts: 1}, ""},
		"504 by the upstream": {status(504), nil, "", logs.Record{Account: "late", Status: 504, AnsweredBy: "upstream", Attempts: 1}, ""},
		"502 by the proxy":    {nil, func(c *config.Config) { c.Clusters[0].Retry.Mode = "off" }, "", logs.Record{Account: "failed", Status: 502, AnsweredBy: "proxy", Attempts: 1}, "connection refused"},
		"504 by the proxy": {hangs, func(c *config.Config) { c.Routes = []config.Route{{Timeout: 50 * time.Millisecond}} }, "", logs.Record{
			Account: "late", Status: 504, AnsweredBy: "proxy", Attempts: 1,
		}, "no answer before the deadline"},
		"hangs up": {func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }, nil, "", logs.Record{
			Account: "failed", Status: 502, AnsweredBy: "proxy", Attempts: 1,
		}, "EOF"},
		"breaks off":               {halfOf("9"), nil, "", logs.Record{Account: "failed", Status: 502, AnsweredBy: "proxy", Attempts: 1}, "the answer broke off: unexpected EOF"},
		"breaks off late":          {halfOf("9000"), nil, "", logs.Record{Account: "failed", Status: 200, AnsweredBy: "upstream", Attempts: 1}, "the answer broke off"},
		"rejected by the upstream": {status(429), nil, "", logs.Record{Account: "rejected_upstream", Status: 429, AnsweredBy: "upstream", Attempts: 1}, ""},
		"call of gRPC": {func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/grpc")
			w.Header().Set("Grpc-Status", "14")
			w.WriteHeader(http.StatusOK)
		}, nil, "Content-Type:application/grpc", logs.Record{Account: "rejected_upstream", Status: 200, AnsweredBy: "upstream", Attempts: 1}, "grpc-status 14"},
		"retried": {nil, func(c *config.Config) { c.Clusters[0].Retry = config.Retry{MaxAttempts: 3, Ratio: 1} }, "", logs.Record{
			Account: "failed", Status: 502, AnsweredBy: "proxy", Attempts: 3, Retried: true,
		}, "connection refused; not retried: no more attempts are allowed"},
		"by a limit": {status(200), func(c *config.Config) {
			c.Clusters[0].Quota = &config.Quota{DefaultLimit: config.Limit{Rate: 0.001}, Cost: 1e6}
			c.Routes = []config.Route{{Customer: config.Customer{Header: "X-Customer", Trusted: true}}}
		}, "X-Customer:acme", logs.Record{Account: "rejected", Status: 429, AnsweredBy: "proxy", Reason: "quota", Policy: "quota", Unit: "per second", Settings: "clusters[upstream].quota"}, ""},
		"by the proxy": {status(200), func(c *config.Config) {
			c.Routes = []config.Route{{Path: "/else", Cluster: "upstream"}, {Path: "/other", Cluster: "upstream"}}
		}, "", logs.Record{
			Account: "rejected", Status: 404, AnsweredBy: "proxy", Reason: "no_route", Policy: "proxy", Settings: "routes",
		}, "no route"},
	} {
		t.Run(name, func(t *testing.T) {
			address := closedAddress
			if row.upstream != nil {
				address, _ = upstreamAt(t, row.upstream)
			}
			c := config.ForUpstream("127.0.0.1:0", address)
			if row.change != nil {
				row.change(c)
			}
			var send []string
			if key, value, ok := strings.Cut(row.header, ":"); ok {
				send = []string{key, value}
			}
			x := lineOfOne(t, c, row.want.Policy == "quota", send...)
			got := logs.Record{
				Account: x.Account, Status: x.Status, AnsweredBy: x.AnsweredBy, Attempts: x.Attempts, Retried: x.Retried,
				Reason: x.Reason, Policy: x.Policy, Unit: x.Unit, Settings: x.Settings,
			}
			if got != row.want || !strings.Contains(x.Error, row.failure) || (row.failure == "") != (x.Error == "") {
				t.Errorf("%+v\nwant %+v with %q", x, row.want, row.failure)
			}
			if sent := x.Attempts > 0; sent != (x.Endpoint == address) {
				t.Errorf("%d attempts, the last one to %q, want %s", x.Attempts, x.Endpoint, address)
			}
			if x.Policy == "quota" && x.Measured == nil {
				t.Errorf("the level is missing: %+v", x)
			}
		})
	}
}
