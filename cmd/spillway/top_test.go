//go:build unix

package main

import (
	"context"
	"encoding/json"
	"fmt"
	"math"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/seed90641741/spillway"
	"github.com/seed90641741/spillway/cmd/spillway/internal/gateway/top"
	"github.com/seed90641741/spillway/ingress"
	"github.com/seed90641741/spillway/ratelimit"
	"github.com/seed90641741/spillway/spilladmin"
)

// drilled is a proxy in front of a service with too little capacity for all of them.
func drilled(t *testing.T, upstream string) *stage {
	s := newStage(t, "listeners: [{name: main, address: '127.0.0.1:0', boundary: internal, peers: ['127.0.0.0/8']}]\n"+
		"clusters: [{name: web, endpoints: ['"+upstream+"']}]\nroutes: [{timeout: 1s, customer: {header: X-Customer}}]\n")
	return s.up()
}

// A tally counts what clients have seen.
type tally struct{ sent, served, rejected, lost, noisy atomic.Int64 }

// call sends a request, half of them of one customer, and counts its answer.
func (c *tally) call(s *stage, n int) {
	class, customer := []string{"SHEDDABLE", "CRITICAL"}[n%2], "noisy"
	if n%4 > 1 {
		customer = fmt.Sprintf("quiet-%d", n%40)
	}
	c.sent.Add(1)
	switch status := s.send(n, context.Background(), func(_ int, r *http.Request) {
		r.Header.Set("X-Request-Criticality", class)
		r.Header.Set("X-Customer", customer)
	}); {
	case status == http.StatusOK:
		c.served.Add(1)
	case status == http.StatusServiceUnavailable || status == http.StatusTooManyRequests:
		c.rejected.Add(1)
		if customer == "noisy" {
			c.noisy.Add(1)
		}
	default:
		c.lost.Add(1)
	}
}

// pages runs "spillway top" as JSON until stop, and returns how to wait for more pages.
func pages(t *testing.T, args ...string) (await func(more int) *top.Page, stop func() int) {
	out := &watched{news: make(chan struct{}, 1)}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan int, 1)
	go func() {
		var errors watched
		errors.news = make(chan struct{}, 1)
		done <- run(ctx, append([]string{"top", "--output=json"}, args...), out, &errors)
	}()
	await = func(more int) *top.Page {
		t.Helper()
		late := time.After(patience)
		for want := strings.Count(out.String(), "\n") + more; ; {
			if lines := strings.Split(strings.TrimSpace(out.String()), "\n"); strings.Count(out.String(), "\n") >= want {
				p := new(top.Page)
				if err := json.Unmarshal([]byte(lines[len(lines)-1]), p); err != nil {
					t.Fatal(err)
				}
				return p
			}
			select {
			case <-out.news:
			case <-late:
				t.Fatalf("no more pages after\n%s", out.String())
			}
		}
	}
	return await, func() int {
		cancel()
		return <-done
	}
}

// TestTop overloads a service through eight proxies, and compares the sums of "spillway top" with what clients have seen.
func TestTop(t *testing.T) {
	t.Parallel()
	proxies := 8
	if testing.Short() {
		proxies = 2
	}
	slots := make(chan struct{}, 2) // of 20 ms: 100 requests per second
	upstream := serve(t, func(http.ResponseWriter, *http.Request) {
		slots <- struct{}{}
		defer func() { <-slots }()
		<-time.After(20 * time.Millisecond)
	})
	var all []*stage
	args := []string{"--window=10m", "--interval=500ms"}
	for range proxies {
		s := drilled(t, upstream)
		all, args = append(all, s), append(args, "unix:"+s.socket)
	}
	await, stop := pages(t, args...)
	if p := await(1); p.Asked != proxies || p.Measured != proxies || p.Offered != 0 || p.Verdict.Level != "idle" {
		t.Fatalf("before the load: %+v", p)
	}
	var seen tally
	for _, s := range all {
		s.every(240/proxies, func(n int) { seen.call(s, n) })
	}
	p := await(12) // 6 s
	t.Logf("in the overload: %+v", p.Verdict)
	if v := p.Verdict; v.Level != "warn" && v.Level != "bad" || v.Who == "" || v.Why == "" || v.Do == "" || !strings.Contains(v.Headline, "of ") && !strings.Contains(v.Headline, "All ") {
		t.Errorf("the verdict in the overload is %+v", v)
	}
	for _, s := range all {
		s.end()
	}
	p = await(6) // each process reads its counts once per second
	if status := stop(); status != exitOK {
		t.Errorf("status %d", status)
	}
	compare(t, p, &seen)
}

// compare compares a page with what clients have seen since the first sample.
func compare(t *testing.T, p *top.Page, seen *tally) {
	t.Helper()
	var offered, served, rejected, lost float64
	seconds := 0.0
	for i := range p.Processes {
		x := &p.Processes[i]
		offered += x.Offered * x.Seconds
		served += x.Served * x.Seconds
		rejected += x.Rejected.Sum() * x.Seconds
		lost += (x.Lost + x.Gone) * x.Seconds
		seconds = max(seconds, x.Seconds)
	}
	for _, row := range []struct {
		what string
		got  float64
		want *atomic.Int64
	}{{"offered", offered, &seen.sent}, {"served", served, &seen.served}, {"rejected", rejected, &seen.rejected}, {"lost", lost, &seen.lost}} {
		if math.Abs(row.got-float64(row.want.Load())) > 0.5 {
			t.Errorf("%s: %.1f, clients have seen %d", row.what, row.got, row.want.Load())
		}
	}
	if seen.rejected.Load() < 100 {
		t.Errorf("only %d of %d were rejected: no overload", seen.rejected.Load(), seen.sent.Load())
	}
	var reasons float64
	for _, r := range p.Reasons {
		if r.Outcome == "rejected" {
			reasons += r.Rate.Sum()
		}
	}
	if math.Abs(reasons-p.Rejected.Sum()) > 0.05*p.Rejected.Sum() {
		t.Errorf("reasons add up to %v/s of %v/s", reasons, p.Rejected.Sum())
	}
	if len(p.Customers.Names) == 0 {
		t.Fatal("no customers")
	}
	noisy, truth := p.Customers.Names[0], float64(seen.noisy.Load())
	if got := noisy.AtLeast * seconds; noisy.Name != "noisy" || noisy.Processes != len(p.Processes) || got < truth/2 || got > 1.05*truth {
		t.Errorf("%+v: at least %.0f, the truth is %.0f", noisy, got, truth)
	}
	t.Logf("%.0f offered, %.0f served, %.0f rejected, %.0f lost; noisy at least %.0f of %.0f", offered, served, rejected, lost, noisy.AtLeast*seconds, truth)
}

// TestTopOnce: without a terminal there is one page of text; the exit status says whether a process answered.
func TestTopOnce(t *testing.T) {
	t.Parallel()
	s := drilled(t, serve(t, fine))
	good, gone := "unix:"+s.socket, "unix:"+s.socket+"-gone"
	for _, row := range []struct {
		args   []string
		status int
		want   []string
	}{
		{[]string{good, gone}, exitOK, []string{"spillway top: 2 processes, 1 with figures", "no such file or directory. Start it, or correct the address."}},
		{[]string{gone}, exitBroken, []string{"No process answers.", "no such file"}},
		{[]string{"--output=json", "--count=2", good}, exitOK, []string{"}\n{"}},
		{[]string{"a b"}, exitUsage, []string{`"a b" is no address`}},
		{[]string{"--discover=http://a/b"}, exitUsage, []string{"--discover: ", "must be NAME[:PORT]"}},
		{[]string{"--token-file=/nowhere", good}, exitUsage, []string{"--token-file: ", "/nowhere"}},
		{[]string{"--ca-file=/nowhere", good}, exitUsage, []string{"--ca-file: ", "/nowhere"}},
		{[]string{"--window=1ms"}, exitUsage, []string{"--window is 1ms, must be 1s to 1h0m0s"}},
		{[]string{"--timeout=1h"}, exitUsage, []string{"--timeout is 1h"}},
		{[]string{"--interval=1ms"}, exitUsage, []string{"--interval is 1ms"}},
		{[]string{"--count=-1"}, exitUsage, []string{"--count is -1"}},
	} {
		args := append([]string{"top"}, row.args...)
		if row.status != exitUsage {
			args = append(args, "--interval=100ms")
		}
		status, stdout, stderr := spill(t, args...)
		for _, want := range row.want {
			if status != row.status || !strings.Contains(stdout+stderr, want) {
				t.Errorf("%v: status %d, want %d with %q:\n%s%s", row.args, status, row.status, want, stdout, stderr)
			}
		}
		if strings.Contains(stdout, "\x1b") {
			t.Errorf("%v: there are escapes in %q", row.args, stdout)
		}
	}
}

// TestTopOfTheLibrary shows a program that uses the library beside a proxy.
func TestTopOfTheLibrary(t *testing.T) {
	t.Parallel()
	page, err := spilladmin.New(spilladmin.Config{Name: "shop-1"})
	if err != nil {
		t.Fatal(err)
	}
	defer page.Close()
	gates, err := ingress.New(ingress.Config{Observer: page, RateLimit: ratelimit.Config{Rate: 10}, RateLimitMode: spillway.ModeEnforce})
	if err != nil {
		t.Fatal(err)
	}
	defer gates.Close()
	page.AddServer("shop", gates)
	mux := http.NewServeMux()
	mux.Handle("/spillway/", http.StripPrefix("/spillway", page))
	s := drilled(t, serve(t, fine))
	await, stop := pages(t, "--window=10m", "--interval=500ms", "unix:"+s.socket, "http://"+serve(t, mux.ServeHTTP)+"/spillway/")
	await(1)
	const n = 100
	rejected := 0
	for range n {
		slot, r := gates.Enter(t.Context(), spillway.Call{Key: "GET /cart", Customer: "acme"}, ratelimit.Caller{})
		if r.Rejected() {
			rejected++
			continue
		}
		slot.Done(spillway.OutcomeServed)
	}
	p := await(6)
	if status := stop(); status != exitOK || rejected == 0 {
		t.Errorf("status %d, %d of %d rejected", status, rejected, n)
	}
	x := &p.Processes[0]
	if x.Name != "shop-1" || x.Program != "library" || math.Abs(x.Offered*x.Seconds-n) > 0.5 || math.Abs(x.Rejected.Sum()*x.Seconds-float64(rejected)) > 0.5 {
		t.Errorf("%+v, want %d rejected of %d", x, rejected, n)
	}
	if c := p.Customers.Names; len(c) != 1 || c[0].Name != "acme" || math.Abs(c[0].AtLeast*x.Seconds-float64(rejected)) > 0.5 {
		t.Errorf("%+v", c)
	}
}
