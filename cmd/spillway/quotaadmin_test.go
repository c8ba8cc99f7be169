//go:build unix

package main

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	descriptor "github.com/envoyproxy/go-control-plane/envoy/extensions/common/ratelimit/v3"
	rlqs "github.com/envoyproxy/go-control-plane/envoy/service/rate_limit_quota/v3"
	ratelimit "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"

	"github.com/seed90641741/spillway/internal/freeport"
	"github.com/seed90641741/spillway/internal/telemetry"
)

// quotaAddresses waits for the addresses of a service of quotas.
func quotaAddresses(t *testing.T, p *running) (envoys, page string) {
	t.Helper()
	p.waitFor(t, "msg=serving addr=")
	at := func(pattern string) string {
		return regexp.MustCompile(pattern).FindStringSubmatch(p.stderr.String())[1]
	}
	return at(`msg=serving addr=(\S+)`), at(`dashboard=(\S+)/`)
}

// eventually waits for a condition.
func eventually(t *testing.T, what string, is func() bool) {
	t.Helper()
	deadline, ticks := time.After(20*time.Second), time.NewTicker(50*time.Millisecond)
	defer ticks.Stop()
	for !is() {
		select {
		case <-ticks.C:
		case <-deadline:
			t.Fatalf("%s: not within 20 s", what)
		}
	}
}

// until waits for a text of the address for operators.
func until(t *testing.T, url, want string) (text string) {
	t.Helper()
	eventually(t, url+" has "+want, func() bool {
		text = bodyOf(t, http.DefaultClient, url)
		return strings.Contains(text, want)
	})
	return text
}

func bodyOf(t *testing.T, c *http.Client, url string) string {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	answer, err := c.Do(r)
	if err != nil {
		return err.Error()
	}
	defer answer.Body.Close()
	text, _ := io.ReadAll(answer.Body)
	return string(text)
}

func dialed(t *testing.T, address string, secrets credentials.TransportCredentials) *grpc.ClientConn {
	t.Helper()
	cc, err := grpc.NewClient(address, grpc.WithTransportCredentials(secrets))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cc.Close() })
	return cc
}

// over asks n times by ratelimit.v3 and returns how many answers were OVER_LIMIT.
func over(t *testing.T, cc *grpc.ClientConn, customer string, n int) (over int) {
	t.Helper()
	for range n {
		m, err := ratelimit.NewRateLimitServiceClient(cc).ShouldRateLimit(t.Context(), &ratelimit.RateLimitRequest{
			Domain: "shop", Descriptors: []*descriptor.RateLimitDescriptor{{Entries: []*descriptor.RateLimitDescriptor_Entry{{Key: "customer", Value: customer}}}},
		})
		if err != nil {
			t.Fatal(err)
		}
		if m.GetOverallCode() == ratelimit.RateLimitResponse_OVER_LIMIT {
			over++
		}
	}
	return over
}

// TestQuotaOperators: the service has a page, metrics and health of its own, and a change of its file counts
// while streams go on.
func TestQuotaOperators(t *testing.T) {
	t.Parallel()
	token := filepath.Join(t.TempDir(), "token")
	if err := os.WriteFile(token, []byte("a-token-of-sixteen-characters\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	text := "domain: shop\ntasks: 1\ninterval: 50ms\nhold: 2s\ncustomers: {mail: {rate: 0.001}}\ndefault_limit: {rate: 0.001}\nadmin: {token_file: " + token + "}\n"
	file := quotaYAML(t, text)
	p := start(t, "quota", file, "--listen=127.0.0.1:0", "--admin=127.0.0.1:0")
	envoys, page := quotaAddresses(t, p)
	cc := dialed(t, envoys, insecure.NewCredentials())
	if text := bodyOf(t, http.DefaultClient, page+"/readyz"); text != "ready\n" {
		t.Errorf("/readyz: %s", text)
	}
	if m, err := healthpb.NewHealthClient(cc).Check(t.Context(), &healthpb.HealthCheckRequest{}); err != nil || m.GetStatus() != healthpb.HealthCheckResponse_SERVING {
		t.Errorf("the health of gRPC is %v, %v", m, err)
	}
	if n := over(t, cc, "mail", 10); n < 5 {
		t.Errorf("%d of 10 over the limit", n)
	}
	stream, err := rlqs.NewRateLimitQuotaServiceClient(cc).StreamRateLimitQuotas(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	report := func() {
		err := stream.Send(&rlqs.RateLimitQuotaUsageReports{Domain: "shop", BucketQuotaUsages: []*rlqs.RateLimitQuotaUsageReports_BucketQuotaUsage{
			{BucketId: &rlqs.BucketId{Bucket: map[string]string{"customer": "mail", "criticality": "SHEDDABLE"}}, NumRequestsAllowed: 7, NumRequestsDenied: 5},
		}})
		if err != nil {
			t.Fatal(err)
		}
	}
	report()
	metrics := until(t, page+"/metrics", `spillway_quota_calls_total{criticality="SHEDDABLE",outcome="rejected",quota="shop"} 5`)
	for _, want := range []string{
		`spillway_quota_calls_total{criticality="SHEDDABLE",outcome="admitted",quota="shop"} 7`, `spillway_quota_envoys{quota="shop"} 1`,
		`spillway_quota_buckets{customers="listed",quota="shop"} 1`, `spillway_quota_leader{quota="shop"} 1`, "spillway_ready 1",
	} {
		if !strings.Contains(metrics, want) {
			t.Errorf("the metrics lack %s: %s", want, metrics)
		}
	}
	for _, m := range telemetry.Metrics {
		if m.Scope == telemetry.Quota && !strings.Contains(metrics, "\n"+m.Name+"{") {
			t.Errorf("%s is not exported", m.Name)
		}
	}
	until(t, page+"/debug/quotas", "mail")
	until(t, page+"/debug/config", "default_limit.rate")
	if err := os.WriteFile(file, []byte(strings.Replace(text, "mail: {rate: 0.001}", "mail: {rate: 1000}", 1)), 0o600); err != nil {
		t.Fatal(err)
	}
	until(t, page+"/debug/config", "1000")
	eventually(t, "the new limit", func() bool { return over(t, cc, "mail", 5) == 0 })
	if n := over(t, cc, "mail", 10); n > 0 {
		t.Errorf("%d of 10 are over the limit of 1000", n)
	}
	report()
	until(t, page+"/metrics", `spillway_quota_calls_total{criticality="SHEDDABLE",outcome="rejected",quota="shop"} 10`)
	changesOfQuota(t, p, file, page)
	if err := p.cmd.Process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	if status := p.status(t); status != exitOK {
		t.Errorf("status %d: %s", status, p.stderr.String())
	}
}

// changesOfQuota makes a change that is wrong, and one that needs a restart, and asks for changes over the API.
func changesOfQuota(t *testing.T, p *running, file, page string) {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	for _, row := range [][2]string{{"tasks: -1", "tasks is -1"}, {"tasks: 2", "configuration changed"}} { // the last one is valid
		if err := os.WriteFile(file, bytes.Replace(text, []byte("tasks: 1"), []byte(row[0]), 1), 0o600); err != nil {
			t.Fatal(err)
		}
		p.waitFor(t, row[1])
	}
	for path, want := range map[string]int{"/api/v1/reload": http.StatusOK, "/api/v1/mode": http.StatusUnprocessableEntity} {
		for _, given := range []string{"", "a-token-of-sixteen-characters"} {
			r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, page+path, strings.NewReader("observe"))
			if err != nil {
				t.Fatal(err)
			}
			want := want
			if r.Header.Set("Authorization", "Bearer "+given); given == "" {
				want = http.StatusUnauthorized
			}
			answer, err := http.DefaultClient.Do(r)
			if err != nil {
				t.Fatal(err)
			}
			if _ = answer.Body.Close(); answer.StatusCode != want {
				t.Errorf("%s with the token %q: %s", path, given, answer.Status)
			}
		}
	}
}

// TestQuotaCertificate: a new certificate counts for new connections, and one that cannot be read changes nothing.
func TestQuotaCertificate(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	cert, key := filepath.Join(dir, "cert.pem"), filepath.Join(dir, "key.pem")
	first := signed(t, dir)
	p := start(t, "quota", quotaYAML(t, "default_limit: {rate: 10}"), "--listen=127.0.0.1:0", "--admin=127.0.0.1:0", "--cert="+cert, "--key="+key)
	envoys, page := quotaAddresses(t, p)
	trusts := func(pool *x509.CertPool) error {
		c, err := (&tls.Dialer{Config: &tls.Config{RootCAs: pool, ServerName: "shop.example.com", NextProtos: []string{"h2"}, MinVersion: tls.VersionTLS12}}).DialContext(t.Context(), "tcp", envoys)
		if err == nil {
			_ = c.Close()
		}
		return err
	}
	if err := trusts(first); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(key, []byte("no key"), 0o600); err != nil {
		t.Fatal(err)
	}
	p.waitFor(t, "reload failed; keeping the previous configuration")
	until(t, page+"/metrics", `spillway_notice{kind="reload_failed"} 1`)
	second := signed(t, dir)
	eventually(t, "the new certificate", func() bool { return trusts(second) == nil })
	if trusts(first) == nil {
		t.Error("the old certificate is in use")
	}
	until(t, page+"/metrics", `spillway_notice{kind="reload_failed"} 0`)
}

func TestQuotaCheck(t *testing.T) {
	free := freeport.Address(t)
	for _, row := range []struct {
		text   string
		args   []string
		status int
		want   string
	}{
		{"tasks: 2\ndefault_limit: {rate: 10}", nil, exitOK, "is good: 0 customers by name"},
		{"customers: {mail: {rate: 10}}", nil, exitOK, "customers are the only ones with a limit"},
		{"default_limit: {rate: -1}", nil, exitUsage, "default_limit.rate is -1"},
		{"default_limit: {rate: 1}\ntls: {certificate: nowhere, key: nowhere}", nil, exitEnvironment, "nowhere"},
		{"default_limit: {rate: 1}\nadmin: {token_file: nowhere}", nil, exitEnvironment, "admin token_file"},
		{"domain: x\ndefault_limit: {rate: 1}\nredis: {addresses: ['127.0.0.1:1'], password_file: nowhere, username: me}", nil, exitEnvironment, "nowhere"},
		{"domain: x\ndefault_limit: {rate: 1}\nredis: {addresses: ['" + free + "']}", []string{"--live"}, exitBroken, "no server answers at this address"},
		{"default_limit: {rate: 1}\nadmin: {address: '" + free + "'}", []string{"--live"}, exitOK, "all addresses can be listened on"},
	} {
		status, stdout, stderr := spill(t, append([]string{"quota", "check", quotaYAML(t, row.text)}, row.args...)...)
		if status != row.status || !strings.Contains(stdout, row.want) {
			t.Errorf("%s: status %d\n%s%s", row.text, status, stdout, stderr)
		}
	}
}

func TestQuotaExplain(t *testing.T) {
	file := quotaYAML(t, "domain: shop\ntasks: 20\ncustomers: {mail: {rate: 1000}}\ndefault_limit: {rate: 10}\nunlisted_total: {rate: 5}\ncustomer_key: tenant\n")
	status, stdout, stderr := spill(t, "quota", "explain", file, "--customer=mail")
	for _, want := range []string{
		`"mail", listed`, "1000 per second in all Envoys together, by customers.mail", "SHEDDABLE 250, SHEDDABLE_PLUS 500, CRITICAL 750, CRITICAL_PLUS 1000",
		"50 per second in each Envoy", "tenant: {custom_value",
	} {
		if !strings.Contains(stdout, want) {
			t.Errorf("status %d, lacks %s:\n%s%s", status, want, stdout, stderr)
		}
	}
	_, filter, _ := strings.Cut(stdout, "\n\n")
	_, filter, _ = strings.Cut(filter, "\n\n")
	if err := checkEnvoyFilter(filter); err != nil || !strings.Contains(filter, "max_tokens: 50") {
		t.Errorf("the filter is wrong: %v\n%s", err, filter)
	}
	_, stdout, _ = spill(t, "quota", "explain", file, "--customer=other", "--output=json")
	var got struct {
		Listed    bool
		LimitedBy string `json:"limited_by"`
		Limit     float64
		AtOnce    map[string]int `json:"at_once"`
	}
	if err := json.Unmarshal([]byte(stdout), &got); err != nil || got.Listed || got.LimitedBy != "unlisted_total" || got.Limit != 5 || got.AtOnce["CRITICAL"] != 4 {
		t.Errorf("%v: %+v", err, got)
	}
	status, stdout, _ = spill(t, "quota", "schema")
	if status != exitOK || !strings.Contains(stdout, "Configuration of spillway quota") {
		t.Errorf("the schema: status %d, %s", status, stdout)
	}
}

// signed writes a new certificate and its key, and returns it.
func signed(t *testing.T, dir string) *x509.CertPool {
	t.Helper()
	selfSigned(t, dir)
	text, err := os.ReadFile(filepath.Join(dir, "cert.pem"))
	if err != nil {
		t.Fatal(err)
	}
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(text)
	return pool
}
