//go:build unix

package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// program is the program under test, built once.
var program string

func TestMain(m *testing.M) {
	os.Exit(func() int {
		dir, err := os.MkdirTemp("", "spillway")
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
		defer os.RemoveAll(dir)
		program = filepath.Join(dir, "spillway")
		if out, err := exec.Command("go", "build", "-o", program, ".").CombinedOutput(); err != nil {
			fmt.Fprintf(os.Stderr, "%v\n%s", err, out)
			return 1
		}
		return m.Run()
	}())
}

// A running program is the leader of a new process group, so that the test finds any
// child that it leaves behind.
type running struct {
	cmd    *exec.Cmd
	stdout bytes.Buffer
	stderr watched
}

func start(t *testing.T, args ...string) *running {
	t.Helper()
	r := &running{cmd: exec.Command(program, args...)}
	r.stderr.news = make(chan struct{}, 1)
	r.cmd.Stdout, r.cmd.Stderr = &r.stdout, &r.stderr
	r.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := r.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = syscall.Kill(-r.cmd.Process.Pid, syscall.SIGKILL) })
	return r
}

// status waits for the end of the program and returns its exit status, -1 if a
// signal killed it.
func (r *running) status(t *testing.T) int {
	t.Helper()
	if err := r.cmd.Wait(); err != nil {
		if _, ok := errors.AsType[*exec.ExitError](err); !ok {
			t.Fatal(err)
		}
	}
	return r.cmd.ProcessState.ExitCode()
}

// leavesNobody fails t if a process of the group still runs after patience.
func (r *running) leavesNobody(t *testing.T, patience time.Duration) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for syscall.Kill(-r.cmd.Process.Pid, 0) == nil {
		select {
		case <-tick.C:
		case <-ctx.Done():
			t.Error("a child process was left behind")
			return
		}
	}
}

// waitFor waits until stderr has the text.
func (r *running) waitFor(t *testing.T, text string) {
	t.Helper()
	r.waitForTimes(t, text, 1)
}

// waitForTimes waits until a text was logged n times.
func (r *running) waitForTimes(t *testing.T, text string, n int) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	for strings.Count(r.stderr.String(), text) < n {
		select {
		case <-r.stderr.news:
		case <-ctx.Done():
			t.Fatalf("%q not logged %d times, but\n%s", text, n, r.stderr.String())
		}
	}
}

// watched is a buffer that tells when it grows.
type watched struct {
	mu   sync.Mutex
	buf  bytes.Buffer
	news chan struct{}
}

func (w *watched) Write(p []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	select {
	case w.news <- struct{}{}:
	default:
	}
	return w.buf.Write(p)
}

func (w *watched) String() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.buf.String()
}

func TestBadInput(t *testing.T) {
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	port := fmt.Sprint(taken.Addr().(*net.TCPAddr).Port)

	for _, row := range []struct {
		args  []string
		names []string // what the error must name
	}{
		{nil, []string{"drill", "(see spillway --help)"}},
		{[]string{"dril"}, []string{"dril", "(see spillway --help)"}},
		{[]string{"sim", "show"}, []string{"<name>", "(see spillway sim show --help)"}},
		{[]string{"drill", "--overlod=3"}, []string{"--overlod", "--overload", "(see spillway drill --help)"}},
		{[]string{"drill", "now"}, []string{"now"}},
		{[]string{"drill", "--overload=ten"}, []string{"--overload", "ten"}},
		{[]string{"drill", "--overload=0"}, []string{"--overload", "0", "at most 100"}},
		{[]string{"drill", "--step=8"}, []string{"--step", "8"}},
		{[]string{"drill", "--deadline=1ms"}, []string{"--deadline", "1ms", "6ms"}},
		{[]string{"drill", "--protect=all"}, []string{"--protect", "all", "both"}},
		{[]string{"drill", "--proxy", "--protect=server"}, []string{"--proxy", "--protect=server"}},
		{[]string{"drill", "--backend=gpu"}, []string{"--backend", "gpu", "blocking"}},
		{[]string{"drill", "--scenario=storm"}, []string{"--scenario", "storm", "retry-storm"}},
		{[]string{"drill", "--seed=-1"}, []string{"--seed", "-1"}},
		{[]string{"drill", "--max-in-flight=-1"}, []string{"--max-in-flight", "-1"}},
		{[]string{"drill", "--port=70000"}, []string{"--port", "70000", "65535"}},
		{[]string{"drill", "--port=" + port}, []string{"--port", port, "address already in use"}},
		{[]string{"drill", "--json-file=/nowhere/at/all.json"}, []string{"--json-file", "/nowhere/at/all.json"}},
		{[]string{"drill", "--quota", "--target=http://127.0.0.1:1/", "--duration=1ms"}, []string{"--quota", "--target"}},
		{[]string{"drill", "--target=http://192.0.2.1/"}, []string{"--target", "192.0.2.1", "--i-own-this-target"}},
		{[]string{"drill", "--target=http://127.0.0.1:1/", "--rate=10001"}, []string{"--rate", "10001", "10000"}},
		{[]string{"drill", "--target=http://127.0.0.1:1/", "--duration=61s"}, []string{"--duration", "1m1s", "1m0s"}},
		{[]string{"drill", "--report=/nowhere/at/all.html"}, []string{"--report", "/nowhere/at/all.html"}},
	} {
		t.Run(strings.Join(row.args, " "), func(t *testing.T) {
			r := start(t, row.args...)
			if status := r.status(t); status != 2 {
				t.Errorf("exit status %d, want 2", status)
			}
			r.leavesNobody(t, 0)
			said := r.stderr.String()
			for _, name := range row.names {
				if !strings.Contains(said, name) {
					t.Errorf("the error does not name %s:\n%s", name, said)
				}
			}
			if n := strings.Count(said, "spillway: "); n != 1 || r.stdout.Len() != 0 {
				t.Errorf("%d errors and %d bytes of output; want one error alone:\n%s", n, r.stdout.Len(), said)
			}
		})
	}
}

func TestVersion(t *testing.T) {
	for _, arg := range []string{"version", "--version"} {
		r := start(t, arg)
		if status := r.status(t); status != 0 || !strings.HasPrefix(r.stdout.String(), "spillway ") {
			t.Errorf("%s: exit status %d, %q", arg, status, r.stdout.String())
		}
	}
}

// TestEnvironment gives flags by their variables. An argument counts for more than the
// variable of the flag that it represents.
func TestEnvironment(t *testing.T) {
	dir := t.TempDir()
	good, bad := filepath.Join(dir, "good.yaml"), filepath.Join(dir, "bad.yaml")
	const text = "listeners: [{address: '127.0.0.1:0'}]\nclusters: [{name: web, endpoints: ['127.0.0.1:9']}]\n"
	for file, text := range map[string]string{good: text, bad: "mode: on\n" + text} {
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	t.Setenv("SPILLWAY_CONFIG", good)
	t.Setenv("SPILLWAY_OUTPUT", "json")
	t.Setenv("SPILLWAY_VERSION", "v1.2.3") // as images and charts set it; it is no flag
	for _, row := range []struct {
		args   []string
		status int
		want   string
	}{
		{[]string{"check"}, exitOK, `"ok": true`},
		{[]string{"check", bad}, exitUsage, `"ok": false`},
		{[]string{"check", "--output=text"}, exitOK, "is good"},
		{[]string{"check", "--config", bad}, exitUsage, `"ok": false`},
		{[]string{"explain", "/checkout"}, exitOK, "GET /checkout"},
		{[]string{"quota"}, exitUsage, "listeners is no field here"},
		{[]string{"quota", bad}, exitUsage, "bad.yaml:1: mode"},
		{[]string{"explain", bad, "/checkout"}, exitUsage, "bad.yaml:1: mode"},
		{[]string{"proxy", "--upstream=127.0.0.1:9"}, exitUsage, "--upstream goes without a configuration"},
		{[]string{"proxy", "--mode=enforce"}, exitUsage, "--mode goes with --upstream"},
	} {
		r := start(t, row.args...)
		if status := r.status(t); status != row.status || !strings.Contains(r.stdout.String()+r.stderr.String(), row.want) {
			t.Errorf("%v: status %d, want %d with %q:\n%s%s", row.args, status, row.status, row.want, r.stdout.String(), r.stderr.String())
		}
	}
	// In Kubernetes the containers in the namespace of a Service with the name spillway have this variable.
	t.Setenv("SPILLWAY_PORT", "tcp://10.0.0.1:8000")
	r := start(t, "drill", "--target=http://127.0.0.1:1/", "--duration=1ms")
	if status := r.status(t); status != exitBroken {
		t.Errorf("with the variables of a Service: status %d: %s", status, r.stderr.String())
	}
	t.Setenv("SPILLWAY_HTTP2", "maybe")
	for _, command := range []string{"explain", "drill"} {
		r := start(t, command)
		if status := r.status(t); status != exitUsage || !strings.Contains(r.stderr.String(), "maybe") {
			t.Errorf("%s: status %d: %s", command, status, r.stderr.String())
		}
	}
}

// TestCompletion asks as a shell does.
func TestCompletion(t *testing.T) {
	t.Setenv("COMP_LINE", "spillway dri")
	r := start(t)
	if status := r.status(t); status != exitOK || strings.TrimSpace(r.stdout.String()) != "drill" {
		t.Errorf("status %d, %q%s", status, r.stdout.String(), r.stderr.String())
	}
	for _, shell := range []string{"bash", "zsh", "fish"} {
		t.Setenv("COMP_LINE", "")
		r := start(t, "completion", shell)
		if status := r.status(t); status != exitOK || !strings.Contains(r.stdout.String(), "spillway") {
			t.Errorf("%s: status %d, %q%s", shell, status, r.stdout.String(), r.stderr.String())
		}
	}
}

func TestInterrupt(t *testing.T) {
	for _, row := range []struct {
		signal syscall.Signal
		when   string // the line of progress after which the signal comes
		runs   int    // that have begun by then
	}{
		{syscall.SIGTERM, "measuring", 0},
		{syscall.SIGINT, "[1/2] without   2 s", 1},
	} {
		t.Run(row.signal.String(), func(t *testing.T) {
			t.Parallel()
			file := filepath.Join(t.TempDir(), "drill.json")
			r := start(t, "drill", "--verbose", "--calm=1s", "--overload=3", "--json-file="+file)
			r.waitFor(t, row.when)
			// To the whole group, as a terminal does it.
			if err := syscall.Kill(-r.cmd.Process.Pid, row.signal); err != nil {
				t.Fatal(err)
			}
			if status := r.status(t); status != 130 {
				t.Errorf("exit status %d, want 130: %s", status, r.stderr.String())
			}
			r.leavesNobody(t, time.Second)
			if !strings.HasPrefix(r.stdout.String(), "INTERRUPTED") {
				t.Errorf("the table does not say that it is partial:\n%s", r.stdout.String())
			}
			result := read(t, file)
			if begun := result.Without != nil; !result.Interrupted || result.With != nil || begun != (row.runs > 0) {
				t.Errorf("not what was measured: interrupted %v, without %v, with %v", result.Interrupted, result.Without, result.With)
			}
			if row.runs > 0 && (result.CapacityRPS == 0 || result.Without.Offered == 0 || result.Without.Seconds < 2) {
				t.Errorf("what was measured is lost: %+v", result)
			}
		})
	}
}

// A child is not left behind even where the parent has no time to stop it.
func TestKill(t *testing.T) {
	if testing.Short() {
		t.Skip("needs some seconds")
	}
	t.Parallel()
	r := start(t, "drill", "--verbose", "--calm=500ms", "--overload=20")
	r.waitFor(t, "[1/2] without   2 s") // the backend has a pile of work
	if err := r.cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	if status := r.status(t); status != -1 {
		t.Errorf("exit status %d, want a death by signal", status)
	}
	r.leavesNobody(t, time.Minute)
}
