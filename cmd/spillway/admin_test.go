//go:build unix

package main

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"
)

// dashboardOf returns where a proxy serves its operators, which it has logged.
func dashboardOf(t *testing.T, r *running) string {
	t.Helper()
	r.waitFor(t, " dashboard=")
	m := regexp.MustCompile(`dashboard=(\S+)/`).FindStringSubmatch(r.stderr.String())
	if m == nil {
		t.Fatal(r.stderr.String())
	}
	return m[1]
}

// told returns the answer to a request of an operator.
func told(t *testing.T, method, url, body, token string) (status int, text string) {
	t.Helper()
	req := httptest.NewRequestWithContext(t.Context(), method, url, strings.NewReader(body))
	req.RequestURI = ""
	if token != "" {
		req.Header.Set("Authorization", "Bearer "+token)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	answer, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp.StatusCode, string(answer)
}

// awaits asks until the answer has a text.
func awaits(t *testing.T, url, text string) {
	t.Helper()
	for end := time.Now().Add(time.Minute); ; {
		_, got := told(t, http.MethodGet, url, "", "")
		if strings.Contains(got, text) {
			return
		}
		if time.Now().After(end) {
			t.Fatalf("%s has no %q:\n%s", url, text, got)
		}
		<-time.After(20 * time.Millisecond)
	}
}

const operatorToken = "a-token-that-nobody-guesses"

// TestOperators looks at a proxy, changes its mode over the API, and sees the change
// dropped by a reload.
func TestOperators(t *testing.T) {
	hold := make(chan struct{})
	upstream := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/hold" {
			<-hold
		}
		fmt.Fprint(w, "hello")
	}))
	defer upstream.Close()
	dir := t.TempDir()
	file, token := filepath.Join(dir, "proxy.yaml"), filepath.Join(dir, "token")
	text := fmt.Sprintf("mode: enforce\nlisteners: [{name: main, address: '127.0.0.1:0'}]\nclusters: [{name: web, endpoints: ['%s']}]\nadmin: {address: '127.0.0.1:0', token_file: '%s'}\n",
		upstream.Listener.Addr(), token)
	for name, text := range map[string]string{file: text, token: operatorToken} {
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	r := start(t, "proxy", "--config", file)
	address, admin := addressOf(t, r), dashboardOf(t, r)
	for range 5 {
		fetch(t, address)
	}
	awaits(t, admin+"/metrics", `spillway_decisions_total{cluster="web",criticality="CRITICAL",mode="enforce",outcome="admitted",policy="retry",reason=""} 5`)
	awaits(t, admin+"/metrics", `spillway_decisions_total{cluster="web",criticality="CRITICAL",mode="enforce",outcome="admitted",policy="shed",reason=""} 5`)
	awaits(t, admin+"/api/v1/state", `"address": "`+address+`"`)
	awaits(t, admin+"/debug/limits", upstream.Listener.Addr().String())
	awaits(t, admin+"/readyz", "ready")

	if status, text := told(t, http.MethodPost, admin+"/api/v1/mode", "off", ""); status != http.StatusUnauthorized {
		t.Errorf("without a token: %d %s", status, text)
	}
	if status, text := told(t, http.MethodPost, admin+"/api/v1/mode", "observe", operatorToken); status != http.StatusOK {
		t.Errorf("with a token: %d %s", status, text)
	}
	r.waitFor(t, "the mode differs from the configuration")
	awaits(t, admin+"/metrics", "spillway_overrides 1")
	awaits(t, admin+"/debug/config", "the configuration says enforce")
	fetch(t, address)
	awaits(t, admin+"/metrics", `spillway_decisions_total{cluster="web",criticality="CRITICAL",mode="observe",outcome="admitted",policy="shed",reason=""} 1`)
	if status, text := told(t, http.MethodPost, admin+"/api/v1/reload", "", operatorToken); status != http.StatusOK {
		t.Errorf("reload: %d %s", status, text)
	}
	r.waitFor(t, "a change over the API is dropped")
	awaits(t, admin+"/metrics", "spillway_overrides 0")
	if err := os.WriteFile(file, []byte("nonsense"), 0o600); err != nil {
		t.Fatal(err)
	}
	if status, text := told(t, http.MethodPost, admin+"/api/v1/reload", "", operatorToken); status != http.StatusUnprocessableEntity {
		t.Errorf("reload of nonsense: %d %s", status, text)
	}
	if err := os.WriteFile(file, []byte(strings.Replace(text, "main,", "main, tls: {certificate: /none, key: /none},", 1)), 0o600); err != nil {
		t.Fatal(err)
	}
	if status, text := told(t, http.MethodPost, admin+"/api/v1/reload", "", operatorToken); status != http.StatusUnprocessableEntity || !strings.Contains(text, "/none") {
		t.Errorf("reload of a configuration that cannot be put in place: %d %s", status, text)
	}

	held := make(chan string, 1)
	go func() { held <- fetch(t, address+"/hold") }()
	awaits(t, admin+"/metrics", `spillway_in_flight{cluster="web",listener="main"} 1`)
	_ = r.cmd.Process.Signal(syscall.SIGTERM)
	r.waitFor(t, "draining")
	awaits(t, admin+"/readyz", "draining")
	awaits(t, admin+"/api/v1/state", `"draining": true`)
	if status, text := told(t, http.MethodPost, admin+"/api/v1/mode", "off", operatorToken); status != http.StatusUnprocessableEntity || !strings.Contains(text, "draining") {
		t.Errorf("a change while draining: %d %s", status, text)
	}
	close(hold)
	if got := <-held; got != "hello" {
		t.Errorf("what was under way: %q", got)
	}
	if status := r.status(t); status != 0 {
		t.Errorf("status %d:\n%s", status, r.stderr.String())
	}
	if strings.Contains(r.stderr.String(), operatorToken) {
		t.Error("the log has the token")
	}
}

// TestOperatorsAddress: an address that was asked for must be free, others need not.
func TestOperatorsAddress(t *testing.T) {
	taken, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	r := start(t, "proxy", "--upstream=127.0.0.1:9", "--listen=127.0.0.1:0", "--admin", taken.Addr().String())
	if status := r.status(t); status != exitEnvironment || !strings.Contains(r.stderr.String(), "the address for operators") {
		t.Errorf("status %d:\n%s", status, r.stderr.String())
	}
	r = start(t, "proxy", "--upstream=127.0.0.1:9", "--listen=127.0.0.1:0", "--admin=off")
	addressOf(t, r)
	_ = r.cmd.Process.Signal(syscall.SIGTERM)
	if status := r.status(t); status != 0 || strings.Contains(r.stderr.String(), "dashboard=") {
		t.Errorf("status %d:\n%s", status, r.stderr.String())
	}
	// Two that were asked for nothing: one of them at least has no page, and both run.
	for range 2 {
		r := start(t, "proxy", "--upstream=127.0.0.1:9", "--listen=127.0.0.1:0")
		addressOf(t, r)
		r.waitFor(t, "operators")
		defer func() {
			_ = r.cmd.Process.Signal(syscall.SIGTERM)
			if status := r.status(t); status != 0 {
				t.Errorf("status %d:\n%s", status, r.stderr.String())
			}
		}()
	}
}

// TestObserveOverTheAPI has a proxy that observes, but for one gate. The way back in an
// incident is one request, whatever the file says.
func TestObserveOverTheAPI(t *testing.T) {
	t.Parallel()
	upstream := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "ok") }))
	defer upstream.Close()
	token := filepath.Join(t.TempDir(), "token")
	file := filepath.Join(t.TempDir(), "proxy.yaml")
	text := fmt.Sprintf("mode: observe\nlisteners: [{address: '127.0.0.1:0'}]\nadmin: {address: '127.0.0.1:0', token_file: '%s'}\n"+
		"clusters: [{name: web, endpoints: ['%s'], rate_limit: {rate: 0.01, mode: enforce}}]\n", token, upstream.Listener.Addr())
	for name, text := range map[string]string{file: text, token: operatorToken} {
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	r := start(t, "proxy", "--config", file)
	address, admin := addressOf(t, r), dashboardOf(t, r)
	if first, second := fetch(t, address), fetch(t, address); first != "ok" || second == "ok" {
		t.Fatalf("with the gate: %q, %q", first, second)
	}
	status, answer := told(t, http.MethodPost, admin+"/api/v1/mode", "observe", operatorToken)
	if status != http.StatusOK || strings.Contains(answer, "not changed") {
		t.Errorf("%d %s", status, answer)
	}
	if got := fetch(t, address); got != "ok" {
		t.Errorf("a gate rejects while the proxy observes: %q", got)
	}
	awaits(t, admin+"/metrics", "spillway_overrides 1")
}

// TestTLSForOperatorsBeginsWithTheProgram: a reload that adds it, or takes it away, is not taken for one that
// did.
func TestTLSForOperatorsBeginsWithTheProgram(t *testing.T) {
	dir := t.TempDir()
	selfSigned(t, dir)
	file := filepath.Join(dir, "spillway.yaml")
	write := func(admin string) {
		t.Helper()
		text := "listeners: [{name: main, address: '127.0.0.1:0'}]\nclusters: [{name: web, endpoints: ['127.0.0.1:9']}]\nadmin: {address: '127.0.0.1:0'" + admin + "}\n"
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("")
	p := start(t, "proxy", "--config", file)
	p.waitFor(t, "for operators")
	write(fmt.Sprintf(", tls: {certificate: '%[1]s/cert.pem', key: '%[1]s/key.pem'}", dir))
	p.waitForTimes(t, "admin.tls counts from the next start on", 1)
	write("")
	p.waitForTimes(t, "admin.tls counts from the next start on", 2)
}
