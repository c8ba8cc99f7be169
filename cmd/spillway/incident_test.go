//go:build unix

package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"
)

// patience is how long a test waits for what must come: far longer than it takes on a busy machine.
const patience = time.Minute

// starved is what a dashboard says whose process lacks the processor.
const starved = "This process lacks processor time."

// An incident is something that goes wrong at a proxy, and what its dashboard must say of it.
type incident struct {
	name, title string
	banner      string // the headline
	alert       string // one that is raised
	line        string // what a line of the log has; empty: the log cannot be written
	stage       func(t *testing.T) *stage
}

// A stage is a proxy, what is around it, and the load on it.
type stage struct {
	t       *testing.T
	file    string // the configuration
	socket  string // for operators
	stderr  io.Writer
	within  func(time.Time) time.Time // the proxy runs in this process, with this clock
	process *os.Process
	log     watched
	dir     string

	client   *http.Client
	address  string
	stop     chan struct{}
	all      sync.WaitGroup
	sent     atomic.Uint64
	answered atomic.Uint64
	served   atomic.Uint64
}

// newStage returns a stage whose proxy is not started yet. rest is the configuration but for the
// listener.
func newStage(t *testing.T, rest string) *stage {
	t.Helper()
	dir, err := os.MkdirTemp("", "spill") //nolint:usetesting // the path of a socket must be short
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	s := &stage{t: t, dir: dir, file: filepath.Join(dir, "proxy.yaml"), socket: filepath.Join(dir, "admin"), stop: make(chan struct{})}
	s.log.news = make(chan struct{}, 1)
	s.stderr = &s.log
	s.client = &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 64}}
	s.write(rest)
	t.Cleanup(s.end)
	return s
}

// write writes the configuration.
func (s *stage) write(rest string) {
	if !strings.HasPrefix(rest, "mode: ") {
		rest = "mode: enforce\n" + rest
	}
	if !strings.Contains(rest, "listeners:") {
		rest += "\nlisteners: [{name: public, address: '127.0.0.1:0'}]\n"
	}
	if err := os.WriteFile(s.file, []byte(rest), 0o600); err != nil {
		s.t.Fatal(err)
	}
}

// up starts the proxy and waits until it serves.
func (s *stage) up() *stage {
	s.t.Helper()
	admin := "unix:" + s.socket
	if s.within != nil {
		ctx, stop := context.WithCancel(context.Background())
		done := make(chan error, 1)
		go func() {
			c := proxyCommand{configFile: configFile{Config: s.file}, Admin: admin, wall: s.within}
			done <- c.Run(ctx, streams{io.Discard, s.stderr})
		}()
		s.t.Cleanup(func() {
			stop()
			if err := <-done; err != nil {
				s.t.Error(err)
			}
		})
	} else {
		c := exec.Command(program, "proxy", "--config", s.file, "--admin", admin)
		c.Stderr = s.stderr
		c.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
		if err := c.Start(); err != nil {
			s.t.Fatal(err)
		}
		s.process = c.Process
		s.t.Cleanup(func() {
			_ = syscall.Kill(-c.Process.Pid, syscall.SIGKILL) // it may have ended
			_ = c.Wait()                                      // it was killed
		})
	}
	s.await("an address", func(st *shown) bool {
		if len(st.Listeners) == 0 {
			return false
		}
		s.address = st.Listeners[0].Address
		return s.address != ""
	})
	return s
}

// end ends the load and waits for it.
func (s *stage) end() {
	select {
	case <-s.stop:
	default:
		close(s.stop)
	}
	s.all.Wait()
}

// every calls f so many times per second until the load ends, each in another goroutine.
func (s *stage) every(second int, f func(n int)) *stage {
	s.all.Go(func() {
		ticks := time.NewTicker(time.Second / time.Duration(second))
		defer ticks.Stop()
		for n := 0; ; n++ {
			select {
			case <-s.stop:
				return
			case <-ticks.C:
				s.all.Go(func() { f(n) })
			}
		}
	})
	return s
}

// load sends so many requests per second. more may change each.
func (s *stage) load(second int, more ...func(n int, r *http.Request)) *stage {
	return s.every(second, func(n int) { s.send(n, context.Background(), more...) })
}

// send sends a request and returns the status of its answer, 0 if there was none.
func (s *stage) send(n int, ctx context.Context, more ...func(n int, r *http.Request)) int {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+s.address+"/cart/"+strconv.Itoa(n%10), http.NoBody)
	if err != nil {
		s.t.Error(err)
		return 0
	}
	for _, m := range more {
		m(n, r)
	}
	s.sent.Add(1)
	resp, err := s.client.Do(r)
	if err != nil {
		return 0
	}
	defer resp.Body.Close()
	_, err = io.Copy(io.Discard, resp.Body)
	s.answered.Add(1)
	if err == nil && resp.StatusCode == http.StatusOK {
		s.served.Add(1)
	}
	return resp.StatusCode
}

// shown is what the dashboard shows, as far as incidents need it.
type shown struct {
	Verdict   struct{ Level, Headline, Text string }
	Listeners []struct{ Name, Address string }
	Notices   []struct{ Headline, Text string }
	Mongo     []struct {
		Name  string
		Value float64
	}
	Reasons []struct {
		Policy, Outcome, Reason, Words, Do string
		Minute                             []float64
		Total                              []float64
	}
}

// ask returns what the proxy answers operators; empty if it does not yet.
func (s *stage) ask(path string) string {
	c := http.Client{Timeout: 10 * time.Second, Transport: &http.Transport{
		DisableKeepAlives: true,
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			return new(net.Dialer).DialContext(ctx, "unix", s.socket)
		},
	}}
	resp, err := c.Get("http://localhost/" + path)
	if err != nil {
		return ""
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil || resp.StatusCode != http.StatusOK {
		return ""
	}
	return string(text)
}

// await waits until the dashboard shows something.
func (s *stage) await(what string, until func(*shown) bool) *shown {
	s.t.Helper()
	looks := time.NewTicker(100 * time.Millisecond)
	defer looks.Stop()
	end := time.Now().Add(patience)
	var last shown
	for time.Now().Before(end) {
		last = shown{}
		if json.Unmarshal([]byte(s.ask("api/v1/state")), &last) == nil && until(&last) {
			return &last
		}
		<-looks.C
	}
	if last.Verdict.Headline == starved { // which is true, and hides the rest
		s.t.Skip("this machine is too busy: ", last.Verdict.Text)
	}
	s.t.Fatalf("the dashboard never showed %s; in the end: %s %q: %s\n%s", what, last.Verdict.Level, last.Verdict.Headline, last.Verdict.Text, s.log.String())
	return nil
}

var accountLine = regexp.MustCompile(`(?m)^(\w[\w ]*?)\s{2,}(\d+)`)

// balance ends the load and fails the test unless each request that came is in one account, and
// what the accounts and the metrics say agrees with what clients saw.
func (s *stage) balance() {
	s.t.Helper()
	s.end()
	looks := time.NewTicker(100 * time.Millisecond)
	defer looks.Stop()
	got := make(map[string]uint64)
	for end := time.Now().Add(patience); time.Now().Before(end); <-looks.C {
		clear(got)
		first, _, _ := strings.Cut(s.ask("debug/accounts"), "\n\n")
		for _, m := range accountLine.FindAllStringSubmatch(first, -1) {
			got[m[1]], _ = strconv.ParseUint(m[2], 10, 64)
		}
		if got["offered"] >= s.answered.Load() && got["offered"] > 0 && got["in progress"] == 0 {
			break
		}
	}
	offered, inProgress, served := got["offered"], got["in progress"], got["served"]
	delete(got, "offered")
	delete(got, "in progress")
	sum := uint64(0)
	for _, n := range got {
		sum += n
	}
	if sum != offered || inProgress != 0 || offered > s.sent.Load() || offered < s.answered.Load() || served < s.served.Load() {
		s.t.Errorf("%d offered, %d in accounts %v, %d in progress; clients sent %d, were answered %d, served %d",
			offered, sum, got, inProgress, s.sent.Load(), s.answered.Load(), s.served.Load())
	}
	if n := s.metric(`spillway_requests_total{`); n != float64(sum) {
		s.t.Errorf("spillway_requests_total is %g, the accounts have %d", n, sum)
	}
}

// metric returns the sum of the metrics whose lines begin so.
func (s *stage) metric(prefix string) (sum float64) {
	for line := range strings.SplitSeq(s.ask("metrics"), "\n") {
		if strings.HasPrefix(line, prefix) {
			v, err := strconv.ParseFloat(line[strings.LastIndexByte(line, ' ')+1:], 64)
			if err != nil {
				s.t.Error(err)
			}
			sum += v
		}
	}
	return sum
}

// logged waits for a line of the log and returns it, without its time.
func (s *stage) logged(has string) string {
	s.t.Helper()
	looks := time.NewTicker(100 * time.Millisecond)
	defer looks.Stop()
	for end := time.Now().Add(patience); has != "" && time.Now().Before(end); <-looks.C {
		for line := range strings.Lines(s.log.String()) {
			if strings.Contains(line, has) {
				_, line, _ = strings.Cut(strings.TrimSpace(line), " ")
				return line
			}
		}
	}
	if has != "" {
		s.t.Errorf("the log has no line with %q:\n%s", has, s.log.String())
	}
	return ""
}

// TestIncidents: for each incident, the dashboard names its cause, the log has a line of it, and no
// request is lost from the accounts.
func TestIncidents(t *testing.T) {
	if testing.Short() {
		t.Skip("starts 18 proxies")
	}
	var mu sync.Mutex
	seen := make(map[string]*record)
	var all sync.WaitGroup
	begin := make(chan struct{}, 5) // they wait for most of their time: more at once than there are processors
	for _, x := range incidents {
		all.Go(func() {
			begin <- struct{}{}
			defer func() { <-begin }()
			t.Run(x.name, func(t *testing.T) {
				r := x.play(t)
				mu.Lock()
				defer mu.Unlock()
				seen[x.name] = r
			})
		})
	}
	all.Wait()
	if *update && !t.Failed() {
		writeIncidents(t, seen)
	}
}

// play produces the incident, waits for the banner, and checks the accounts. It returns what
// operators see, where that is to be written.
func (x *incident) play(t *testing.T) (r *record) {
	t.Helper()
	s := x.stage(t)
	st := s.await(fmt.Sprintf("%q", x.banner), func(st *shown) bool { return st.Verdict.Headline == x.banner })
	if st.Verdict.Level != "bad" && st.Verdict.Level != "warn" {
		t.Errorf("the level is %s", st.Verdict.Level)
	}
	s.raises(x.alert)
	line := s.logged(x.line)
	if *pictures != "" {
		s.pictures(x.name)
	}
	if *update {
		r = s.recorded(x.name, st)
		r.line = line
	}
	s.balance()
	return r
}
