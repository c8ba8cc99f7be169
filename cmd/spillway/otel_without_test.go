//go:build !otel && unix

package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestOtelWithoutTheTag has a program without the export refuse to do without it.
func TestOtelWithoutTheTag(t *testing.T) {
	file := filepath.Join(t.TempDir(), "proxy.yaml")
	const text = "listeners: [{address: '127.0.0.1:0'}]\nclusters: [{name: web, endpoints: ['127.0.0.1:9']}]\nadmin: {address: \"off\"}\n"
	write := func(rest string) {
		t.Helper()
		if err := os.WriteFile(file, []byte(text+rest), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	const otel, want = "otel: {endpoint: 'http://127.0.0.1:4318'}\n", "otel is given, but this program was built without it: build it with go build -tags otel"
	write(otel)
	for _, args := range [][]string{{"proxy", "--config", file}, {"check", file}} {
		r := start(t, args...)
		if status := r.status(t); status != exitEnvironment || !strings.Contains(r.stdout.String()+r.stderr.String(), want) {
			t.Errorf("%v: status %d:\n%s%s", args, status, r.stdout.String(), r.stderr.String())
		}
	}
	write("")
	r := start(t, "proxy", "--config", file)
	r.waitFor(t, " mode=")
	write(otel)
	r.waitFor(t, want) // and goes on as before
	write("drain_timeout: 5s\n")
	r.waitFor(t, "drain_timeout: 30s is now 5s")
}
