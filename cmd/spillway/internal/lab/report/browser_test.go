package report

import (
	"bytes"
	_ "embed"
	"encoding/json"
	"html"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/seed90641741/spillway/cmd/spillway/internal/lab/drill"
	"github.com/seed90641741/spillway/internal/admin/page"
)

//go:embed testdata/probe.js
var probeJS string

// What testdata/probe.js found.
type probed struct {
	Errors   []string                  // uncaught errors, console errors, violations of the policy
	Requests []string                  // URLs that the page fetched
	Charts   []string                  // the plots that have a canvas with something on it
	Labels   int                       // plots with a text alternative
	Still    string                    // the readout of the goodput with protection
	Hover    string                    // the same under the pointer
	Synced   string                    // that without protection, meanwhile
	Overflow int                       // how far the page reaches beyond the window
	RawRows  int                       // of the table behind the charts
	Paper    []string                  // the background before and after the theme button
	Painted  map[string]map[string]int // pixels of the stacked charts, by run and layer
}

func findBrowser(t *testing.T) string {
	t.Helper()
	if testing.Short() {
		t.Skip("starts a browser")
	}
	for _, name := range []string{os.Getenv("CHROME"), "chromium", "chromium-browser", "google-chrome"} {
		if path, err := exec.LookPath(name); err == nil {
			return path
		}
	}
	t.Skip("no browser: install chromium, or name one in CHROME")
	return ""
}

// browse opens the page for r in a browser, with the probe in front of the page's
// scripts, and returns what the probe found.
func browse(t *testing.T, r *drill.Result, window string) probed {
	t.Helper()
	browser, dir := findBrowser(t), t.TempDir()
	text := strings.Replace(render(t, r), "; script-src", "; script-src"+page.Hash(probeJS), 1)
	text = strings.Replace(text, "<title>", "<script>"+probeJS+"</script><title>", 1)
	file := filepath.Join(dir, "report.html")
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), browser, "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic",
		"--no-first-run", "--disable-background-networking", "--disable-component-update", "--disable-sync",
		"--user-data-dir="+filepath.Join(dir, "profile"), "--window-size="+window, "--enable-logging=stderr",
		"--virtual-time-budget=3000", "--dump-dom", "file://"+file+"?theme=light")
	var stderr bytes.Buffer
	cmd.Stderr, cmd.WaitDelay = &stderr, time.Second
	dom, err := cmd.Output()
	if err != nil {
		t.Fatalf("%s: %v\n%s", browser, err, stderr.Bytes())
	}
	if said := regexp.MustCompile(`.*CONSOLE.*`).FindAllString(stderr.String(), -1); said != nil {
		t.Errorf("the page said on the console: %q", said)
	}
	m := regexp.MustCompile(`data-probed="([^"]*)"`).FindSubmatch(dom)
	if m == nil {
		t.Fatalf("the probe found nothing\n%s", stderr.Bytes())
	}
	var p probed
	if err := json.Unmarshal([]byte(html.UnescapeString(string(m[1]))), &p); err != nil {
		t.Fatal(err)
	}
	if len(p.Errors)+len(p.Requests) > 0 || p.Overflow > 0 {
		t.Errorf("errors %q, requests %q, %d pixels too wide; want none", p.Errors, p.Requests, p.Overflow)
	}
	return p
}

func TestBrowser(t *testing.T) {
	r := fixture()
	p := browse(t, r, "1360,1000")
	if len(p.Charts) != 13 || p.Labels != 13 { // 7 pairs, but for the budget that one caller has not
		t.Errorf("drawn are %q, %d of them in words, want 13", p.Charts, p.Labels)
	}
	if want := "mean in the overload: offered 6,086/s (up to 6,730/s) goodput 560/s capacity 612/s"; p.Still != want {
		t.Errorf("the readout is %q, want %q", p.Still, want)
	}
	for _, hover := range []string{p.Hover, p.Synced} {
		if !strings.HasPrefix(hover, "at 9.") {
			t.Errorf("under the pointer a readout is %q, want one at 9 s", hover)
		}
	}
	if p.RawRows != len(r.With.Series.T)+1 {
		t.Errorf("the data has %d rows, want %d", p.RawRows, len(r.With.Series.T)+1)
	}
	if len(p.Paper) != 2 || p.Paper[0] != "rgb(255, 255, 255)" || p.Paper[1] != "rgb(16, 20, 24)" {
		t.Errorf("the page is %q before and after the theme button", p.Paper)
	}
	checkPainted(t, "without", p.Painted["without"], r.Without.Series)
	checkPainted(t, "with", p.Painted["with"], r.With.Series)
}

// The layers of the stacked chart, from the bottom up.
var layers = []string{"goodput", "rejected-throttle", "rejected-inflight", "rejected-backend", "late", "timed-out", "failed", "dropped"}

// checkPainted holds that each layer of the stacked chart has the share of the
// painted pixels that it has of the calls.
func checkPainted(t *testing.T, run string, pixels map[string]int, s drill.Series) {
	t.Helper()
	calls := [][]int{s.Goodput, s.RejectedThrottle, s.RejectedInFlight, s.RejectedByBackend, s.Late, s.TimedOut, s.Failed, s.DroppedSends}
	painted, offered := 0, total(s.Offered)
	for _, layer := range layers {
		painted += pixels[layer]
	}
	if painted < 5000 {
		t.Fatalf("%s: %d pixels are painted, want some thousands", run, painted)
	}
	for i, layer := range layers {
		got, want := float64(pixels[layer])/float64(painted), float64(total(calls[i]))/float64(offered)
		if math.Abs(got-want) > 0.06 {
			t.Errorf("%s: %s has %.3f of the pixels, want %.3f", run, layer, got, want)
		}
	}
}

func total(values []int) int {
	sum := 0
	for _, v := range values {
		sum += v
	}
	return sum
}

// TestBrowserNamesTheOutage: the charts of a retry storm call the outage by the name that the text of the page has for it.
func TestBrowserNamesTheOutage(t *testing.T) {
	r := fixture()
	r.Settings.Scenario, r.Settings.Overload, r.Settings.Phases[1].Load = drill.ScenarioStorm, 0.8, 0.8
	if p := browse(t, r, "1360,1000"); !strings.HasPrefix(p.Still, "mean in the outage: ") {
		t.Errorf("the readout is %q, want that of the outage", p.Still)
	}
}

// TestBrowserNarrow holds that a page on a telephone has all charts and does not
// scroll sideways, and that what an interrupted drill leaves is no error.
func TestBrowserNarrow(t *testing.T) {
	r := hostile()
	r.Interrupted, r.With = true, nil
	p := browse(t, r, "390,800")
	browse(t, withPage(t, fixture()), "390,800")
	if len(p.Charts) != 6 {
		t.Errorf("drawn are %q, want the 6 of one run", p.Charts)
	}
}
