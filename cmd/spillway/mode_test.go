//go:build unix

package main

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"
)

// spillwayWith runs the program with a standard input; nil is none.
func spillwayWith(t *testing.T, in *os.File, args ...string) (status int, stdout, stderr string) {
	t.Helper()
	var out, errs strings.Builder
	c := exec.CommandContext(t.Context(), program, args...)
	c.Stdin, c.Stdout, c.Stderr = in, &out, &errs
	_ = c.Run() // the status says it
	return c.ProcessState.ExitCode(), out.String(), errs.String()
}

// switched is a proxy in observe mode whose operators have a token, and its configuration.
type switched struct {
	*running
	file, token, address, admin string
}

func startSwitched(t *testing.T, adminSettings string) *switched {
	t.Helper()
	upstream := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "hello") }))
	t.Cleanup(upstream.Close)
	free, err := net.Listen("tcp", "127.0.0.1:0") // the file names the port, as the file of a deployment does
	if err != nil {
		t.Fatal(err)
	}
	port := free.Addr().(*net.TCPAddr).Port
	_ = free.Close()
	dir := t.TempDir()
	s := switched{file: filepath.Join(dir, "spillway.yaml"), token: filepath.Join(dir, "token"), admin: fmt.Sprintf("127.0.0.1:%d", port)}
	text := fmt.Sprintf("mode: observe\nlisteners: [{address: '127.0.0.1:0'}]\nclusters: [{name: web, endpoints: ['%s'], rate_limit: {rate: 0.001, burst_seconds: 1000}}]\n"+
		"routes: [{path: /low, criticality: SHEDDABLE}, {}]\nadmin: {address: '0.0.0.0:%d', token_file: '%s'%s}\n", upstream.Listener.Addr(), port, s.token, adminSettings)
	if err := os.WriteFile(s.file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	if status, out, errs := spillwayWith(t, nil, "token", s.token); status != exitOK || out != "made: "+s.token+"\n" {
		t.Fatalf("status %d: %s%s", status, out, errs)
	}
	s.running = start(t, "proxy", s.file)
	s.address = addressOf(t, s.running)
	s.waitFor(t, " dashboard=")
	return &s
}

// load sends requests of two classes until the returned func is called.
func (s *switched) load(t *testing.T) (end func()) {
	ctx, cancel := context.WithCancel(t.Context())
	var sent sync.WaitGroup
	sent.Go(func() {
		ticks := time.NewTicker(10 * time.Millisecond)
		defer ticks.Stop()
		for ctx.Err() == nil {
			for _, path := range []string{"/low", "/"} {
				if resp, err := http.Get("http://" + s.address + path); err == nil {
					_ = resp.Body.Close()
				}
			}
			<-ticks.C
		}
	})
	return func() { cancel(); sent.Wait() }
}

// TestMode changes the mode of a running proxy as an operator does, by its configuration alone.
func TestMode(t *testing.T) {
	t.Parallel()
	s := startSwitched(t, "")
	defer s.load(t)()
	awaits(t, "http://"+s.admin+"/api/v1/state", `"would_reject"`)
	awaits(t, "http://"+s.admin+"/metrics", `criticality="SHEDDABLE",mode="observe",outcome="rejected",policy="ratelimit"`)
	const forecast, seen = "gates in observe mode would have rejected ", " % of SHEDDABLE, "
	says := func(want int, in *os.File, args []string, texts ...string) {
		t.Helper()
		status, out, errs := spillwayWith(t, in, args...)
		if status != want {
			t.Errorf("%v: status %d, want %d", args, status, want)
		}
		for _, text := range texts {
			if !strings.Contains(out+errs, text) {
				t.Errorf("%v: no %q in\n%s%s", args, text, out, errs)
			}
		}
	}
	nobody, err := os.Open(os.DevNull)
	if err != nil {
		t.Fatal(err)
	}
	defer nobody.Close()
	pipe, _, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	mode, config := []string{"mode"}, "--config="+s.file
	says(exitOK, nil, append(mode, config), "mode observe\n", forecast, seen)
	says(exitUsage, pipe, append(mode, "enforce", config), forecast, seen, "the mode is not changed: answer y, or give --yes")
	says(exitUsage, nobody, append(mode, "enforce", config), forecast, "Change the mode? [y/N] ", "the mode is not changed")
	awaits(t, "http://"+s.admin+"/metrics", "spillway_overrides 0")
	says(exitOK, pipe, append(mode, "enforce", "--yes", config), "mode enforce until the configuration is next read\n", forecast)
	awaits(t, "http://"+s.admin+"/metrics", "spillway_overrides 1")
	if resp, err := http.Get("http://" + s.address); err != nil || resp.StatusCode != http.StatusServiceUnavailable {
		t.Errorf("%v %v", resp, err)
	} else {
		_ = resp.Body.Close()
	}
	says(exitOK, nil, append(mode, config), "mode enforce until the configuration is next read, which says observe")
	says(exitUsage, nil, append(mode, "on", config), "must be one of")
	says(exitOK, nil, append(mode, "observe", config), "mode observe")
	says(exitUsage, pipe, append(mode, "file", config), "would have rejected", "the mode is not changed")
	says(exitOK, nil, append(mode, "file", "--yes", config), "the configuration was read")
	if err := os.WriteFile(s.file, []byte("nonsense"), 0o600); err != nil { // the file may be what is wrong
		t.Fatal(err)
	}
	says(exitUsage, nil, append(mode, "observe", config), "give --admin and --token-file")
	says(exitOK, nil, append(mode, "observe", "--admin="+s.admin, "--token-file="+s.token), "mode observe")
	if got := fetch(t, s.address); got != "hello" {
		t.Errorf("in observe mode the answer is %q", got)
	}
}

// TestModeThatCannotBeSet: the message says what to do.
func TestModeThatCannotBeSet(t *testing.T) {
	dir := t.TempDir()
	files := map[string]string{"closed": "admin: {token_file: token}\n", "off": "admin: {address: 'off', token_file: token}\n", "open": ""}
	for name, text := range files {
		files[name] = filepath.Join(dir, name)
		if err := os.WriteFile(files[name], []byte("listeners: [{address: '127.0.0.1:0'}]\nclusters: [{name: web, endpoints: ['127.0.0.1:1']}]\n"+text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	token := filepath.Join(dir, "token")
	if status, _, errs := spill(t, "token", token); status != exitOK {
		t.Fatal(errs)
	}
	for name, row := range map[string]struct {
		args   []string
		status int
		says   string
	}{
		"no file":        {[]string{"mode", "observe", "--config", filepath.Join(dir, "none")}, exitUsage, "name the configuration with --config"},
		"no token":       {[]string{"mode", "observe", "--config", files["open"]}, exitUsage, "set admin.token_file"},
		"no token file":  {[]string{"mode", "observe", "--config", files["closed"]}, exitEnvironment, "run this as the user of the proxy, or as root"},
		"no address":     {[]string{"mode", "observe", "--config", files["off"]}, exitUsage, "admin.address is off"},
		"no proxy":       {[]string{"mode", "observe", "--admin", "127.0.0.1:1", "--token-file", token}, exitEnvironment, "does not answer at 127.0.0.1:1"},
		"another mode":   {[]string{"mode", "on"}, exitUsage, "observe"},
		"token: nowhere": {[]string{"token", filepath.Join(dir, "none", "token")}, exitEnvironment, "no such file"},
		"token: no file": {[]string{"token", dir}, exitEnvironment, "is a directory"},
		"token: kept":    {[]string{"token", token}, exitOK, "kept: " + token},
	} {
		t.Run(name, func(t *testing.T) {
			if status, out, errs := spill(t, row.args...); status != row.status || !strings.Contains(out+errs, row.says) {
				t.Errorf("status %d, want %d and %q: %s%s", status, row.status, row.says, out, errs)
			}
		})
	}
	if info, err := os.Stat(token); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%v %v", info, err)
	}
}
