package httpproxy

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/seed90641741/spillway/cmd/spillway/internal/gateway/config"
)

func TestRequestsGoThrough(t *testing.T) {
	quiet(t)
	url, p := front(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		w.Header().Set("Trailer", "X-Sum")
		w.Header().Set("X-Seen", strings.Join([]string{r.Method, r.URL.RequestURI(), r.Host, r.Header.Get("X-A"), r.Header.Get("X-Forwarded-For")}, " "))
		w.WriteHeader(http.StatusTeapot)
		fmt.Fprintf(w, "got %s", body)
		w.Header().Set("X-Sum", "7")
	}), nil)
	for _, second := range []bool{false, true} {
		resp, body := do(t, client(t, second), http.MethodPost, url+"/a%2Fb?q=1;2", "hello", "X-A", "b", "X-Forwarded-For", "6.6.6.6")
		want := "POST /a%2Fb?q=1;2 " + strings.TrimPrefix(url, "http://") + " b 127.0.0.1"
		if resp.StatusCode != http.StatusTeapot || body != "got hello" || resp.Header.Get("X-Seen") != want || resp.Trailer.Get("X-Sum") != "7" {
			t.Errorf("HTTP/2 %v: %d %q, %q, %v", second, resp.StatusCode, body, resp.Header.Get("X-Seen"), resp.Trailer)
		}
	}
	if s := p.Stats(time.Now()); len(s.Gates) != 1 || s.Gates[0].Requests != 2 || s.Clusters["upstream"].Endpoints[0].Total != 2 {
		t.Errorf("stats: %+v", s)
	}
}

func TestWhatRequestsSayIsJudged(t *testing.T) {
	quiet(t)
	names := []string{"X-Request-Criticality", "X-Envoy-Attempt-Count", "Baggage", "Grpc-Previous-Rpc-Attempts", "X-Request-Level", "X-Request-Progress"}
	show := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		for _, name := range names {
			fmt.Fprintf(w, "%s;", r.Header.Get(name))
		}
	})
	send := []string{names[0], "CRITICAL_PLUS", names[1], "4", names[2], "a=1,criticality=CRITICAL_PLUS,b=2", names[3], "3", names[4], "7", names[5], "9"}
	for boundary, want := range map[string]string{"edge": ";;a=1,b=2;;[1-9][0-9]*;;", "internal": "CRITICAL;;criticality=CRITICAL,level=7,a=1,b=2;3;7;9;"} {
		url, _ := front(t, show, func(c *config.Config) {
			c.Listeners[0].Boundary, c.Listeners[0].Peers = boundary, []string{"127.0.0.0/8"}
		})
		if _, body := do(t, client(t, false), http.MethodGet, url, "", send...); !regexp.MustCompile("^" + want + "$").MatchString(body) {
			t.Errorf("%s: %q, want %q", boundary, body, want)
		}
		if _, body := do(t, client(t, false), http.MethodGet, url, "", names[0], "SHEDDABLE"); !strings.HasPrefix(body, "SHEDDABLE;") {
			t.Errorf("%s: a lower class became %q", boundary, body)
		}
	}
}

// TestWhoTheClientIs: at an edge, forwarding headers from clients are ignored. Inside, the
// scheme and the host name from the first hop are kept.
func TestWhoTheClientIs(t *testing.T) {
	quiet(t)
	for boundary, want := range map[string]string{"edge": "127.0.0.1 http a.test", "internal": "9.9.9.9, 127.0.0.1 https shop.example.com"} {
		url, _ := front(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			fmt.Fprint(w, r.Header.Get("X-Forwarded-For"), " ", r.Header.Get("X-Forwarded-Proto"), " ", r.Header.Get("X-Forwarded-Host"))
		}), func(c *config.Config) {
			c.Listeners[0].Boundary, c.Listeners[0].Peers = boundary, []string{"127.0.0.0/8"}
		})
		req := httptest.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
		req.RequestURI, req.Host = "", "a.test"
		req.Header = http.Header{"X-Forwarded-For": {"9.9.9.9"}, "X-Forwarded-Proto": {"https"}, "X-Forwarded-Host": {"shop.example.com"}}
		resp, err := client(t, false).Do(req)
		if err != nil {
			t.Fatal(err)
		}
		got, err := io.ReadAll(resp.Body)
		_ = resp.Body.Close()
		if string(got) != want || err != nil {
			t.Errorf("%s: %s, want %s, %v", boundary, got, want, err)
		}
	}
}

func TestDeadlinesAndDisconnects(t *testing.T) {
	quiet(t)
	left := make(chan string, 2)
	url, _ := front(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_ = http.NewResponseController(w).Flush()
		<-r.Context().Done()
		left <- r.Header.Get("X-Envoy-Expected-Rq-Timeout-Ms")
	}), func(c *config.Config) {
		c.Routes = []config.Route{{Path: "/slow", Timeout: 600 * time.Millisecond}, {}}
	})
	for _, second := range []bool{false, true} {
		ctx, cancel := context.WithCancel(t.Context())
		req, _ := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
		resp, err := client(t, second).Do(req)
		if err != nil {
			t.Fatal(err)
		}
		cancel()
		if got := <-left; got != "" {
			t.Errorf("a deadline where there was none: %q", got)
		}
		_ = resp.Body.Close()
	}
	req, _ := http.NewRequestWithContext(t.Context(), http.MethodGet, url+"/slow", nil)
	resp, err := client(t, false).Do(req)
	if err == nil {
		_, err = io.ReadAll(resp.Body)
		_ = resp.Body.Close()
	}
	if got := <-left; err == nil || len(got) < 1 || len(got) > 3 {
		t.Errorf("the route's timeout arrived as %q, and the answer ended with %v", got, err)
	}
}

func TestStreams(t *testing.T) {
	quiet(t)
	url, _ := front(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/grpc")
		control := http.NewResponseController(w)
		_ = control.EnableFullDuplex()
		_ = control.Flush()
		buf := make([]byte, 1)
		for {
			n, err := r.Body.Read(buf)
			if n > 0 {
				_, _ = w.Write(buf[:n])
				_ = control.Flush()
			}
			if err != nil {
				break
			}
		}
		w.Header().Set(http.TrailerPrefix+"Grpc-Status", "0")
	}), nil)
	out, in := io.Pipe()
	req, _ := http.NewRequestWithContext(t.Context(), http.MethodPost, url+"/pkg.Service/Talk", out)
	req.Header.Set("Content-Type", "application/grpc+proto")
	req.Header.Set("Te", "trailers")
	resp, err := client(t, true).Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	for _, c := range []byte("ping-pong") {
		if _, err := in.Write([]byte{c}); err != nil {
			t.Fatal(err)
		}
		got := make([]byte, 1)
		if _, err := io.ReadFull(resp.Body, got); err != nil || got[0] != c {
			t.Fatalf("sent %c, got %s, %v", c, got, err)
		}
	}
	_ = in.Close()
	if rest, err := io.ReadAll(resp.Body); err != nil || len(rest) != 0 || resp.Trailer.Get("Grpc-Status") != "0" {
		t.Errorf("the end: %q, %v, %v", rest, err, resp.Trailer)
	}
}

func TestWebsockets(t *testing.T) {
	quiet(t)
	url, p := front(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		c, rw, err := http.NewResponseController(w).Hijack()
		if err != nil {
			return
		}
		defer c.Close()
		fmt.Fprint(rw, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: echo\r\n\r\n")
		_ = rw.Flush()
		for {
			line, err := rw.ReadString('\n')
			if err != nil {
				return
			}
			_, _ = rw.WriteString(line)
			_ = rw.Flush()
		}
	}), func(c *config.Config) { c.Routes = []config.Route{{Upgrades: []string{"echo"}}} })
	c, err := (&net.Dialer{}).DialContext(t.Context(), "tcp", strings.TrimPrefix(url, "http://"))
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	fmt.Fprint(c, "GET / HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: echo\r\n\r\n")
	r := bufio.NewReader(c)
	resp, err := http.ReadResponse(r, nil)
	if err != nil || resp.StatusCode != http.StatusSwitchingProtocols {
		t.Fatalf("%v, %v", resp, err)
	}
	for range 3 {
		fmt.Fprint(c, "hello\n")
		if line, err := r.ReadString('\n'); line != "hello\n" || err != nil {
			t.Fatalf("%q, %v", line, err)
		}
	}
	if err := p.Close(); err != nil {
		t.Error(err)
	}
	if _, err := r.ReadByte(); err == nil {
		t.Error("the connection outlives the proxy")
	}
}

func TestOwnAnswers(t *testing.T) {
	quiet(t)
	url, _ := front(t, http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
	}), func(c *config.Config) {
		c.Routes = []config.Route{{Path: "/dead", Cluster: "dead"}, {Path: "/up", Cluster: "upstream"}}
		c.Clusters = append(c.Clusters, config.Cluster{Name: "dead", Endpoints: []string{"127.0.0.1:1"}})
		c.Listeners[0].MaxBodyBytes = 10
		c.Listeners[0].MaxHeaderBytes = 2048
	})
	for name, row := range map[string]struct {
		path, body, long string
		second           bool
		want             int
		grpc             string
	}{
		"a dead upstream":           {path: "/dead", want: http.StatusBadGateway},
		"a dead upstream, HTTP/2":   {path: "/dead", second: true, want: http.StatusBadGateway},
		"a dead upstream, gRPC":     {path: "/dead", second: true, want: http.StatusOK, grpc: "14"},
		"no route":                  {path: "/", want: http.StatusNotFound},
		"no route, gRPC":            {path: "/", second: true, want: http.StatusOK, grpc: "12"},
		"no way around":             {path: "/up/../other", want: http.StatusBadRequest},
		"a long body":               {path: "/up", body: "0123456789a", want: http.StatusRequestEntityTooLarge},
		"a body just short enough":  {path: "/up", body: "0123456789", want: http.StatusOK},
		"a long head":               {path: "/up", long: strings.Repeat("x", 20000), want: http.StatusRequestHeaderFieldsTooLarge},
		"a head just short enough":  {path: "/up", long: strings.Repeat("x", 1000), want: http.StatusOK},
		"a long body, HTTP/2, gRPC": {path: "/up", body: "0123456789a", second: true, want: http.StatusOK, grpc: "8"},
	} {
		t.Run(name, func(t *testing.T) {
			headers := []string{"X-Long", row.long}
			if row.grpc != "" {
				headers = append(headers, "Content-Type", "application/grpc")
			}
			resp, body := do(t, client(t, row.second), http.MethodPost, url+row.path, row.body, headers...)
			if resp.StatusCode != row.want || resp.Header.Get("Grpc-Status") != row.grpc {
				t.Errorf("%d, gRPC %q, %q", resp.StatusCode, resp.Header.Get("Grpc-Status"), body)
			}
		})
	}
}

// TestRejectedClientsComeBackLater: a rejection by a policy between gate and cluster also has
// the configured Retry-After, and says that a layer above must not retry.
func TestRejectedClientsComeBackLater(t *testing.T) {
	quiet(t)
	begun, end := make(chan struct{}, 1), make(chan struct{})
	url, _ := front(t, http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
		begun <- struct{}{}
		<-end
	}), func(c *config.Config) {
		c.Mode, c.Clusters[0].RetryAfter = "enforce", 30*time.Second
		c.Clusters[0].Inflight.MaxInFlight = 1
	})
	var first sync.WaitGroup
	first.Go(func() { do(t, client(t, false), http.MethodGet, url, "") })
	<-begun
	seconds, milliseconds := make(map[string]bool), make(map[int]bool)
	for i := range 20 {
		name, headers := "Retry-After-Ms", []string{"Accept", "*/*"}
		if i%2 == 1 {
			name, headers = "Grpc-Retry-Pushback-Ms", []string{"Content-Type", "application/grpc"}
		}
		resp, _ := do(t, client(t, i%2 == 1), http.MethodPost, url, "", headers...)
		if i%2 == 1 {
			if after := resp.Header.Get(name); after != "-1" {
				t.Errorf("%s: %s %q, want -1", resp.Status, name, after)
			}
			continue
		}
		if resp.Header.Get("X-Should-Retry") != "false" {
			t.Errorf("%s: %v", resp.Status, resp.Header)
		}
		ms, err := strconv.Atoi(resp.Header.Get(name))
		if i%2 == 1 {
			if ms != -1 {
				t.Errorf("%s: %v, want a call that is not to be retried", resp.Status, resp.Header)
			}
			continue
		}
		if resp.Header.Get("X-Should-Retry") != "false" {
			t.Errorf("%s: %v, want a request that is not to be retried", resp.Status, resp.Header)
		}
		if err != nil || ms < 15_000 || ms >= 45_000 {
			t.Errorf("%s: %s %q of %v", resp.Status, name, resp.Header.Get(name), resp.Header)
		}
		milliseconds[ms] = true
		s := resp.Header.Get("Retry-After")
		seconds[s] = true
		if s != strconv.Itoa((ms+999)/1000) {
			t.Errorf("%s seconds and %d ms", s, ms)
		}
	}
	close(end)
	first.Wait()
	if len(milliseconds) < 5 || len(seconds) < 2 {
		t.Errorf("all come back together: after %v", seconds)
	}
}
