//go:build unix

package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"html"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/seed90641741/spillway/cmd/spillway/internal/lab/drill"
	"github.com/seed90641741/spillway/internal/thorough"
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
		r := start(t, "completion", "--code", shell)
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

func read(t *testing.T, file string) *drill.Result {
	t.Helper()
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return decode(t, data)
}

func decode(t *testing.T, data []byte) *drill.Result {
	t.Helper()
	var r drill.Result
	d := json.NewDecoder(bytes.NewReader(data))
	d.DisallowUnknownFields()
	if err := d.Decode(&r); err != nil {
		t.Fatal(err)
	}
	return &r
}

// A short drill on a real backend. The bands are wide, and hold only where no other
// tests are running.
func TestDrill(t *testing.T) {
	if testing.Short() {
		t.Skip("needs some seconds")
	}
	dir := t.TempDir()
	jsonFile, page := filepath.Join(dir, "drill.json"), filepath.Join(dir, "drill.html")
	r := start(t, "drill", "--output=full", "--overload=8", "--calm=500ms", "--step=2s", "--recovery=1500ms", "--json-file="+jsonFile, "--report="+page)
	status := r.status(t)
	r.leavesNobody(t, 0)
	result := read(t, jsonFile)
	if want := statusOf(result); status != want {
		t.Fatalf("exit status %d, want %d: %s", status, want, r.stderr.String())
	}
	t.Log("\n" + r.stdout.String())

	// The budget pays for one retry per ten calls, and for what it has saved before: 100 at most.
	if x := result.With; float64(x.Attempts)*(1-1.1/x.AttemptsPerCall) > 100 {
		t.Errorf("%.2f attempts per call with Spillway, %d in all", x.AttemptsPerCall, x.Attempts)
	}
	if busy := result.Noise(); busy != "" {
		t.Log("no judgement:", busy)
	} else if hasFailed(result, "retries") || result.With.GoodputRatio < 0.7 || result.Without.GoodputRatio > 0.3 || result.Without.AttemptsPerCall < 2 {
		t.Errorf("goodput is %.2f of capacity with Spillway and %.2f without, with %.2f and %.2f attempts per call",
			result.With.GoodputRatio, result.Without.GoodputRatio, result.With.AttemptsPerCall, result.Without.AttemptsPerCall)
	}
	if before, after := result.CapacityBeforeRPS, result.CapacityAfterRPS; before <= 0 || after <= 0 || result.CapacityRPS != (before+after)/2 {
		t.Errorf("capacity %v, of %v and %v", result.CapacityRPS, before, after)
	}
	if got := result.With.GoodputRPS / result.CapacityRPS; got != result.With.GoodputRatio {
		t.Errorf("goodput is %v of capacity, not %v", got, result.With.GoodputRatio)
	}
	if result.With.Offered != result.Without.Offered {
		t.Errorf("offered %d with Spillway and %d without", result.With.Offered, result.Without.Offered)
	}
	for _, run := range []*drill.Run{result.Without, result.With} {
		accountsForAll(t, run)
		classesAddUp(t, run)
	}
	agree(t, result, r.stdout.String(), page)
}

// statusOf returns the exit status of a drill that was not interrupted: that of a failed check only if the machine
// was not too busy to measure.
func statusOf(r *drill.Result) int {
	switch {
	case r.Passed():
		return 0
	case r.Noise() != "":
		return 3
	}
	return 1
}

// A drill that cannot fail shows nothing: without the throttle, or without the shedder, a check fails.
func TestDrillWithoutAPolicy(t *testing.T) {
	if !thorough.Enabled() {
		t.Skip("needs some seconds, make test-thorough has them")
	}
	for policy, check := range map[string]string{"throttle": "sent", "shed": "goodput"} {
		file := filepath.Join(t.TempDir(), "drill.json")
		r := start(t, "drill", "--off="+policy, "--calm=500ms", "--step=2s", "--recovery=1s", "--json-file="+file)
		status := r.status(t)
		result := read(t, file)
		broken := hasFailed(result, check)
		if !broken || status != statusOf(result) {
			t.Errorf("without %s the exit status is %d, and the checks are %+v", policy, status, result.Checks)
		}
	}
}

// hasFailed reports whether a check of a drill has failed.
func hasFailed(r *drill.Result, check string) bool {
	return slices.ContainsFunc(r.Checks, func(c drill.Check) bool { return c.Name == check && !c.Pass })
}

func TestDrillStatus(t *testing.T) {
	failed := []drill.Check{{Name: "goodput"}}
	for _, row := range []struct {
		name   string
		result drill.Result
		want   int
	}{
		{"passed", drill.Result{Checks: []drill.Check{{Pass: true}}}, exitOK},
		{"failed", drill.Result{Checks: failed}, exitBroken},
		{"failed on a busy machine", drill.Result{Checks: failed, Inconclusive: "something lacked a CPU"}, exitEnvironment},
		{"interrupted", drill.Result{Interrupted: true}, exitInterrupted},
	} {
		if got := fail(io.Discard, verdictOf(&row.result)); got != row.want {
			t.Errorf("%s: exit status %d, want %d", row.name, got, row.want)
		}
	}
}

// A short drill with a proxy, and one that is killed while the proxy runs.
func TestDrillByProxy(t *testing.T) {
	if !thorough.Enabled() {
		t.Skip("needs half a minute, and a quiet machine to judge: -tags thorough")
	}
	dir := t.TempDir()
	jsonFile, page := filepath.Join(dir, "drill.json"), filepath.Join(dir, "drill.html")
	args := []string{"drill", "--verbose", "--output=full", "--proxy", "--overload=5", "--calm=500ms", "--step=2s", "--recovery=1s"}
	r := start(t, append(args, "--json-file="+jsonFile, "--report="+page)...)
	status := r.status(t)
	r.leavesNobody(t, time.Second)
	result := read(t, jsonFile)
	if want := statusOf(result); status != want {
		t.Fatalf("exit status %d, want %d: %s", status, want, r.stderr.String())
	}
	t.Log("\n" + r.stdout.String())
	if busy := result.Noise(); busy != "" {
		t.Log("no judgement:", busy)
	} else if late := result.With.LatenessP99MS; late > 100 {
		t.Logf("no judgement: the generator lacked a CPU, and sent %.0f ms late", late)
	} else if hasFailed(result, "retries") || result.With.GoodputRatio < 0.7 || result.With.GoodputRatio < 3*result.Without.GoodputRatio {
		t.Errorf("goodput is %.2f of capacity with the proxy and %.2f without", result.With.GoodputRatio, result.Without.GoodputRatio)
	} else if result.With.RejectedByBackend == 0 {
		t.Error("the proxy rejected nothing")
	}
	for _, run := range []*drill.Run{result.Without, result.With} {
		accountsForAll(t, run)
		classesAddUp(t, run)
	}
	agree(t, result, r.stdout.String(), page)

	r = start(t, args...)
	r.waitFor(t, "[2/2] with      2 s")
	if err := r.cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = r.status(t)
	r.leavesNobody(t, time.Minute)
}

// accountsForAll fails t unless each call ended in exactly one way.
func accountsForAll(t *testing.T, run *drill.Run) {
	t.Helper()
	for _, p := range run.Phases {
		ends := p.Goodput + p.Late + p.RejectedLocal + p.RejectedByBackend + p.TimedOut + p.Failed + p.DroppedSends + p.Unfinished
		if ends != p.Offered {
			t.Errorf("%s: %d calls offered, %d ended", p.Name, p.Offered, ends)
		}
	}
}

// classesAddUp fails t unless each call of the step was of one class.
func classesAddUp(t *testing.T, run *drill.Run) {
	t.Helper()
	var offered, good, rejected int
	for i := range run.Classes {
		c := &run.Classes[i]
		offered, good, rejected = offered+c.Offered, good+c.Goodput, rejected+c.Rejected()
	}
	if len(run.Classes) != 4 || offered != run.Offered || good != run.Goodput || rejected != run.Rejected() {
		t.Errorf("%d classes of %d calls, %d good, %d rejected; the run has %d, %d, %d",
			len(run.Classes), offered, good, rejected, run.Offered, run.Goodput, run.Rejected())
	}
}

// agree fails t unless the table and the page say what the JSON file says.
func agree(t *testing.T, result *drill.Result, table, page string) {
	t.Helper()
	var again bytes.Buffer
	if err := result.WriteTable(&again); err != nil {
		t.Fatal(err)
	}
	if !strings.HasPrefix(table, again.String()) {
		t.Errorf("the table differs from one made of the JSON file:\n%s\nand\n%s", table, again.String())
	}
	data, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := bytes.Cut(data, []byte(`id="data">`))
	embedded, _, _ := bytes.Cut(rest, []byte("</script>"))
	if !reflect.DeepEqual(decode(t, embedded), result) {
		t.Error("the numbers in the page differ from those in the JSON file")
	}
	text := html.UnescapeString(string(data))
	for _, check := range result.Checks {
		if !strings.Contains(text, check.Text) || !strings.Contains(table, check.Text) {
			t.Errorf("the table or the page does not say: %s", check.Text)
		}
	}
	for _, line := range result.Headline {
		if !strings.Contains(text, line) || !strings.Contains(table, line) {
			t.Errorf("the table or the page does not say: %s", line)
		}
	}
}
