//go:build unix

package admin

import (
	"bytes"
	"context"
	_ "embed"
	"encoding/json"
	"io"
	"maps"
	"math"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/seed90641741/spillway"
	"github.com/seed90641741/spillway/internal/admin/human"
	"github.com/seed90641741/spillway/internal/thorough"
	"github.com/seed90641741/spillway/quota"
)

//go:embed testdata/probe.js
var probeJS string

// What testdata/probe.js found.
type probed struct {
	Errors    []string // uncaught errors, console errors, violations of the policy
	Requests  []string // URLs that the page fetched
	Width     int      // of the window
	Tiles     map[string]struct{ Value, Text, Name string }
	Verdict   []string // level, headline, text
	Do        string   // of the verdict
	Override  string
	Charts    []string                  // that show, and have something on them
	Labels    int                       // of these, those with a text for who cannot see them
	Painted   map[string]map[string]int // pixels of the stacked charts, by chart and class
	Readouts  map[string]string         // above the charts
	Reasons   []string
	Notes     []string // below the reasons
	Clusters  []string
	Customers []string
	Tuned     string
	RawRows   int      // of the table behind the charts
	Overflow  int      // how far the page reaches beyond the window
	Cut       []string // texts that are not seen as a whole
	Beside    int      // how far the reasons reach beyond their part of the window
	Paper     []string // the background before and after the theme button
}

func findBrowser(t *testing.T) string {
	t.Helper()
	if testing.Short() {
		t.Skip("starts a browser")
	}
	if name := os.Getenv("CHROME"); name != "" { // which is asked for
		path, err := exec.LookPath(name)
		if err != nil {
			t.Fatal(err)
		}
		return path
	}
	for _, name := range []string{"chromium", "chromium-browser", "google-chrome"} {
		if path, err := exec.LookPath(name); err == nil {
			return path
		}
	}
	t.Skip("no browser: install chromium, or name one in CHROME")
	return ""
}

// narrow, with one of the widths after it, is a page in which that of a scene is that wide: windows of a browser are wider than
// a telephone.
const narrow = "narrow"

var widths = []string{"390", "768", "1440"}

// probing serves the page of a scene with the probe in front of its script, which
// change may change, and takes what the probe finds.
func probing(h http.Handler, change func(script string) string, found chan<- []byte) http.Handler {
	edit := func(w http.ResponseWriter, r *http.Request, f func(string) string) {
		rec := httptest.NewRecorder()
		h.ServeHTTP(rec, r)
		maps.Copy(w.Header(), rec.Header())
		w.Header().Del("Content-Length")
		if r.URL.RawQuery == narrow { // which is in a frame
			h := w.Header()
			h.Set("Content-Security-Policy", strings.Replace(h.Get("Content-Security-Policy"), "frame-ancestors 'none'", "frame-ancestors 'self'", 1))
		}
		_, _ = io.WriteString(w, f(rec.Body.String()))
	}
	mux := http.NewServeMux()
	mux.Handle("/", h)
	mux.HandleFunc("GET /{$}", func(w http.ResponseWriter, r *http.Request) {
		edit(w, r, func(s string) string {
			return strings.Replace(s, "<title>", `<script src="probe.js"></script><title>`, 1)
		})
	})
	mux.HandleFunc("GET /dashboard.js", func(w http.ResponseWriter, r *http.Request) { edit(w, r, change) })
	for _, width := range widths {
		mux.HandleFunc("GET /"+narrow+width, asset("text/html", `<!doctype html><iframe src="/?`+narrow+`" width="`+width+`" height="800" style="border: 0"></iframe>`))
	}
	mux.HandleFunc("GET /probe.js", asset("text/javascript", probeJS))
	mux.HandleFunc("POST /probed", func(_ http.ResponseWriter, r *http.Request) {
		text, _ := io.ReadAll(r.Body)
		found <- text
	})
	return mux
}

// browse opens the page of a scene in a browser and returns what the probe found.
func browse(t *testing.T, s *scene, path string, change func(string) string, flags ...string) (p probed) {
	t.Helper()
	browser, found := findBrowser(t), make(chan []byte, 1)
	server := httptest.NewServer(probing(s.Handler(), change, found))
	defer server.Close()
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	cmd := exec.CommandContext(ctx, browser, append([]string{
		"--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking",
		"--disable-component-update", "--disable-sync", "--user-data-dir=" + t.TempDir(), "--window-size=1360,1000",
		"--enable-logging=stderr", "--host-resolver-rules=MAP * ~NOTFOUND , EXCLUDE 127.0.0.1", "--remote-debugging-port=0",
	}, append(flags, server.URL+"/"+path)...)...)
	var stderr bytes.Buffer
	cmd.Stderr, cmd.WaitDelay = &stderr, time.Second
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // it has many children
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() {
		_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL)
		_ = cmd.Wait()
		server.CloseClientConnections()
	}()
	select {
	case text := <-found:
		if err := json.Unmarshal(text, &p); err != nil {
			t.Fatal(err)
		}
	case <-ctx.Done():
		_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL)
		_ = cmd.Wait()
		t.Fatalf("the probe found nothing\n%s", stderr.Bytes())
	}
	for _, url := range p.Requests {
		if !strings.HasPrefix(url, server.URL+"/") {
			t.Errorf("the page asked for %s", url)
		}
	}
	if len(p.Errors) > 0 || p.Overflow > 0 || len(p.Requests) < 4 {
		t.Errorf("errors %q, %d pixels too wide, %d requests", p.Errors, p.Overflow, len(p.Requests))
	}
	return p
}

func asIs(script string) string { return script }

// overloaded is a scene of 100 s, the last 70 of them overloaded.
func overloaded(mode spillway.Mode) *scene {
	s := newScene(mode)
	s.seconds(30)
	s.overload()
	s.seconds(70)
	return s
}

func TestBrowser(t *testing.T) {
	s := overloaded(spillway.ModeEnforce)
	st := s.sampler.state.Load()
	p := browse(t, s, "", asIs)
	for _, tile := range st.Tiles {
		got, want := p.Tiles[tile.ID], ""
		if tile.Value != nil {
			want = strconv.FormatFloat(*tile.Value, 'g', -1, 64)
		}
		if v, err := strconv.ParseFloat(got.Value, 64); err != nil && want != "" || err == nil && v != *tile.Value {
			t.Errorf("the tile %s has %s, want %s", tile.ID, got.Value, want)
		}
		if got.Text != tile.Text || got.Name != tile.Name {
			t.Errorf("the tile %s is %+v, want %+v", tile.ID, got, tile)
		}
	}
	if len(p.Tiles) != len(st.Tiles) {
		t.Errorf("%d tiles, want %d", len(p.Tiles), len(st.Tiles))
	}
	if want := []string{st.Verdict.Level, st.Verdict.Headline, st.Verdict.Text}; !slices.Equal(p.Verdict, want) || p.Verdict[0] != "warn" {
		t.Errorf("the sentence is %q, want %q", p.Verdict, want)
	}
	if want := []string{"load", "rejected", "latency", "in-flight"}; !slices.Equal(p.Charts, want) || p.Labels != len(want) {
		t.Errorf("drawn are %q, %d of them in words, want %q", p.Charts, p.Labels, want)
	}
	if wrong := mispainted(p.Painted["rejected"], s.sampler.rows, func(f *Figures) Classes { return f.Rejected }); wrong != "" {
		t.Error(wrong)
	}
	if p.RawRows != len(s.sampler.rows) {
		t.Errorf("the data has %d rows, want %d", p.RawRows, len(s.sampler.rows))
	}
	if len(p.Reasons) != len(st.Reasons) || !strings.HasPrefix(p.Reasons[0], "higher class (shed)") || !strings.Contains(p.Reasons[0], "runbook") {
		t.Errorf("reasons %q", p.Reasons)
	}
	if len(p.Clusters) != 3 || !strings.HasPrefix(p.Clusters[0], "web2 of 2 up") {
		t.Errorf("clusters %q", p.Clusters)
	}
	if p.Override != "" || p.Tuned != "" {
		t.Errorf("override %q, tuned %q, want none", p.Override, p.Tuned)
	}
	if want := []string{"rgb(244, 246, 248)", "rgb(12, 16, 19)"}; !slices.Equal(p.Paper, want) {
		t.Errorf("the page is %q before and after the theme button, want %q", p.Paper, want)
	}
}

// mispainted returns what is wrong if the share of the pixels of some class is not the
// one that it has of the requests; empty if nothing is.
func mispainted(pixels map[string]int, rows []Figures, of func(*Figures) Classes) string {
	layers := [...]string{"sheddable", "sheddable-plus", "critical", "critical-plus"}
	var requests Classes
	for i := range rows {
		for class, v := range of(&rows[i]) {
			requests[class] += v
		}
	}
	painted := 0
	for _, layer := range layers {
		painted += pixels[layer]
	}
	if painted < 2000 {
		return "hardly anything is painted: " + strconv.Itoa(painted) + " pixels"
	}
	for class, layer := range layers {
		got, want := float64(pixels[layer])/float64(painted), requests[class]/requests.sum()
		if math.Abs(got-want) > 0.06 {
			return layer + " has " + human.Percent(got) + " of the pixels, want " + human.Percent(want)
		}
	}
	return ""
}

// TestBrowserSeesWrongStacking holds that what TestBrowser looks at would tell if the
// layers were painted in the wrong order, or added up from the wrong end.
func TestBrowserSeesWrongStacking(t *testing.T) {
	for name, mutation := range map[string][2]string{
		"painted from the bottom up": {"null : v + c[i])))).reverse()];", "null : v + c[i]))))];"},
		"added up from the top":      {"const columns = chart.lines.map((l)", "const columns = [...chart.lines].reverse().map((l)"},
	} {
		t.Run(name, func(t *testing.T) {
			s := overloaded(spillway.ModeEnforce)
			p := browse(t, s, "", func(script string) string {
				if strings.Count(script, mutation[0]) != 1 {
					t.Errorf("the script has %q %d times", mutation[0], strings.Count(script, mutation[0]))
				}
				return strings.Replace(script, mutation[0], mutation[1], 1)
			})
			if wrong := mispainted(p.Painted["rejected"], s.sampler.rows, func(f *Figures) Classes { return f.Rejected }); wrong == "" {
				t.Error("it looks right")
			}
		})
	}
}

// TestBrowserNarrow looks at an unprotected overload on a telephone in the dark.
func TestBrowserNarrow(t *testing.T) {
	s := overloaded(spillway.ModeObserve)
	s.proxy.levels.Clusters[0].Throttle[0] = 0.5
	s.proxy.levels.Override = &Override{Field: "mode", Value: "observe", File: "enforce", Since: noon}
	s.proxy.levels.Clusters[0].Endpoints[1].Down = "unhealthy: a long reason that nobody has thought of before"
	s.proxy.levels.Gates = append(s.proxy.levels.Gates, Gate{Listener: "inside", Cluster: "web", Limit: 16, Waiting: 3})
	s.proxy.levels.Tuned = []Tuned{{Name: "web", Value: 64, Moves: []Move{{Time: noon, From: 128, To: 64, Why: "latency has risen"}}}}
	s.second()
	p := browse(t, s, narrow+"390", asIs, "--blink-settings=preferredColorScheme=0")
	if p.Width != 390 {
		t.Errorf("the window is %d wide", p.Width)
	}
	if p.Beside > 0 || len(p.Reasons) == 0 {
		t.Errorf("%d pixels of the reasons %q are beside the screen", p.Beside, p.Reasons)
	}
	if want := []string{"load", "would", "latency", "in-flight", "throttle"}; !slices.Equal(p.Charts, want) {
		t.Errorf("drawn are %q, want %q", p.Charts, want)
	}
	if wrong := mispainted(p.Painted["would"], s.sampler.rows, func(f *Figures) Classes { return f.Would }); wrong != "" {
		t.Error(wrong)
	}
	if want := []string{"rgb(12, 16, 19)", "rgb(244, 246, 248)"}; !slices.Equal(p.Paper, want) {
		t.Errorf("the page is %q before and after the theme button, want %q", p.Paper, want)
	}
	if p.Verdict[0] != "bad" || !strings.Contains(p.Override, "mode is observe") || !strings.Contains(p.Tuned, "latency has risen") || !strings.Contains(p.Clusters[4], "unhealthy") || !strings.Contains(p.Clusters[2], "from inside") {
		t.Errorf("%q, %q, %q, %q", p.Verdict, p.Override, p.Tuned, p.Clusters)
	}
}

// A number that is cut is a false number. A long name pushes none off the screen.
func TestBrowserCutsNothing(t *testing.T) {
	s := overloaded(spillway.ModeEnforce)
	s.proxy.levels.Clusters[0].MaxInFlight, s.proxy.levels.Clusters[0].InFlight = 1e6, 123456
	s.proxy.levels.Clusters[0].Name = "recommendations-for-returning-customers"
	s.proxy.levels.Gates[0].Cluster = s.proxy.levels.Clusters[0].Name
	s.proxy.levels.Clusters[0].Endpoints[1].Down = "unhealthy: a long reason that nobody has thought of before"
	s.proxy.levels.Tuned = []Tuned{{Name: "recommendations-for-returning-customers", Value: 64, Moves: []Move{{Time: noon, From: 128, To: 64, Why: "latency has risen"}}}}
	s.proxy.levels.Mongo = []Count{{Listener: "mongo-of-the-recommendations", Name: "connections.current", Value: 1234567}}
	e := rejected("shed", s.mode, errHigherClass)
	e.Time, e.Call = s.now, spillway.Call{Key: "web /recommendations/for/returning/customers/by/their/last/purchase", Customer: strings.Repeat("customer-of-a-very-long-name-", 4)}
	for range 12345 {
		s.say(e)
	}
	s.second()
	for _, width := range widths {
		for name, scheme := range map[string]string{"dark": "0", "light": "1"} {
			if !thorough.Enabled() && width+name != "390dark" {
				continue // each starts a browser
			}
			p := browse(t, s, narrow+width, asIs, "--window-size=1600,1000", "--blink-settings=preferredColorScheme="+scheme)
			if strconv.Itoa(p.Width) != width || len(p.Cut) > 0 {
				t.Errorf("%s, %s pixels: the page is %d wide, and cuts %q", name, width, p.Width, p.Cut)
			}
		}
	}
}

// TestBrowserService looks at the page of "spillway quota".
func TestBrowserService(t *testing.T) {
	s := newService(30, quota.ClassStats{RejectedTotal: 200}, quota.ClassStats{}, quota.ClassStats{AdmittedTotal: 998765, RejectedTotal: 2})
	p := browse(t, s, narrow+"390", asIs)
	if want := []string{"asked", "rejected"}; !slices.Equal(p.Charts, want) {
		t.Errorf("drawn are %q, want %q", p.Charts, want)
	}
	if len(p.Cut) > 0 || p.Overflow > 0 || len(p.Errors) > 0 || len(p.Tiles) != 6 || p.Tiles["goodput"].Text != "998,765/s" {
		t.Errorf("cut %q, %d pixels too wide, errors %q, tiles %v", p.Cut, p.Overflow, p.Errors, p.Tiles)
	}
	if all := strings.Join(p.Customers, "|"); len(p.Customers) != 3 || !strings.Contains(all, "mailyes1,000/s1,200/s998/s202/s99.8 %SHEDDABLE in part") || !strings.Contains(all, "(all unlisted customers together)") {
		t.Errorf("the customers are %q", p.Customers)
	}
}

// What was a minute ago takes no rows: one line has it.
func TestBrowserAfterwards(t *testing.T) {
	s := overloaded(spillway.ModeEnforce)
	s.offered, s.admits = [...]int{1, 1, 1, 1}, [...]float64{1, 1, 1, 1}
	s.seconds(70)
	p := browse(t, s, "", asIs)
	if len(p.Reasons) != 0 || len(p.Notes) != 2 || p.Notes[0] != "Nothing in the last minute." || !strings.HasPrefix(p.Notes[1], "Earlier, since the start: higher class (shed) rejected ") {
		t.Errorf("%q, %q", p.Reasons, p.Notes)
	}
}

// TestBrowserBare looks at a proxy that has nothing but a cluster without endpoints, and
// a listener for MongoDB.
func TestBrowserBare(t *testing.T) {
	s := newScene(spillway.ModeObserve)
	s.proxy.levels = Levels{
		Clusters: []Cluster{{Name: "web"}},
		Gates:    []Gate{{Listener: "mongo", Cluster: "mongo", Admitted: 3, InFlight: 2, Limit: 12, Adaptive: true, Least: 4, Most: 64}},
		Mongo:    []Count{{Listener: "mongo", Name: "connections.current", Value: 3}},
	}
	s.sampler.with.Collector.ByEnd("mongo")
	for range 3 {
		s.say(spillway.Event{Policy: "retry", Outcome: spillway.OutcomeServed, Latency: time.Millisecond, Call: spillway.Call{Key: "mongo"}})
	}
	s.sampler.tick(noon.Add(time.Second))
	s.proxy.levels.Gates[0].Limit = 16
	s.sampler.tick(noon.Add(2 * time.Second))
	p := browse(t, s, "", asIs)
	if len(p.Clusters) != 2 || !strings.Contains(p.Clusters[0], "0 of 0 up") || !strings.Contains(p.Clusters[1], "2 / 16") || p.Verdict[1] != "All is well." ||
		p.Tiles["goodput"].Text != "1.5/s" || !strings.HasPrefix(p.Readouts["limit-8"], "minimum 4 maximum 64 limit 16") {
		t.Errorf("%+v", p)
	}
}

// TestBrowserEmpty shows a proxy that has received no requests.
func TestBrowserEmpty(t *testing.T) {
	p := browse(t, newScene(spillway.ModeObserve), "", asIs)
	if p.Verdict[0] != "idle" || !strings.Contains(p.Verdict[2], "127.0.0.1:8000") || len(p.Reasons) != 0 || p.Tiles["p99"].Text != "–" || len(p.Clusters) != 3 {
		t.Errorf("%+v", p)
	}
}

// TestBrowserLibrary looks at the page of a program that uses the library.
func TestBrowserLibrary(t *testing.T) {
	p := newProgram(spillway.ModeEnforce)
	p.overload(60)
	st := p.State()
	for _, width := range widths {
		for name, scheme := range map[string]string{"dark": "0", "light": "1"} {
			if !thorough.Enabled() && width+name != "390dark" && width+name != "1440light" {
				continue // each starts a browser
			}
			got := browse(t, &p.scene, narrow+width, asIs, "--window-size=1600,1000", "--blink-settings=preferredColorScheme="+scheme)
			if strconv.Itoa(got.Width) != width || len(got.Cut) > 0 {
				t.Errorf("%s, %s pixels: the page is %d wide, and cuts %q", name, width, got.Width, got.Cut)
			}
			if want := []string{st.Verdict.Level, st.Verdict.Headline, st.Verdict.Text}; !slices.Equal(got.Verdict, want) || got.Do != st.Verdict.Do || got.Do == "" {
				t.Errorf("the sentence is %q %q, want %q", got.Verdict, got.Do, want)
			}
			all := strings.Join(got.Clusters, "|")
			for _, part := range []string{"shopall requests22247", "inventorythis key1212", "inventory.shop.svc.cluster.local:8080123456 / 1000000", "60 of 100"} {
				if !strings.Contains(all, part) {
					t.Errorf("%s, %s pixels: the servers and backends are %q, without %q", name, width, all, part)
				}
			}
			if want := []string{"load", "rejected", "latency", "in-flight", "retries", "throttle"}; !slices.Equal(got.Charts, want) {
				t.Errorf("drawn are %q, want %q", got.Charts, want)
			}
		}
	}
}
