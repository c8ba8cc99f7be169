package httpproxy

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/seed90641741/spillway/cmd/spillway/internal/gateway/config"
	"github.com/seed90641741/spillway/cmd/spillway/internal/gateway/upstream"
)

// cpu returns the processor time that this process has used.
func cpu(t testing.TB) time.Duration {
	t.Helper()
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		t.Skip(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// healthyEnv makes the test binary a server that passes its health checks.
const healthyEnv = "SPILLWAY_TEST_HEALTHY"

// TestHealthyServer is no test but the other process of BenchmarkIdleEndpoints.
func TestHealthyServer(t *testing.T) {
	if os.Getenv(healthyEnv) == "" {
		t.Skip("only for another test")
	}
	ln, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp4", "0.0.0.0:0")
	if err != nil {
		t.Fatal(err)
	}
	_, _ = fmt.Fprintln(os.Stdout, "port", ln.Addr().(*net.TCPAddr).Port)
	s := &http.Server{Handler: http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}), ReadHeaderTimeout: time.Minute}
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin) // until the other one ends
		_ = s.Close()
	}()
	_ = s.Serve(ln)
}

// elsewhere starts a server in another process, which listens on all addresses of the
// loopback network, and returns its port.
func elsewhere(t testing.TB) string {
	t.Helper()
	x := exec.CommandContext(context.Background(), os.Args[0], "-test.run=^TestHealthyServer$", "-test.v") // it is this program
	x.Env = append(os.Environ(), healthyEnv+"=1")
	in, err := x.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := x.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := x.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = in.Close()
		_, _ = io.Copy(io.Discard, out)
		_ = x.Wait()
	})
	lines := bufio.NewScanner(out)
	for lines.Scan() {
		if port, ok := strings.CutPrefix(lines.Text(), "port "); ok {
			return port
		}
	}
	t.Fatal("the other process has not begun")
	return ""
}

// BenchmarkIdleEndpoints shows what health checks of a thousand endpoints that get no requests take,
// with the default settings: the share of a processor, and the checks per second. Bands: at most 1 %,
// and at most 25.
func BenchmarkIdleEndpoints(b *testing.B) {
	port := elsewhere(b)
	if c, err := net.DialTimeout("tcp", "127.0.3.9:"+port, time.Second); err != nil {
		b.Skip("the loopback network has one address only")
	} else {
		_ = c.Close()
	}
	c := config.ForUpstream("127.0.0.1:0", "127.0.0.1:1")
	x := &c.Clusters[0]
	x.Endpoints = nil
	for i := range 1000 {
		x.Endpoints = append(x.Endpoints, fmt.Sprintf("127.0.%d.%d:%s", 1+i/250, 1+i%250, port))
	}
	x.Health = new(config.Health)
	p := start(b, c)
	checks := func() (n uint64) {
		for _, e := range p.Stats(time.Now()).Clusters["upstream"].Endpoints {
			n += e.ChecksTotal
		}
		return n
	}
	for begun := time.Now(); checks() < 1000; <-time.After(100 * time.Millisecond) {
		if time.Since(begun) > 30*time.Second {
			b.Skip("the machine has no time: a thousand checks take more than 30 s")
		}
	}
	<-time.After(2 * time.Second)
	first, used := checks(), cpu(b)
	for b.Loop() {
		<-time.After(longer(5*time.Second, time.Minute))
	}
	b.ReportMetric(100*float64(cpu(b)-used)/float64(b.Elapsed()), "%-of-a-processor")
	b.ReportMetric(float64(checks()-first)/b.Elapsed().Seconds(), "checks/s")
}

// TestServingEndpointsAreNotChecked: an endpoint that serves requests is not checked; an
// endpoint whose requests fail is checked.
func TestServingEndpointsAreNotChecked(t *testing.T) {
	t.Parallel() // a small load for seconds
	const interval = 100 * time.Millisecond
	var good, bad asked
	first, opened := upstreamAt(t, &good)
	second, _ := upstreamAt(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/healthz" {
			w.WriteHeader(http.StatusInternalServerError)
		}
		bad.ServeHTTP(w, r)
	}))
	url, p := front(t, &good, func(c *config.Config) {
		c.Clusters[0].Endpoints = []string{first, second}
		c.Clusters[0].Health = &config.Health{Interval: interval} // twice that keeps a connection of checks
	})
	x := client(t, false)
	stats := func() (a, b upstream.EndpointStats) {
		e := p.Stats(time.Now()).Clusters["upstream"].Endpoints
		return e[0], e[1]
	}
	until(t, "both are healthy", func() bool {
		a, b := stats()
		return a.Health == upstream.Healthy && b.Health == upstream.Healthy
	})
	begun, _ := stats()
	last, pauses := time.Now(), uint64(0)
	until(t, "requests take the place of checks", func() bool {
		do(t, x, http.MethodGet, url, "")
		now := time.Now()
		if gap := now.Sub(last); gap > interval/20 { // the machine is busy: an interval may pass without a request
			pauses += 1 + uint64(gap/interval)
		}
		last = now
		a, b := stats()
		return a.SkippedTotal >= 20 && b.ChecksTotal >= 20
	})
	a, b := stats()
	if checks := a.ChecksTotal - begun.ChecksTotal; checks > 2+pauses || b.SkippedTotal > 0 {
		t.Errorf("%d checks and %d pauses; the one that serves: %+v, the one that fails: %+v", checks, pauses, a, b)
	}
	if n := opened.all.Load(); uint64(n) > 4+pauses { // requests and checks keep theirs
		t.Errorf("%d connections were opened to the one that serves, %d pauses", n, pauses)
	}
}
