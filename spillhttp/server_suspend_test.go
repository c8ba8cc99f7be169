package spillhttp

import (
	"bytes"
	"io"
	"math"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seed90641741/spillway/ingress"
)

// gated is a server on one connection of a bubble, and what decides for it.
func gated(t *testing.T, protocol string, next http.HandlerFunc) (*site, *Handler) {
	t.Helper()
	h := mustHandler(t, next, ingress.Config{}, HandlerConfig{})
	return open(t, protocol, h, false), h
}

func (h *Handler) working() int { return h.ingress.Stats(time.Now()).Concurrency.Shared.InFlight }

// TestWaitingForTheClientIsNoWork makes a client slow in every possible way, and checks what
// counts as work meanwhile.
func TestWaitingForTheClientIsNoWork(t *testing.T) {
	large, text := make([]byte, 8<<20), strings.Repeat("x", 8<<20)
	file := filepath.Join(t.TempDir(), "large")
	if err := os.WriteFile(file, large, 0o600); err != nil {
		t.Fatal(err)
	}
	for name, serve := range map[string]http.HandlerFunc{
		"a body":     func(_ http.ResponseWriter, r *http.Request) { _, _ = io.Copy(io.Discard, r.Body) },
		"an answer":  func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write(large) },
		"in a text":  func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, text) },
		"in pieces":  func(w http.ResponseWriter, _ *http.Request) { _, _ = io.Copy(w, bytes.NewReader(large)) },
		"a file":     func(w http.ResponseWriter, r *http.Request) { http.ServeFile(w, r, file) },
		"long poll":  func(w http.ResponseWriter, _ *http.Request) { Suspend(w); defer Resume(w); time.Sleep(2 * time.Second) },
		"flushed":    func(w http.ResponseWriter, _ *http.Request) { flushed(w, large) },
		"taken over": taken,
	} {
		for _, protocol := range []string{"HTTP1", "h2c"} {
			if name == "taken over" && protocol == "h2c" {
				continue
			}
			t.Run(name+" "+protocol, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					began := make(chan struct{})
					s, h := gated(t, protocol, func(w http.ResponseWriter, r *http.Request) {
						close(began)
						serve(w, r)
					})
					defer s.close()
					body, sent := io.Pipe()
					go func() { _, _ = sent.Write([]byte("some")) }() // and no end
					r := newRequest(t, t.Context(), http.MethodPost, body)
					go func() {
						if resp, err := s.base.RoundTrip(r); err == nil {
							t.Cleanup(func() { _ = resp.Body.Close() }) // read by nobody
						}
					}()
					<-began
					time.Sleep(time.Second)
					if n := h.working(); n != 0 {
						t.Errorf("%d work, want 0: the client is waited for", n)
					}
					_ = sent.Close()
					s.base.CloseIdleConnections()
					_ = s.server.Close()
					time.Sleep(2 * time.Second)
					nothingLeft(t, h)
				})
			})
		}
	}
}

func flushed(w http.ResponseWriter, text []byte) {
	for range 1 << 10 {
		_, _ = w.Write(text[:1<<10])
		if http.NewResponseController(w).Flush() != nil {
			return
		}
	}
}

func taken(w http.ResponseWriter, _ *http.Request) {
	c, _, err := http.NewResponseController(w).Hijack()
	if err != nil {
		return
	}
	defer c.Close()
	_, _ = io.Copy(io.Discard, c)
}

// TestWorkCounts is the other side: what is read, and what fits into the buffers of
// net/http, is no reason not to count.
func TestWorkCounts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, h := gated(t, "HTTP1", func(w http.ResponseWriter, r *http.Request) {
			_, _ = io.Copy(io.Discard, r.Body)
			_, _ = io.WriteString(w, "short")
			time.Sleep(2 * time.Second)
		})
		defer s.close()
		go func() {
			if resp, err := s.base.RoundTrip(newRequest(t, t.Context(), http.MethodPost, bytes.NewReader(make([]byte, 10_000)))); err == nil {
				_ = resp.Body.Close()
			}
		}()
		time.Sleep(time.Second)
		if n := h.working(); n != 1 {
			t.Errorf("%d work, want 1", n)
		}
		time.Sleep(2 * time.Second)
		nothingLeft(t, h)
	})
}

// TestRejectedBodiesAreNotWaitedFor: a client that announces a body and does not send it
// is hung up on when it is rejected, and one that has sent it keeps its connection.
func TestRejectedBodiesAreNotWaitedFor(t *testing.T) {
	for body, want := range map[string]bool{"hello": true, "hel": false} {
		synctest.Test(t, func(t *testing.T) {
			h := mustHandler(t, bare, swamped, HandlerConfig{})
			s := open(t, "HTTP1", h, false)
			defer s.close()
			c, err := s.network.dial(t.Context(), "", "")
			if err != nil {
				t.Fatal(err)
			}
			defer c.Close()
			go func() {
				_, _ = io.WriteString(c, "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\n\r\n"+body)
			}()
			open := make(chan bool)
			go func() {
				_ = c.SetReadDeadline(time.Now().Add(time.Second))
				text, err := io.ReadAll(c)
				if !bytes.HasPrefix(text, []byte("HTTP/1.1 503 ")) {
					t.Errorf("answered %q", text)
				}
				open <- err != nil // it would have waited on
			}()
			if got := <-open; got != want {
				t.Errorf("%q of a body of 5 bytes: the connection is kept: %v, want %v", body, got, want)
			}
		})
	}
}

// Whatever was written before, a long answer may wait for the client.
func TestBlocksForLongAnswers(t *testing.T) {
	var r response
	for _, step := range []struct {
		n    int
		want bool
	}{{unblocked, false}, {0, false}, {1, true}, {0, true}, {math.MaxInt32, true}, {math.MaxInt32, true}, {1, true}} {
		if got := r.blocks(step.n); got != step.want {
			t.Errorf("%d bytes more: %v, want %v", step.n, got, step.want)
		}
	}
}

// TestLateReadersDoNothing: who reads a body on when the handler has returned, as a
// transport does, changes nothing for the requests that come after.
func TestLateReadersDoNothing(t *testing.T) {
	h := mustHandler(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		go func() { _, _ = io.Copy(io.Discard, r.Body) }()
	}), ingress.Config{}, HandlerConfig{})
	for range 200 {
		r := incoming(t)
		r.Method, r.Body = http.MethodPost, io.NopCloser(bytes.NewReader(make([]byte, 100_000)))
		h.ServeHTTP(nowhere{http.Header{}}, r)
	}
	nothingLeft(t, h)
}

func TestPanicsWhileSuspendedLeaveNothing(t *testing.T) {
	h := mustHandler(t, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		Suspend(w)
		panic(http.ErrAbortHandler)
	}), ingress.Config{}, HandlerConfig{})
	for range 3 {
		func() {
			defer func() { _ = recover() }()
			h.ServeHTTP(nowhere{http.Header{}}, incoming(t))
		}()
	}
	nothingLeft(t, h)
	Suspend(nowhere{http.Header{}}) // of nobody
	Resume(nowhere{http.Header{}})
}

// Another goroutine of the handler may call Suspend and Resume while the handler returns, and later: that has no effect on any
// other request, which may have the slot then.
func TestSuspendWhileTheHandlerReturns(t *testing.T) {
	var late sync.WaitGroup
	h := mustHandler(t, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		began := make(chan struct{})
		late.Go(func() {
			close(began)
			for range 100 {
				Suspend(w)
				Resume(w)
			}
			Suspend(w)
		})
		<-began
	}), ingress.Config{}, HandlerConfig{})
	for range 200 {
		h.ServeHTTP(httptest.NewRecorder(), httptest.NewRequest(http.MethodGet, "/", nil))
	}
	late.Wait()
	if n := h.working(); n != 0 {
		t.Errorf("%d at work at the end", n)
	}
}
