//go:build unix

package main

import (
	"io"
	"net/http"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
)

// counts are answers to requests of one class.
type counts struct{ served, rejected atomic.Int64 }

// ratio is the share of the requests that was rejected.
func (c *counts) ratio() float64 {
	served, rejected := c.served.Load(), c.rejected.Load()
	return float64(rejected) / float64(max(1, served+rejected))
}

// overloads sends the server twice what it can serve, 600 reports and 200 checkouts per second, until a window of two
// seconds shows that it rejects reports before checkouts: it needs a second or two to find its limit, and the machine has
// other work. Without classes the ratios of both are the same in each window.
func (n *newcomer) overloads() {
	n.t.Helper()
	var reports, checkouts counts
	for range 15 {
		reports, checkouts = counts{}, counts{}
		var sending sync.WaitGroup
		sending.Go(func() { n.sends("/report", 600, 300, &reports) })
		sending.Go(func() { n.sends("/checkout", 200, 100, &checkouts) })
		sending.Wait()
		if reports.rejected.Load() > 200 && checkouts.served.Load() > 200 && 4*checkouts.ratio() < reports.ratio() {
			n.t.Logf("rejected: %.1f %% of the reports, %.1f %% of the checkouts", 100*reports.ratio(), 100*checkouts.ratio())
			return
		}
	}
	n.t.Errorf("the server serves %d checkouts and rejects %d, and serves %d reports and rejects %d: want reports rejected first",
		checkouts.served.Load(), checkouts.rejected.Load(), reports.served.Load(), reports.rejected.Load())
}

// sends sends requests for two seconds, at most so many at a time.
func (n *newcomer) sends(path string, perSecond, most int, c *counts) {
	transport := &http.Transport{MaxIdleConnsPerHost: most}
	defer transport.CloseIdleConnections()
	client := &http.Client{Transport: transport, Timeout: 5 * time.Second}
	slots := make(chan struct{}, most)
	ticker := time.NewTicker(time.Second / time.Duration(perSecond))
	defer ticker.Stop()
	var sending sync.WaitGroup
	defer sending.Wait()
	for range 2 * perSecond {
		<-ticker.C
		slots <- struct{}{}
		sending.Go(func() {
			defer func() { <-slots }()
			switch n.status(client, path) {
			case http.StatusOK:
				c.served.Add(1)
			case http.StatusServiceUnavailable:
				c.rejected.Add(1)
			}
		})
	}
}

// status returns the status of an answer, or 0 without one.
func (n *newcomer) status(client *http.Client, path string) int {
	resp, err := client.Get("http://" + n.address + path)
	if err != nil {
		return 0
	}
	defer resp.Body.Close()
	_, _ = io.Copy(io.Discard, resp.Body)
	return resp.StatusCode
}

// drains ends the server as a deployment does. It is not ready any more, and serves until it accepts no connections.
func (n *newcomer) drains() {
	n.t.Helper()
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}, Timeout: 5 * time.Second}
	if got := n.status(client, "/readyz"); got != http.StatusOK {
		n.t.Errorf("the server is not ready: %d", got)
	}
	_ = syscall.Kill(-n.server.Process.Pid, syscall.SIGTERM)
	drained, served := 0, 0
	ticker := time.NewTicker(50 * time.Millisecond)
	defer ticker.Stop()
	for range 400 { // 20 s
		<-ticker.C
		if !n.listens() {
			break
		}
		if n.status(client, "/readyz") == http.StatusServiceUnavailable {
			drained++
		}
		if n.status(client, "/checkout") == http.StatusOK {
			served++
		}
	}
	if n.listens() || drained < 10 || served < 10 {
		n.t.Errorf("after SIGTERM the server was unready %d times, and served %d checkouts; it still listens: %t", drained, served, n.listens())
	}
}
