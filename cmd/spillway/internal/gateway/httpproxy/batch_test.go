package httpproxy

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/seed90641741/spillway"
	"github.com/seed90641741/spillway/cmd/spillway/internal/gateway/config"
)

func TestManyConnectionsBecomeFew(t *testing.T) {
	if testing.Short() {
		t.Skip("opens thousands of connections")
	}
	quiet(t)
	address, connections := upstreamAt(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(w, r.Body)
	}))
	c := config.ForUpstream("127.0.0.1:0", address)
	c.Mode, c.Clusters[0].Batch = "enforce", new(config.Batch)
	p := start(t, c)
	const clients, rounds = 2000, 3
	var all sync.WaitGroup
	var mu sync.Mutex
	problems := make(map[string]int)
	var open sync.WaitGroup
	open.Add(clients)
	for i := range clients {
		all.Go(func() {
			conn, err := (&net.Dialer{}).DialContext(t.Context(), "tcp", p.Addr("").String())
			open.Done()
			if err == nil {
				defer conn.Close()
				open.Wait() // all connections are open at once
				err = talk(conn, i, rounds)
			}
			if err != nil {
				mu.Lock()
				problems[err.Error()]++
				mu.Unlock()
			}
		})
	}
	all.Wait()
	for problem, n := range problems {
		t.Errorf("%d times: %s", n, problem)
	}
	if most := connections.most.Load(); most > 16 {
		t.Errorf("%d connections to the upstream at once, want 16 at most", most)
	}
	t.Logf("%d client connections, %d at once to the upstream, %d in all", clients, connections.most.Load(), connections.all.Load())
	if s := p.Stats(time.Now()).Clusters["upstream"]; s.Queue.Waiting != 0 || s.Queue.Busy != 0 || s.Endpoints[0].Total != clients*rounds {
		t.Errorf("afterwards: %+v", s)
	}
}

// talk makes some requests on one connection.
func talk(c net.Conn, i, rounds int) error {
	buf := make([]byte, 4096)
	for k := range rounds {
		text := fmt.Sprintf("%d/%d", i, k)
		if _, err := fmt.Fprintf(c, "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: %d\r\n\r\n%s", len(text), text); err != nil {
			return err
		}
		got := ""
		for !strings.Contains(got, "\r\n\r\n"+text) {
			n, err := c.Read(buf)
			if err != nil {
				return fmt.Errorf("%w after %q", err, got)
			}
			if got += string(buf[:n]); !strings.HasPrefix(got, "HTTP/1.1 200") {
				return errors.New(got)
			}
		}
	}
	return nil
}

// TestEachTurnIsTold: there is one event for each request to a batch cluster, whatever its
// outcome in the queue.
func TestEachTurnIsTold(t *testing.T) {
	quiet(t)
	begun, end := make(chan struct{}, 1), make(chan struct{})
	address, _ := upstreamAt(t, http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
		begun <- struct{}{}
		<-end
	}))
	var mu sync.Mutex
	var told []string
	c := config.ForUpstream("127.0.0.1:0", address)
	c.Clusters[0].Protocol, c.Clusters[0].Batch = "http1", &config.Batch{Connections: 1, Queue: 1}
	c.Routes = []config.Route{{Path: "/short", Timeout: time.Millisecond}, {Path: "/", Customer: config.Customer{Header: "X-Team", Trusted: true}}}
	p, err := Start(t.Context(), c, Config{Observer: spillway.ObserverFunc(func(e spillway.Event) {
		if e.Policy == "batch" {
			mu.Lock()
			defer mu.Unlock()
			told = append(told, fmt.Sprint(e.Call.Key, " ", e.Call.Customer, " ", e.Outcome, " ", e.Rejected))
		}
	})})
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	url := "http://" + p.Addr("").String()
	x := client(t, false)
	var others sync.WaitGroup
	others.Go(func() { do(t, x, http.MethodGet, url, "", "X-Team", "first") })
	<-begun
	if resp, _ := do(t, x, http.MethodGet, url+"/short", ""); resp.StatusCode != http.StatusGatewayTimeout {
		t.Errorf("without time for its turn: %d", resp.StatusCode)
	}
	ctx, leave := context.WithCancel(t.Context())
	req := httptest.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	req.RequestURI = ""
	others.Go(func() {
		if resp, err := x.Do(req); err == nil {
			_ = resp.Body.Close()
		}
	})
	for p.Stats(time.Now()).Clusters["upstream"].Queue.Waiting == 0 {
		<-time.After(time.Millisecond)
	}
	if resp, _ := do(t, x, http.MethodGet, url, ""); resp.StatusCode != http.StatusServiceUnavailable {
		t.Errorf("without room: %d", resp.StatusCode)
	}
	leave()
	for p.Stats(time.Now()).Clusters["upstream"].Queue.Waiting > 0 {
		<-time.After(time.Millisecond)
	}
	close(end)
	others.Wait()
	if err := p.Drain(t.Context()); err != nil {
		t.Error(err)
	}
	want := "upstream first served false, upstream  timed out false, upstream  invalid true, upstream  abandoned false"
	if got := strings.Join(told, ", "); got != want {
		t.Errorf("told: %s\nwant: %s", got, want)
	}
}
