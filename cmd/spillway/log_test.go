//go:build unix

package main

import (
	"bytes"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/seed90641741/spillway/cmd/spillway/internal/gateway/config"
)

func TestLogging(t *testing.T) {
	for _, row := range []struct {
		log          config.Log
		level        slog.Level
		contain, not string
	}{
		{config.Log{}, slog.LevelInfo, "level=INFO msg=x a=1 g.b=2", "{"},
		{config.Log{Format: "json"}, slog.LevelInfo, `"msg":"x","a":1,"g":{"b":2}}`, "level="},
		{config.Log{Level: "warn"}, slog.LevelInfo, "", "x"},
		{config.Log{Level: "debug", Format: "text"}, slog.LevelDebug, "level=DEBUG msg=x", "{"},
		{config.Log{Level: "error", Format: "json"}, slog.LevelError, `"level":"ERROR"`, "level="},
	} {
		var out bytes.Buffer
		log, logger := newLogging(&out, "")
		with := logger.With("a", 1).WithGroup("g")
		log.set(&config.Config{Log: row.log})
		with.Log(t.Context(), row.level, "x", "b", 2)
		log.close()
		if got := out.String(); !strings.Contains(got, row.contain) || row.not != "" && strings.Contains(got, row.not) {
			t.Errorf("%+v: %q", row.log, got)
		}
	}
	var out bytes.Buffer
	log, logger := newLogging(&out, "json") // the flag counts for more
	logger.Info("without a configuration")
	log.set(&config.Config{Log: config.Log{Format: "text"}})
	logger.Info("x")
	if log.close(); strings.Count(out.String(), "{") != 2 {
		t.Errorf("%q", out.String())
	}
}

// TestReload changes a file in good and bad ways.
func TestReload(t *testing.T) {
	file := filepath.Join(t.TempDir(), "proxy.yaml")
	write := func(rest string) {
		t.Helper()
		text := "listeners: [{name: main, address: '127.0.0.1:0'}]\nclusters: [{name: web, endpoints: ['127.0.0.1:9']}]\nadmin: {address: \"off\"}\n" + rest
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("routes: [{headers: {X-Key: hidden-one}}]\n")
	r := start(t, "proxy", "--config", file)
	r.waitFor(t, " mode=")
	write("routes: [{headers: {X-Key: hidden-two}}]\ndrain_timeout: 5s\nlog: {format: json}\n")
	if err := r.cmd.Process.Signal(syscall.SIGHUP); err != nil {
		t.Fatal(err)
	}
	r.waitFor(t, `"msg":"the configuration was read"`)
	said := r.stderr.String()
	for _, want := range []string{"routes[0].headers.X-Key: is another one now", "drain_timeout: 30s is now 5s", "log.format: text is now json"} {
		if !strings.Contains(said, want) {
			t.Errorf("the log does not say %q:\n%s", want, said)
		}
	}
	if strings.Contains(said, "hidden") {
		t.Errorf("a secret is in the log:\n%s", said)
	}
	write("routes: [{headers: {X-Key: hidden-two}}]\ndrain_timeout: 7s\nmode: nonsense\n")
	r.waitFor(t, "reload failed; keeping the previous configuration")
	if said := r.stderr.String(); strings.Contains(said, "5s is now 7s") || !strings.Contains(said, `mode is \"nonsense\"`) || strings.Contains(said, "hidden") {
		t.Errorf("a bad file was put in place, or the reason is missing:\n%s", said)
	}
	_ = r.cmd.Process.Signal(syscall.SIGTERM)
	if status := r.status(t); status != 0 {
		t.Errorf("status %d", status)
	}
}

// TestChangesAreNotMissed: the fingerprint is of the text that was read, so that a
// change since then shows at the next look. Files that the text names count, too.
func TestChangesAreNotMissed(t *testing.T) {
	dir := t.TempDir()
	file, token := filepath.Join(dir, "proxy.yaml"), filepath.Join(dir, "token")
	write := func(name, text string) {
		t.Helper()
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	text := "listeners: [{address: '127.0.0.1:0'}]\nclusters: [{name: web, endpoints: ['127.0.0.1:9']}]\nadmin: {token_file: '" + token + "'}\n"
	write(file, text)
	r := readingOf(file)
	c, err := parsed(&r, config.Parse)
	if err != nil {
		t.Fatal(err)
	}
	seen := r.fingerprint(c.Files())
	for _, row := range []struct {
		file, text string
		changed    bool
	}{
		{file, text + "mode: enforce\n", true},
		{file, text, false},
		{token, "secret", true},
	} {
		write(row.file, row.text)
		if now := readingOf(file); (now.fingerprint(c.Files()) != seen) != row.changed {
			t.Errorf("%s, %q: a change is %v, want %v", row.file, row.text, !row.changed, row.changed)
		}
	}
	write(file, text+"drain_timeout: 1s\n") // after the reading, and before the fingerprint
	seen = r.fingerprint(c.Files())
	if now := readingOf(file); now.fingerprint(c.Files()) == seen {
		t.Error("a change while the file was put in place is missed")
	}
}
