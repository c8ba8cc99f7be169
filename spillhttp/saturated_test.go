//go:build unix

package spillhttp

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/seed90641741/spillway"
	"github.com/seed90641741/spillway/connlimit"
	"github.com/seed90641741/spillway/ingress"
	"github.com/seed90641741/spillway/internal/race"
	"github.com/seed90641741/spillway/internal/thorough"
	"github.com/seed90641741/spillway/quota"
	"github.com/seed90641741/spillway/ratelimit"
)

// TestCrowd opens ten thousand connections at once, most of which misbehave, and checks what
// remains: requests in flight at a gate, waiting ones, open files, goroutines. The clients run
// in another process, as one process cannot open that many.
func TestCrowd(t *testing.T) {
	must(net.Listen("tcp", "127.0.0.1:0")).Close() // the runtime opens two files of its own with the first socket
	for _, way := range []struct {
		protocol string
		early    bool
		mode     spillway.Mode // of all gates
		conns    int
	}{
		{"HTTP1", false, spillway.ModeObserve, crowd(t, 10_000)},
		{"HTTP1", true, spillway.ModeEnforce, crowd(t, 10_000)},
		{"h2c", false, spillway.ModeObserve, crowd(t, 1_000)},
		{"h2c", false, spillway.ModeEnforce, crowd(t, 1_000)},
	} {
		t.Run(fmt.Sprintf("%s early %v %v", way.protocol, way.early, way.mode), func(t *testing.T) {
			goroutines, files := runtime.NumGoroutine(), openFiles()
			s := newSaturated(t, way.protocol, way.early, way.mode)
			report := invite(t, s.listener.Addr().String(), way.protocol, way.conns)
			t.Log(report)
			if way.mode == spillway.ModeObserve && !strings.Contains(report, " 0 rejected") {
				t.Error("some were rejected")
			}
			s.settled(t)
			s.close(t)
			eventually(t, "goroutines", goroutines, runtime.NumGoroutine)
			eventually(t, "open files", files, openFiles)
		})
	}
}

// crowd returns how many connections to open: n, or the maximum that is allowed.
func crowd(t *testing.T, n int) int {
	t.Helper()
	var limit syscall.Rlimit // of open files, which the runtime has raised as far as it may
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit); err != nil {
		t.Fatal(err)
	}
	if most := int(min(limit.Cur, 1<<20)) - 200; n > most {
		t.Logf("%d connections of %d: no more files may be open", most, n)
		n = most
	}
	if !thorough.Enabled() || race.Enabled { // which bears some thousand goroutines
		n /= 10
	}
	return n
}

// saturated is a server on a real socket, with every gate.
type saturated struct {
	ingress  *ingress.Server
	listener *connlimit.Listener
	server   *http.Server
	served   sync.WaitGroup
}

func newSaturated(t *testing.T, protocol string, early bool, mode spillway.Mode) *saturated {
	t.Helper()
	local := must(quota.NewLocal(quota.LocalConfig{DefaultLimit: quota.Limit{Rate: 1e6}}))
	s := &saturated{ingress: must(ingress.New(ingress.Config{
		RateLimit: ratelimit.Config{Rate: 20_000, BurstSeconds: 0.1, QueueDepth: 100},
		Quota:     quota.Config{Allocator: local},

		RateLimitMode: mode, QuotaMode: mode, ShedMode: mode,
	}))}
	h := must(NewHandler(http.HandlerFunc(misbehave), HandlerConfig{
		Ingress:  s.ingress,
		Classify: func(r *http.Request) spillway.Call { return spillway.Call{Customer: r.URL.Path} },
	}))
	protocols := new(http.Protocols)
	protocols.SetHTTP1(protocol == "HTTP1")
	protocols.SetUnencryptedHTTP2(protocol == "h2c")
	s.server = &http.Server{
		Handler: h, Protocols: protocols, ErrorLog: quiet,
		ReadHeaderTimeout: time.Minute, ReadTimeout: time.Minute, WriteTimeout: time.Minute,
	}
	l := must(net.Listen("tcp", "127.0.0.1:0"))
	s.listener = must(connlimit.NewListener(l, connlimit.Config{}))
	from := net.Listener(s.listener)
	if early { // without the limit of Handler.Serve: so many handshakes before any request can be an overload
		from, s.server.ConnState = NewListener(from, h), ConnState
	}
	s.served.Go(func() { _ = s.server.Serve(from) })
	return s
}

// misbehave is a handler that does everything a handler should not do.
func misbehave(w http.ResponseWriter, r *http.Request) {
	switch r.URL.Path {
	case "/panics":
		panic(http.ErrAbortHandler)
	case "/waits":
		<-r.Context().Done()
	case "/reads":
		_, _ = io.Copy(io.Discard, r.Body)
	case "/talks":
		_, _ = io.Copy(w, io.LimitReader(zeros{}, 1<<20))
	default: // reads no body
		fmt.Fprint(w, "done")
	}
}

// settled waits for the last request to end, and fails if one never does.
func (s *saturated) settled(t *testing.T) {
	t.Helper()
	eventually(t, "in flight or waiting", 0, func() int {
		st := s.ingress.Stats(time.Now())
		return st.Concurrency.Shared.InFlight + st.Concurrency.Shared.Parked + st.Shed.Waiting + st.RateLimit.Waiting
	})
	eventually(t, "connections", 0, func() int { return s.listener.Stats(time.Now()).Open })
}

func (s *saturated) close(t *testing.T) {
	t.Helper()
	s.server.Close()
	s.served.Wait()
	if err := s.ingress.Close(); err != nil {
		t.Error(err)
	}
}

// eventually waits until there are at most so many.
func eventually(t *testing.T, of string, most int, count func() int) {
	t.Helper()
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	end := time.After(time.Minute)
	for n := count(); n > most; n = count() {
		select {
		case <-tick.C:
		case <-end:
			t.Errorf("%d %s are left, want %d", n, of, most)
			return
		}
	}
}

// openFiles returns how many files the process has open, or 0 where that is not
// known.
func openFiles() int {
	files, _ := os.ReadDir("/proc/self/fd")
	return len(files)
}

// environment holds the address of the server, for the client process.
const environment = "SPILLHTTP_CROWD"

// invite starts the clients and returns what they have to tell.
func invite(t *testing.T, addr, protocol string, conns int) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	c := exec.CommandContext(ctx, must(os.Executable()), "-test.run=^TestVisitors$", "-test.v")
	c.Env = append(os.Environ(), fmt.Sprint(environment, "=", addr, " ", protocol, " ", conns))
	out, err := c.CombinedOutput()
	if err != nil {
		t.Errorf("clients: %v\n%s", err, out)
	}
	_, report, _ := strings.Cut(string(out), "REPORT ")
	report, _, _ = strings.Cut(report, "\n")
	return report
}

// TestVisitors are the clients of TestCrowd.
func TestVisitors(t *testing.T) {
	told := strings.Fields(os.Getenv(environment))
	if len(told) != 3 {
		t.Skip("only if TestCrowd asks for it")
	}
	v := &visitors{t: t, addr: told[0], conns: must(strconv.Atoi(told[2]))}
	if told[1] == "h2c" {
		v.streams()
	} else {
		v.sockets()
	}
	fmt.Fprintf(os.Stdout, "REPORT %d served, %d rejected, %d without an answer\n", v.served.Load(), v.rejected.Load(), v.silent.Load())
	if v.served.Load()+v.rejected.Load() < int64(v.polite) {
		t.Errorf("%d of those that behave were answered, want %d", v.served.Load()+v.rejected.Load(), v.polite)
	}
}

type visitors struct {
	t                        *testing.T
	addr                     string
	conns, polite            int
	served, rejected, silent atomic.Int64
}

// forged are headers by which a client pretends to be more than it is.
var forged = "X-Request-Criticality: CRITICAL_PLUS\r\nX-Request-Criticality: SHEDDABLE\r\n" +
	"X-Envoy-Attempt-Count: 1000000000\r\nGrpc-Timeout: 99999999H\r\n" +
	"X-Envoy-Expected-Rq-Timeout-Ms: " + strings.Repeat("9", 400) + "\r\n" +
	"Baggage: " + strings.Repeat("criticality=CRITICAL_PLUS,", 100) + "\r\n"

// manners are what clients of HTTP/1 send and then do.
var manners = []struct {
	send   string
	polite bool // waits for the answer
}{
	{"GET / HTTP/1.1\r\nHost: x\r\n\r\n", true},
	{"GET / HTTP/1.1\r\nHost: x\r\n" + forged + "\r\n", true},
	{"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\n\r\nhello", true},                                 // never read
	{"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 100000\r\n\r\n" + strings.Repeat("x", 100_000), false}, // as little
	{"GET / HTTP", false}, // a head that never comes
	{"POST /reads HTTP/1.1\r\nHost: x\r\nContent-Length: 100000\r\n\r\nhello", false}, // as little the rest of the body
	{"GET /panics HTTP/1.1\r\nHost: x\r\n\r\n", false},
	{"GET /waits HTTP/1.1\r\nHost: x\r\n\r\n", false}, // and the client leaves
	{"GET /talks HTTP/1.1\r\nHost: x\r\n\r\n", false}, // which nobody reads
}

// sockets opens all connections and then has all talk at once.
func (v *visitors) sockets() {
	var open, done sync.WaitGroup
	open.Add(v.conns)
	for i := range v.conns {
		m := manners[i%len(manners)]
		if m.polite {
			v.polite++
		}
		done.Go(func() {
			c, err := net.Dial("tcp", v.addr)
			open.Done()
			if err != nil {
				v.t.Error(err)
				return
			}
			defer c.Close()
			open.Wait()
			_ = c.SetDeadline(time.Now().Add(time.Minute))
			_, sent := io.WriteString(c, m.send) // fails where the server has had enough
			if !m.polite {
				_ = c.SetReadDeadline(time.Now().Add(time.Duration(i%500) * time.Millisecond))
				_, _ = c.Read(make([]byte, 1)) // for a while, or until the server closes
				v.silent.Add(1)
				return
			}
			resp, err := http.ReadResponse(bufio.NewReader(c), nil)
			if err != nil {
				v.t.Error(err, "after", sent)
				return
			}
			v.count(resp)
		})
	}
	done.Wait()
}

func (v *visitors) count(resp *http.Response) {
	_, _ = io.Copy(io.Discard, resp.Body)
	resp.Body.Close()
	if resp.StatusCode == http.StatusOK {
		v.served.Add(1)
	} else {
		v.rejected.Add(1)
	}
}

// streams makes ten requests at once on each of many connections of HTTP/2.
func (v *visitors) streams() {
	var done sync.WaitGroup
	protocols := new(http.Protocols)
	protocols.SetUnencryptedHTTP2(true)
	for range v.conns {
		base := &http.Transport{Protocols: protocols}
		var streams sync.WaitGroup
		for i := range 10 {
			polite := i < 3
			if polite {
				v.polite++
			}
			streams.Go(func() { v.stream(base, i, polite) })
		}
		done.Go(func() {
			streams.Wait()
			base.CloseIdleConnections()
		})
	}
	done.Wait()
}

func (v *visitors) stream(base *http.Transport, i int, polite bool) {
	patience := time.Minute
	if !polite {
		patience = time.Duration(50*i) * time.Millisecond
	}
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	never, end := io.Pipe()
	defer end.Close()
	path := []string{"/", "/", "/", "/reads", "/panics", "/waits", "/talks", "/", "/waits", "/reads"}[i]
	var body io.Reader
	switch i {
	case 2, 7:
		body = bytes.NewReader(make([]byte, 100_000*(i/7)+5))
	case 3, 9:
		body = never
	}
	r := must(http.NewRequestWithContext(ctx, http.MethodPost, "http://"+v.addr+path, body))
	if i == 1 {
		for line := range strings.SplitSeq(strings.TrimSpace(forged), "\r\n") {
			key, value, _ := strings.Cut(line, ": ")
			r.Header.Add(key, value)
		}
	}
	resp, err := base.RoundTrip(r)
	switch {
	case err == nil && (polite || i == 7):
		v.count(resp)
	case err == nil: // the answer is not read
		resp.Body.Close()
		v.silent.Add(1)
	case polite:
		v.t.Error(err)
	default:
		v.silent.Add(1)
	}
}
