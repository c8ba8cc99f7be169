//go:build unix

package main

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// addressOf returns where a proxy listens, which it has logged.
func addressOf(t *testing.T, r *running) string {
	t.Helper()
	r.waitFor(t, " mode=")
	_, rest, _ := strings.Cut(r.stderr.String(), " address=")
	address, _, _ := strings.Cut(rest, " ")
	return address
}

func fetch(t *testing.T, address string) string {
	t.Helper()
	resp, err := http.Get("http://" + address)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return string(body)
}

func TestProxyWithoutConfiguration(t *testing.T) {
	upstream := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "hello") }))
	defer upstream.Close()
	r := start(t, "proxy", "--upstream", upstream.Listener.Addr().String(), "--listen=127.0.0.1:0")
	if got := fetch(t, addressOf(t, r)); got != "hello" {
		t.Errorf("through the proxy: %q", got)
	}
	r.waitFor(t, "mode=observe")
	_ = r.cmd.Process.Signal(syscall.SIGTERM)
	if status := r.status(t); status != 0 || !strings.Contains(r.stderr.String(), "ended") {
		t.Errorf("status %d:\n%s", status, r.stderr.String())
	}
}

func TestProxyReadsItsFileAgain(t *testing.T) {
	texts := make([]string, 0, 2)
	for i := range 2 {
		upstream := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "upstream ", i) }))
		defer upstream.Close()
		texts = append(texts, fmt.Sprintf("listeners:\n  - {name: main, address: '127.0.0.1:0'}\nclusters:\n  - {name: web, endpoints: ['%s']}\n", upstream.Listener.Addr()))
	}
	file := filepath.Join(t.TempDir(), "proxy.yaml")
	write := func(text string) {
		t.Helper()
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write(texts[0])
	r := start(t, "proxy", "--config", file)
	address := addressOf(t, r)
	if got := fetch(t, address); got != "upstream 0" {
		t.Errorf("at first: %q", got)
	}
	write(texts[1] + "nonsense: 1\n")
	_ = r.cmd.Process.Signal(syscall.SIGHUP)
	r.waitFor(t, "nonsense is no field here")
	if got := fetch(t, address); got != "upstream 0" {
		t.Errorf("after a wrong file: %q", got)
	}
	write(texts[1]) // which is noticed without a signal
	r.waitFor(t, "clusters[web].endpoints[0]: ")
	r.waitFor(t, "the configuration was read")
	if got := fetch(t, address); got != "upstream 1" {
		t.Errorf("after a change: %q", got)
	}
	_ = r.cmd.Process.Signal(syscall.SIGTERM)
	if status := r.status(t); status != 0 {
		t.Errorf("status %d:\n%s", status, r.stderr.String())
	}
}

// Whatever a file is that a SIGHUP has read, the proxy goes on with the one before, and with a
// good one after.
func TestBrokenFilesAndSIGHUP(t *testing.T) {
	upstream := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "served") }))
	defer upstream.Close()
	file := filepath.Join(t.TempDir(), "proxy.yaml")
	good := fmt.Sprintf("listeners:\n  - {name: main, address: '127.0.0.1:0'}\nclusters:\n  - {name: web, endpoints: ['%s']}\n", upstream.Listener.Addr())
	if err := os.WriteFile(file, []byte(good), 0o600); err != nil {
		t.Fatal(err)
	}
	r := start(t, "proxy", "--config", file)
	address := addressOf(t, r)
	broken := []string{
		"", "\x00\xff", "listeners: [", "listeners: []", strings.Repeat("[", 1<<16), "a: &a [*a, *a]", good[:len(good)-8],
		"listeners: [{name: main, address: '127.0.0.1:0', tls: {certificate: /none, key: /none}}]\nclusters: [{name: web, endpoints: ['127.0.0.1:1']}]\n",
	}
	for i, text := range append(broken, good) {
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		_ = r.cmd.Process.Signal(syscall.SIGHUP)
		r.waitForTimes(t, "because=SIGHUP", i+1)
		if got := fetch(t, address); got != "served" {
			t.Errorf("after %.40q: %q", text, got)
		}
	}
	if n := strings.Count(r.stderr.String(), "keeping the previous configuration\" because=SIGHUP"); n != len(broken) {
		t.Errorf("%d of %d broken files are reported:\n%s", n, len(broken), r.stderr.String())
	}
	_ = r.cmd.Process.Signal(syscall.SIGTERM)
	if status := r.status(t); status != 0 {
		t.Errorf("status %d:\n%s", status, r.stderr.String())
	}
}

func TestCheckAndSchema(t *testing.T) {
	file := filepath.Join(t.TempDir(), "proxy.yaml")
	good := "listeners: [{address: '127.0.0.1:0'}]\nclusters: [{name: web, endpoints: ['127.0.0.1:80']}]\n"
	token := filepath.Join(t.TempDir(), "token")
	if err := os.WriteFile(token, []byte("   fifteen-letters\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	controlled := good + "xds: {address: '127.0.0.1:1', node: {id: a}}\n"
	for _, row := range []struct {
		args   []string
		text   string
		status int
		want   string
	}{
		{[]string{"check", file}, good, exitOK, "is good: 1 listeners, 1 clusters, 1 routes, mode observe"},
		{[]string{"check", file}, "mode: on\n" + good, exitUsage, `:1: mode is "on"`},
		{[]string{"check", file}, strings.Replace(good, "name: web", "tls: {ca: none.pem}, name: web", 1), exitEnvironment, "none.pem: no such file"},
		{[]string{"check", file}, controlled, exitOK, "is good"},
		{[]string{"check", file}, good + "admin: {token_file: '" + token + "'}\n", exitEnvironment, "admin token_file: has 15 characters, must have 16 at least"},
		{[]string{"check", file + "x"}, good, exitUsage, "no such file"},
		{[]string{"schema"}, good, exitOK, `"Configuration of spillway proxy"`},
		{[]string{"proxy"}, good, exitUsage, "--upstream"},
		{[]string{"proxy", "--upstream=127.0.0.1:80", "--mode=on"}, good, exitUsage, `spillway: --mode is "on", must be off`},
		{[]string{"proxy", "--upstream=http://127.0.0.1:80"}, good, exitUsage, `spillway: --upstream is "http://127.0.0.1:80", must be a host and a port`},
		{[]string{"proxy", "--upstream=127.0.0.1:80", "--listen=8000"}, good, exitUsage, `spillway: --listen is "8000", must be a host and a port`},
		{[]string{"proxy", "--upstream=127.0.0.1:80", "--admin=8001"}, good, exitUsage, `spillway: --admin is "8001", must be a host and a port`},
		{[]string{"proxy", "--config", file, "--admin=127.0.0.1:http"}, good, exitUsage, `spillway: --admin is "127.0.0.1:http", must be a host and a port`},
		{[]string{"proxy", "--config", file, "--batch"}, good, exitUsage, "--batch goes with --upstream"},
	} {
		if err := os.WriteFile(file, []byte(row.text), 0o600); err != nil {
			t.Fatal(err)
		}
		r := start(t, row.args...)
		if status := r.status(t); status != row.status || !strings.Contains(r.stdout.String()+r.stderr.String(), row.want) {
			t.Errorf("%v: status %d, want %d with %q:\n%s%s", row.args, status, row.status, row.want, r.stdout.String(), r.stderr.String())
		}
	}
}
