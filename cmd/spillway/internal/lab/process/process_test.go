package process

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

const ms = time.Millisecond

// TestMain lets this test program be a backend, as the real one can.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == BackendCommand {
		if err := ServeBackend(os.Args[2], os.Stdin, os.Stdout); err != nil {
			os.Exit(1)
		}
		os.Exit(0)
	}
	if len(os.Args) > 1 && os.Args[1] == ProxyCommand {
		os.Exit(beProxy(os.Args[2:]))
	}
	os.Exit(m.Run())
}

// start starts a backend that is stopped when the test ends.
func start(t *testing.T, b Backend) *Process {
	t.Helper()
	p, err := StartBackend(t.Context(), new(CPUs), b)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.Stop)
	return p
}

// call returns the status of one call.
func call(t *testing.T, p *Process) (int, error) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, p.URL, nil)
	if err != nil {
		return 0, err
	}
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		return 0, err
	}
	return answer.StatusCode, answer.Body.Close()
}

func isGone(p *Process) bool {
	select {
	case <-p.gone:
		return true
	case <-time.After(10 * time.Second):
		return false
	}
}

func TestBackendServesUntilItIsStopped(t *testing.T) {
	p := start(t, Backend{Service: ms})
	status, err := call(t, p)
	if err != nil || status != http.StatusOK {
		t.Errorf("status %d, %v", status, err)
	}
	if p.Rounds <= 1 {
		t.Errorf("calibrated to %d rounds", p.Rounds)
	}
	p.Stop()
	p.Stop() // may be called again
	if !isGone(p) {
		t.Error("the backend is still there")
	}
	if _, err := call(t, p); err == nil {
		t.Error("something still answers at the address of the backend")
	}
}

// A protected backend answers, and rejects what it could not answer in time.
func TestBackendThatIsProtected(t *testing.T) {
	p := start(t, Backend{Kind: KindBlocking, Protect: true, Service: 20 * ms, Rounds: 1})
	if status, err := call(t, p); err != nil || status != http.StatusOK {
		t.Errorf("status %d, %v", status, err)
	}
	var rejected atomic.Bool
	var wg sync.WaitGroup
	for range 20 * Slots { // more than wait for a backend for long
		wg.Go(func() {
			for begun := time.Now(); !rejected.Load() && time.Since(begun) < 20*time.Second; {
				if status, err := call(t, p); err == nil && status == http.StatusServiceUnavailable {
					rejected.Store(true)
				}
			}
		})
	}
	wg.Wait()
	if !rejected.Load() {
		t.Errorf("%d callers were all served by %d slots", 20*Slots, Slots)
	}
}

// The page for operators of a protected backend is read whole: nothing that it says is lost.
func TestBackendPage(t *testing.T) {
	if p := start(t, Backend{Service: ms, Rounds: 1}); p.Page != "" {
		t.Errorf("a backend without protection has a page at %s", p.Page)
	}
	p := start(t, Backend{Protect: true, Service: ms, Rounds: 1})
	if status, err := call(t, p); err != nil || status != http.StatusOK {
		t.Fatalf("status %d, %v", status, err)
	}
	ticks := time.NewTicker(50 * ms)
	defer ticks.Stop()
	for end := time.Now().Add(20 * time.Second); ; <-ticks.C {
		s, err := p.ReadPage(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if s.Counts.Offered == 1 {
			if s.Program != "library" || len(s.Gates) != 1 || s.Gates[0].Listener != ServerName || s.Counts.Ended["served"] != [4]uint64{0, 0, 1, 0} {
				t.Errorf("the page says %+v", s)
			}
			break
		}
		if time.Now().After(end) {
			t.Fatalf("the page has %d requests after 20 s, want 1", s.Counts.Offered)
		}
	}
	p.Stop()
	if s, err := p.ReadPage(t.Context()); err == nil {
		t.Errorf("a backend that is gone says %+v", s)
	}
}

// A backend that rejects all serves to measure what a rejection costs.
func TestBackendThatRejectsAll(t *testing.T) {
	p := start(t, Backend{Kind: KindCPU, Protect: true, Reject: true, Service: ms, Rounds: 1})
	for i := range 5 {
		if status, err := call(t, p); err != nil || i > 0 && status != http.StatusServiceUnavailable {
			t.Errorf("call %d: status %d, %v", i, status, err)
		}
	}
}

func TestOutage(t *testing.T) {
	p := start(t, Backend{Kind: KindCPU, Service: ms, Rounds: 1})
	const length = 300 * ms
	var asked time.Time
	slow := false
	for end := time.Now().Add(time.Minute); time.Now().Before(end) && !slow; { // the backend need not have heard at once
		before := time.Now()
		if before.Sub(asked) > 2*length { // this process may have paused during the last one
			if err := p.Outage(length); err != nil {
				t.Fatal(err)
			}
			asked = before
		}
		if status, err := call(t, p); err != nil || status != http.StatusOK {
			t.Fatalf("status %d, %v: an outage loses no calls", status, err)
		}
		slow = time.Since(before) > length/2
	}
	if !slow {
		t.Errorf("no call stood still in an outage of %v", length)
	}
}

// When the parent dies, however it does, the pipe to the child ends.
func TestBackendEndsWithItsParent(t *testing.T) {
	p := start(t, Backend{Service: ms, Rounds: 10})
	if err := p.stdin.Close(); err != nil {
		t.Fatal(err)
	}
	if !isGone(p) {
		t.Error("the backend outlived its pipe")
	}
}

func TestBackendDoesTheWorkItIsGiven(t *testing.T) {
	if p := start(t, Backend{Service: ms, Rounds: 4711}); p.Rounds != 4711 {
		t.Errorf("%d rounds, want those that it was given", p.Rounds)
	}
}

func TestBackendWithoutAPort(t *testing.T) {
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	p, err := StartBackend(t.Context(), new(CPUs), Backend{Service: ms, Rounds: 1, Port: taken.Addr().(*net.TCPAddr).Port})
	if _, ok := errors.AsType[*UsageError](err); !ok || p != nil {
		t.Errorf("error %v, want one that names the port", err)
	}
}

func TestWatchTellsOfABackendThatDies(t *testing.T) {
	p := start(t, Backend{Service: ms, Rounds: 1})
	ctx, unwatch := p.Watch(t.Context())
	defer unwatch()
	p.Stop()
	<-ctx.Done()
	if err := context.Cause(ctx); errors.Is(err, context.Canceled) || !strings.Contains(err.Error(), "backend ended") {
		t.Errorf("cause %v", err)
	}
}

func TestHeadKeepsTheBeginning(t *testing.T) {
	h := &head{room: 8}
	for _, s := range []string{"first ", "second ", "third"} {
		if n, err := io.WriteString(h, s); n != len(s) || err != nil {
			t.Errorf("wrote %d of %q, %v", n, s, err)
		}
	}
	if got := h.err().Error(); got != "it said: first se" {
		t.Errorf("%q", got)
	}
}
