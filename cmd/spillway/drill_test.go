//go:build unix

package main

import (
	"bytes"
	"encoding/json"
	"html"
	"io"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/seed90641741/spillway/cmd/spillway/internal/lab/drill"
	"github.com/seed90641741/spillway/internal/thorough"
)

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
	hasPage(t, result, page)
	for _, run := range []*drill.Run{result.Without, result.With} {
		accountsForAll(t, run)
		classesAddUp(t, run)
	}
	agree(t, result, r.stdout.String(), page)
}

// hasPage checks that the result and the report have what the page of the protected server said.
func hasPage(t *testing.T, r *drill.Result, file string) {
	t.Helper()
	p := r.With.Page
	if r.Without.Page != nil || p == nil || p.State == nil || p.State.Program != "library" {
		t.Fatalf("the page of the protected server is %+v, that of the other one %+v", p, r.Without.Page)
	}
	if c := p.State.Counts; c.Offered == 0 || c.Ended["served"][3] == 0 {
		t.Errorf("the page has no requests: %+v", c)
	}
	text, err := os.ReadFile(file)
	if err != nil || !strings.Contains(html.UnescapeString(string(text)), "<strong>"+p.State.Verdict.Headline+"</strong>") {
		t.Errorf("the report does not say %q (%v)", p.State.Verdict.Headline, err)
	}
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
	} else if taken := result.With.Taken; taken != nil && *taken > 0.2 {
		t.Logf("no judgement: other programs took %.2f of the backend's processor", *taken)
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
