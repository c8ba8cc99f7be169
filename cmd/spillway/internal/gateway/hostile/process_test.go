package hostile

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
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

	"github.com/seed90641741/spillway/cmd/spillway/internal/gateway"
	"github.com/seed90641741/spillway/cmd/spillway/internal/gateway/config"
	"github.com/seed90641741/spillway/cmd/spillway/internal/gateway/resources"
)

// roleVariable says what a copy of the test program is to be.
const roleVariable = "SPILLWAY_HOSTILE_ROLE"

func TestMain(m *testing.M) {
	var err error
	switch os.Getenv(roleVariable) {
	case "proxy":
		err = beProxy(os.Stdin, os.Stdout)
	case "library":
		err = beLibrary(os.Stdin, os.Stdout)
	case "upstream":
		err = beUpstream(os.Stdin, os.Stdout)
	default:
		os.Exit(m.Run())
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// A footprint is what a process has left.
type footprint struct {
	Heap       uint64 `json:"heap"` // bytes, after a collection
	Goroutines int    `json:"goroutines"`
	Files      int    `json:"files"`
	Kept       int64  `json:"kept"`  // bytes for clients
	Seen       int64  `json:"seen"`  // requests, of an upstream
	Twice      int64  `json:"twice"` // that an upstream has seen before
}

func measure() (f footprint) {
	runtime.GC()
	runtime.GC() // which also empties pools
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	f.Heap, f.Goroutines, f.Kept = m.HeapAlloc, runtime.NumGoroutine(), resources.Memory.Used()
	if files, err := os.ReadDir("/proc/self/fd"); err == nil {
		f.Files = len(files)
	}
	return f
}

// beProxy is a proxy that reads commands, a line each: the first is the limit on open
// files, the second the configuration; "measure" and "update FILE" come later.
func beProxy(in io.Reader, out io.Writer) error {
	lines := bufio.NewScanner(in)
	lines.Buffer(nil, 1<<20)
	lines.Scan()
	if files, _ := strconv.ParseUint(lines.Text(), 10, 64); files > 0 {
		if err := syscall.Setrlimit(syscall.RLIMIT_NOFILE, &syscall.Rlimit{Cur: files, Max: files}); err != nil {
			return err
		}
	}
	lines.Scan()
	c, err := config.Parse("hostile.yaml", lines.Bytes())
	if err != nil {
		return err
	}
	p, err := gateway.Start(context.Background(), c, gateway.Config{Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		return err
	}
	fmt.Fprintln(out, p.Addr(""))
	for lines.Scan() {
		switch verb, rest, _ := strings.Cut(lines.Text(), " "); verb {
		case "measure":
			_ = json.NewEncoder(out).Encode(measure())
		case "update":
			c, err := config.Open(rest)
			if err == nil {
				err = p.Update(c)
			}
			fmt.Fprintln(out, err != nil)
		}
	}
	return p.Close()
}

// beUpstream answers after a while, and as its first line says: "kind", which is plain,
// rejecting or lenient.
func beUpstream(in io.Reader, out io.Writer) error {
	lines := bufio.NewScanner(in)
	lines.Scan()
	u := &upstream{kind: lines.Text()}
	s, err := (&net.ListenConfig{}).Listen(context.Background(), "tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	server := &http.Server{Handler: u, Protocols: new(http.Protocols), IdleTimeout: 10 * time.Second}
	server.Protocols.SetHTTP1(true)
	server.Protocols.SetUnencryptedHTTP2(true)
	go func() { _ = server.Serve(s) }()
	fmt.Fprintln(out, s.Addr())
	for lines.Scan() {
		f := measure()
		f.Seen, f.Twice = u.seen.Load(), u.twice.Load()
		_ = json.NewEncoder(out).Encode(f)
	}
	return server.Close()
}

// delay is what an upstream takes for a request.
const delay = 20 * time.Millisecond

type upstream struct {
	kind  string
	seen  atomic.Int64
	twice atomic.Int64
	ids   sync.Map // of requests of the honest client
}

var large = bytes.Repeat([]byte("spillway"), 1<<17)

// ServeHTTP implements [http.Handler].
func (u *upstream) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	u.seen.Add(1)
	if id := r.Header.Get("X-Id"); id != "" && id != "inner" && !strings.HasPrefix(id, "outer") { // those of attacks repeat
		if _, again := u.ids.LoadOrStore(id, true); again {
			u.twice.Add(1)
		}
	}
	switch {
	case u.kind == "rejecting":
		w.Header().Set("Retry-After", "1")
		w.WriteHeader(http.StatusServiceUnavailable)
		return
	case r.Header.Get("X-Customer") == "greedy":
		w.WriteHeader(http.StatusTooManyRequests)
		return
	case u.kind == "lenient" && r.Header.Get("Upgrade") != "":
		u.switches(w, r)
		return
	}
	if r.URL.Path == "/large" {
		_, _ = w.Write(large)
		return
	}
	_, _ = io.Copy(io.Discard, r.Body)
	if r.URL.Path == "/slow" {
		<-time.After(time.Second)
	}
	<-time.After(delay)
	_, _ = io.WriteString(w, "served "+r.Header.Get("X-Id"))
}

// switches changes to whatever protocol it is asked for.
func (u *upstream) switches(w http.ResponseWriter, r *http.Request) {
	c, _, err := http.NewResponseController(w).Hijack()
	if err != nil {
		return
	}
	defer c.Close()
	fmt.Fprintf(c, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: %s\r\n\r\n", r.Header.Get("Upgrade"))
	_, _ = io.Copy(io.Discard, c)
}

// A process is a copy of the test program in one of its roles.
type process struct {
	t       *testing.T
	command *exec.Cmd
	in      io.WriteCloser
	out     *bufio.Reader
	address string
	mu      sync.Mutex // one question at a time
}

// begin starts a process, with its first lines. It ends with the test.
func begin(t *testing.T, role string, lines ...string) *process {
	t.Helper()
	own, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	p := &process{t: t, command: exec.Command(own)} // it is ended by closing its input
	p.command.Env = append(os.Environ(), roleVariable+"="+role)
	p.command.Stderr = os.Stderr
	in, err := p.command.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := p.command.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := p.command.Start(); err != nil {
		t.Fatal(err)
	}
	p.in, p.out = in, bufio.NewReader(out)
	t.Cleanup(func() {
		_ = p.in.Close()
		_ = p.command.Wait() // it may have been killed
	})
	p.address = strings.TrimSpace(p.ask(strings.Join(lines, "\n")))
	return p
}

// ask sends lines, and returns the one that is answered.
func (p *process) ask(text string) string {
	p.mu.Lock()
	defer p.mu.Unlock()
	if _, err := io.WriteString(p.in, text+"\n"); err != nil {
		return ""
	}
	line, err := p.out.ReadString('\n')
	if err != nil {
		return ""
	}
	return line
}

func (p *process) measure() (f footprint) {
	p.t.Helper()
	if err := json.Unmarshal([]byte(p.ask("measure")), &f); err != nil {
		p.t.Error("no footprint:", err)
	}
	return f
}

// kill ends it as kill -9 does.
func (p *process) kill() { _ = p.command.Process.Kill() }
