//go:build unix

package main

import (
	"bytes"
	"cmp"
	"context"
	"flag"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"
)

// incidentsDoc is the table that TestIncidents writes with -update.
const incidentsDoc = "../../docs/incidents.md"

// A record is what operators see of an incident.
type record struct {
	level, banner, text string
	top, do             string
	alerts              []string
	line                string
	picture             bool
}

// recorded returns what operators see at the moment.
func (s *stage) recorded(name string, st *shown) *record {
	r := &record{level: st.Verdict.Level, banner: st.Verdict.Headline, text: st.Verdict.Text}
	if len(st.Reasons) > 0 {
		top := st.Reasons[0]
		r.top, r.do = fmt.Sprintf("%s: %s", strings.TrimPrefix(top.Policy+" "+top.Reason, top.Reason+" "), top.Words), top.Do
	}
	first, at := s.ask("metrics"), time.Now()
	r.picture = s.picture(name)
	pause := time.NewTicker(2 * time.Second)
	defer pause.Stop()
	const ofMachine = "SpillwayProcessStarved" // it may be busy with other things than the incident
	for range 10 {
		<-pause.C
		next, now := s.ask("metrics"), time.Now()
		r.alerts = s.alerts(first, next, now.Sub(at))
		if r.banner == starved || !slices.Contains(r.alerts, ofMachine) {
			break
		}
		first, at = next, now
	}
	return r
}

var sampleLine = regexp.MustCompile(`^(spillway_\w+(?:\{[^}]*\})?) (\S+)$`)

// series returns the metrics of the program in a text of Prometheus.
func series(text string) map[string]float64 {
	all := make(map[string]float64)
	for line := range strings.SplitSeq(text, "\n") {
		if m := sampleLine.FindStringSubmatch(line); m != nil {
			if v, err := strconv.ParseFloat(m[2], 64); err == nil {
				all[m[1]] = v
			}
		}
	}
	return all
}

// raises fails the test if Prometheus would not raise an alert while the incident lasts.
func (s *stage) raises(alert string) {
	s.t.Helper()
	if _, err := exec.LookPath("promtool"); err != nil {
		return // CI has it
	}
	var names []string
	looks := time.NewTicker(time.Second)
	defer looks.Stop()
	for end := time.Now().Add(patience); time.Now().Before(end); {
		first, at := s.ask("metrics"), time.Now()
		<-looks.C
		if names = s.alerts(first, s.ask("metrics"), time.Since(at)); slices.Contains(names, alert) {
			s.t.Log("alerts: ", strings.Join(names, ", "))
			return
		}
	}
	s.t.Errorf("the alerts are %q, want %s", names, alert)
}

// alerts returns which alerts there would be if the metrics went on for two hours as they did
// between two reads.
func (s *stage) alerts(first, second string, passed time.Duration) (names []string) {
	dir := s.t.TempDir()
	rules, err := filepath.Abs("../../deploy/alerts.yaml")
	if err != nil {
		s.t.Fatal(err)
	}
	text, err := os.ReadFile(rules)
	if err != nil {
		s.t.Fatal(err)
	}
	var b strings.Builder
	fmt.Fprintf(&b, "rule_files: [%q]\nevaluation_interval: 1m\ntests:\n  - interval: 1m\n", rules)
	b.WriteString(inputSeries(first, second, passed, func(name string) bool { return !strings.Contains(name, "_bucket{") })) // no alert reads them
	b.WriteString("    alert_rule_test:\n")
	for _, m := range regexp.MustCompile(`- alert: (\w+)`).FindAllStringSubmatch(string(text), -1) {
		fmt.Fprintf(&b, "      - {alertname: %s, eval_time: 119m, exp_alerts: []}\n", m[1])
	}
	file := filepath.Join(dir, "test.yaml")
	if err := os.WriteFile(file, []byte(b.String()), 0o600); err != nil {
		s.t.Fatal(err)
	}
	out, err := exec.Command("promtool", "test", "rules", file).CombinedOutput()
	for _, m := range regexp.MustCompile(`alertname: (\w+), time`).FindAllStringSubmatch(string(out), -1) {
		names = append(names, m[1])
	}
	if err != nil && len(names) == 0 {
		s.t.Fatalf("%v: %s", err, out)
	}
	return names
}

// pictures is where TestIncidents writes pictures of each dashboard as an operator sees it.
var pictures = flag.String("pictures", "", "directory for pictures of the incidents at three widths, light and dark")

// operatorWindows are a telephone, a tablet and a desktop. All of a page is in the picture of a telephone.
var operatorWindows = []string{"390,2200", "768,1400", "1440,1400"}

// pictures writes pictures of the dashboard at all widths, in both themes.
func (s *stage) pictures(name string) {
	front := s.front()
	for _, window := range operatorWindows {
		width, _, _ := strings.Cut(window, ",")
		for _, theme := range []string{"light", "dark"} {
			if !s.shoot(front.URL+"/?theme="+theme, window, filepath.Join(*pictures, name+"-"+width+"-"+theme+".png")) {
				s.t.Fatal("there is no browser")
			}
		}
	}
}

// picture writes a picture of the dashboard for the documentation, if there is a browser.
func (s *stage) picture(name string) bool {
	return s.shoot(s.front().URL, "1100,560", "../../docs/incidents/"+name+".png")
}

// front serves the dashboard to a browser, which cannot read a Unix socket.
func (s *stage) front() *httptest.Server {
	p := httputil.NewSingleHostReverseProxy(&url.URL{Scheme: "http", Host: "localhost"})
	p.FlushInterval = -1
	p.Transport = &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, "unix", s.socket)
	}}
	front := httptest.NewServer(waited(p))
	s.t.Cleanup(func() {
		front.CloseClientConnections()
		front.Close()
	})
	return front
}

// shoot writes a picture of a page, if there is a browser.
func (s *stage) shoot(url, window, file string) bool {
	s.t.Helper()
	browser, err := exec.LookPath("chromium")
	if err != nil {
		return false
	}
	if file, err = filepath.Abs(file); err != nil {
		s.t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	c := exec.CommandContext(ctx, browser, "--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", "--no-first-run",
		"--user-data-dir="+s.t.TempDir(), "--window-size="+window, "--timeout=20000", "--screenshot="+file, url)
	out, err := c.CombinedOutput()
	if err != nil {
		s.t.Errorf("%v: %s", err, out)
	}
	return err == nil
}

// waited serves the dashboard of p with an image that is there when the page has its figures. The
// browser takes its picture when all images are there.
func waited(p *httputil.ReverseProxy) http.Handler {
	streams := make(chan struct{})
	var once sync.Once
	p.ModifyResponse = func(r *http.Response) error {
		if r.Request.URL.Path != "/" {
			return nil
		}
		page, err := io.ReadAll(r.Body)
		page = append(page, `<img hidden alt="" src="/waited.svg">`...)
		r.Body, r.ContentLength = io.NopCloser(bytes.NewReader(page)), int64(len(page))
		r.Header.Set("Content-Length", strconv.Itoa(len(page)))
		return err
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/api/v1/stream":
			once.Do(func() { close(streams) })
		case "/waited.svg":
			select {
			case <-streams:
				<-time.After(2 * time.Second) // there are new figures each second
			case <-r.Context().Done():
			}
			return
		}
		p.ServeHTTP(w, r)
	})
}

const incidentsHead = `# Incidents

What operators see of each incident on the dashboard, in Prometheus and in the log. ` + "`go test -run TestIncidents ./cmd/spillway`" + ` produces
each with the program as it is; with ` + "`-update`" + ` it writes this page: the numbers and ports are of one run. The first reason is the first row of the
dashboard's list of rejected and lost requests. Alerts are those that Prometheus would raise if the metrics went on like this for two hours. The log has one line
` + "`incident began`" + ` with this kind and what the banner says, and one ` + "`incident ended`" + `.

`

// writeIncidents writes the page.
func writeIncidents(t *testing.T, all map[string]*record) {
	t.Helper()
	var b strings.Builder
	b.WriteString(incidentsHead + "| incident | banner |\n|---|---|\n")
	for _, x := range incidents {
		if r := all[x.name]; r != nil {
			fmt.Fprintf(&b, "| [%s](#%s) | %s |\n", x.title, x.name, r.banner)
		}
	}
	for _, x := range incidents {
		if r := all[x.name]; r != nil {
			fmt.Fprintf(&b, "\n## %s\n\n%s", x.name, r.lines())
			if r.picture {
				fmt.Fprintf(&b, "\n![%s](incidents/%s.png)\n", x.title, x.name)
			}
		}
	}
	if err := os.WriteFile(incidentsDoc, []byte(b.String()), 0o600); err != nil {
		t.Error(err)
	}
}

var (
	kindOf    = regexp.MustCompile(` kind=(\S+)`)
	adviceOf  = regexp.MustCompile(` do="((?:[^"\\]|\\.)*)"`)
	sectionOf = regexp.MustCompile(`runbook\.md(#\S+)`)
)

// lines returns what the page says of the incident. The advice is that of the log, or else that of the first reason.
func (r *record) lines() string {
	var b strings.Builder
	fmt.Fprintf(&b, "- Banner (%s): **%s** %s\n", r.level, r.banner, r.text)
	if r.top != "" {
		fmt.Fprintf(&b, "- First reason: %s.\n", r.top)
	}
	if do := cmp.Or(first(adviceOf, r.line), r.do); do != "" {
		fmt.Fprintf(&b, "- Do: %s\n", do)
	}
	fmt.Fprintf(&b, "- Alerts: %s\n", alertsOf(r))
	switch kind := first(kindOf, r.line); {
	case kind != "":
		fmt.Fprintf(&b, "- Log: `%s`, [runbook](runbook.md%s)\n", kind, first(sectionOf, r.line))
	case r.line != "":
		fmt.Fprintf(&b, "- Log: `%s`\n", r.line)
	}
	return b.String()
}

// first returns the first group of the first match in a text, or nothing.
func first(x *regexp.Regexp, text string) string {
	if m := x.FindStringSubmatch(text); m != nil {
		return m[1]
	}
	return ""
}

func alertsOf(r *record) string {
	if len(r.alerts) == 0 {
		return "none"
	}
	return strings.Join(r.alerts, ", ")
}

// TestIncidentsDoc: the page has all incidents, with their banners.
func TestIncidentsDoc(t *testing.T) {
	text, err := os.ReadFile(incidentsDoc)
	if err != nil {
		t.Fatal(err)
	}
	for _, x := range incidents {
		if _, section, ok := strings.Cut(string(text), "\n## "+x.name+"\n"); !ok || !strings.Contains(section, "**"+x.banner+"**") || !strings.Contains(section, x.alert) || !strings.Contains(string(text), "| ["+x.title+"](#"+x.name+") | "+x.banner+" |") {
			t.Errorf("%s: docs/incidents.md does not say %q, or not its alert: run go test -run TestIncidents . -update in cmd/spillway", x.name, x.banner)
		}
	}
}
