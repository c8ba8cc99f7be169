//go:build unix

package main

import (
	"bytes"
	"context"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	descriptor "github.com/envoyproxy/go-control-plane/envoy/extensions/common/ratelimit/v3"
	ratelimit "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/seed90641741/spillway/cmd/spillway/internal/gateway/config"
	"github.com/seed90641741/spillway/cmd/spillway/internal/gateway/quotas"
	"github.com/seed90641741/spillway/internal/freeport"
	"github.com/seed90641741/spillway/internal/redistest"
)

// quotaYAML writes a file and returns its name.
func quotaYAML(t *testing.T, text string) string {
	t.Helper()
	name := filepath.Join(t.TempDir(), "quota.yaml")
	if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return name
}

var servingAt = regexp.MustCompile(`msg=serving addr=(\S+)`)

// TestQuota: the command serves the limits of its file, and ends when it is interrupted.
func TestQuota(t *testing.T) {
	file := quotaYAML(t, "domain: shop\ntasks: 1\ncustomers: {mail: {rate: 1000}}\ndefault_limit: {rate: 0.001}\n")
	var stdout, stderr lockedBuffer
	ctx, stop := context.WithCancel(t.Context())
	done := make(chan int, 1)
	go func() {
		done <- run(ctx, []string{"quota", file, "--listen=127.0.0.1:0"}, &stdout, &stderr)
	}()
	deadline := time.After(20 * time.Second)
	ticks := time.NewTicker(10 * time.Millisecond)
	defer ticks.Stop()
	for servingAt.FindStringSubmatch(stderr.String()) == nil {
		select {
		case <-deadline:
			t.Fatalf("does not serve: %s", stderr.String())
		case <-ticks.C:
		}
	}
	cc, err := grpc.NewClient(servingAt.FindStringSubmatch(stderr.String())[1], grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	defer cc.Close()
	ask := func(domain, customer string) (over int, err error) {
		for range 10 {
			m, err := ratelimit.NewRateLimitServiceClient(cc).ShouldRateLimit(t.Context(), &ratelimit.RateLimitRequest{
				Domain: domain, Descriptors: []*descriptor.RateLimitDescriptor{{
					Entries: []*descriptor.RateLimitDescriptor_Entry{{Key: "customer", Value: customer}},
				}},
			})
			if err != nil {
				return 0, err
			}
			if m.GetOverallCode() == ratelimit.RateLimitResponse_OVER_LIMIT {
				over++
			}
		}
		return over, nil
	}
	if over, err := ask("shop", "mail"); err != nil || over != 0 {
		t.Errorf("mail: %d over the limit, %v", over, err)
	}
	if over, err := ask("shop", "unknown"); err != nil || over < 5 {
		t.Errorf("unknown: %d of 10 over the limit, %v", over, err)
	}
	if _, err := ask("other", "mail"); err == nil {
		t.Error("another domain is served")
	}
	stop()
	if status := <-done; status != exitOK {
		t.Errorf("status %d: %s", status, stderr.String())
	}
	if !strings.Contains(stderr.String(), "msg=ended") {
		t.Errorf("no last line: %s", stderr.String())
	}
}

// Files that are wrong are rejected, with the field.
func TestQuotaUsage(t *testing.T) {
	for text, want := range map[string]string{
		"customer: {}":                      "is no field here",
		"domain: x\ninterval: 1h":           "quota.yaml:2: interval is 1h0m0s",
		"default_limit: {rate: -1}":         "quota.yaml:1: default_limit.rate is -1",
		"":                                  "limits no customer",
		"default_limit: {rate: 1}\ntls: {}": "tls.certificate is missing",
	} {
		var stdout, stderr bytes.Buffer
		if status := run(t.Context(), []string{"quota", quotaYAML(t, text)}, &stdout, &stderr); status != exitUsage || !strings.Contains(stderr.String(), want) {
			t.Errorf("%s: status %d, %s", text, status, stderr.String())
		}
	}
	good := quotaYAML(t, "default_limit: {rate: 10}")
	secured := quotaYAML(t, "default_limit: {rate: 10}\ntls: {certificate: a, key: b}")
	for _, row := range []struct {
		args []string
		want string
	}{
		{[]string{good, "--client-ca=x"}, "--client-ca needs --cert and --key"},
		{[]string{good, "--cert=x"}, "--cert and --key go together"},
		{[]string{good, "--listen=8000"}, `--listen is "8000", must be a host and a port`},
		{[]string{good, "--admin=8000"}, `--admin is "8000", must be a host and a port`},
		{[]string{secured, "--cert=x", "--key=y"}, "--cert goes without tls in the file"},
		{[]string{"explain", secured + "x"}, "no such file"},
		{nil, "name a FILE"},
	} {
		var stdout, stderr bytes.Buffer
		if status := run(t.Context(), append([]string{"quota"}, row.args...), &stdout, &stderr); status != exitUsage || !strings.Contains(stderr.String(), row.want) {
			t.Errorf("%q: status %d, %s", row.args, status, stderr.String())
		}
	}
}

// TestQuotaWithAProxy: a proxy and this command share a quota if both have its domain.
func TestQuotaWithAProxy(t *testing.T) {
	addr := freeport.Address(t)
	_, port, _ := net.SplitHostPort(addr)
	redistest.Start(t, "--port", port, "--bind", "127.0.0.1")
	c, err := config.Parse("proxy.yaml", []byte(`quotas:
  shared: {domain: proxies, tasks: 2, interval: 1s, redis: {addresses: ["`+addr+`"]}}
listeners: [{address: "127.0.0.1:0"}]
clusters:
- name: web
  endpoints: ["127.0.0.1:1"]
  quota: {engine: shared, domain: shop, customers: {mail: {rate: 1000}}, default_limit: {rate: 10}}
`))
	if err != nil {
		t.Fatal(err)
	}
	logger := slog.New(slog.DiscardHandler)
	set := quotas.New(logger)
	n, err := set.Prepare(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	n.Commit()
	defer set.Leave()
	var stdout, stderr lockedBuffer
	ctx, stop := context.WithCancel(t.Context())
	done := make(chan int, 1)
	file := quotaYAML(t, "domain: shop\ntasks: 2\ninterval: 1s\ncustomers: {mail: {rate: 1000}}\ndefault_limit: {rate: 10}\nredis: {addresses: [\""+addr+"\"]}\n")
	go func() {
		done <- run(ctx, []string{"quota", file, "--listen=127.0.0.1:0"}, &stdout, &stderr)
	}()
	defer func() {
		stop()
		<-done
	}()
	deadline := time.After(30 * time.Second)
	ticks := time.NewTicker(20 * time.Millisecond)
	defer ticks.Stop()
	for {
		all := set.Stats(time.Now())
		if all[0].Tasks == 2 {
			if all[0].Conflict {
				t.Error("the same limits and interval are a conflict")
			}
			return
		}
		select {
		case <-deadline:
			t.Fatalf("the proxy knows of %d tasks, want itself and the server for Envoys: %s", all[0].Tasks, stderr.String())
		case <-ticks.C:
		}
	}
}
