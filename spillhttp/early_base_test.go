package spillhttp

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seed90641741/spillway"
)

// sender is a connection on which a client sends each piece when the server is
// ready for it, and remembers what it is answered.
type sender struct {
	net.Conn // nil: what a server needs is here

	mu      sync.Mutex
	pieces  [][]byte
	answers bytes.Buffer
	stopped chan struct{} // closed while reads are to return at once
	closed  bool
	eager   bool // sends the next piece before the answer to the last
}

func newSender(pieces ...string) *sender {
	s := &sender{stopped: make(chan struct{})}
	for _, p := range pieces {
		if p != "" {
			s.pieces = append(s.pieces, []byte(p))
		}
	}
	return s
}

func (s *sender) Read(p []byte) (int, error) {
	s.mu.Lock()
	// net/http reads single bytes to see whether the client leaves. It never does
	// before its answer: who waits in the room would then be gone.
	if wait := s.stopped; len(p) == 1 && (!s.eager || len(s.pieces) == 0) {
		s.mu.Unlock()
		<-wait
		return 0, os.ErrDeadlineExceeded
	}
	defer s.mu.Unlock()
	if s.closed || len(s.pieces) == 0 {
		return 0, io.EOF
	}
	n := copy(p, s.pieces[0])
	if s.pieces[0] = s.pieces[0][n:]; len(s.pieces[0]) == 0 {
		s.pieces = s.pieces[1:]
	}
	return n, nil
}

func (s *sender) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.answers.Write(p)
}

func (s *sender) SetReadDeadline(t time.Time) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.stop(!t.IsZero() && t.Before(time.Now()))
	return nil
}

// stop makes reads return at once, or wait again.
func (s *sender) stop(now bool) {
	select {
	case <-s.stopped:
		if !now && !s.closed {
			s.stopped = make(chan struct{})
		}
	default:
		if now {
			close(s.stopped)
		}
	}
}

func (s *sender) Close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closed = true
	s.stop(true)
	return nil
}

func (s *sender) SetDeadline(t time.Time) error    { return s.SetReadDeadline(t) }
func (s *sender) SetWriteDeadline(time.Time) error { return nil }
func (s *sender) RemoteAddr() net.Addr             { return &net.TCPAddr{IP: net.IPv4(10, 0, 0, 1), Port: 1} }
func (s *sender) LocalAddr() net.Addr              { return &net.TCPAddr{Port: 80} }

// one is a listener for one connection.
type one struct {
	conn chan net.Conn
	done chan struct{}
}

func (l *one) Accept() (net.Conn, error) {
	select {
	case c := <-l.conn:
		return c, nil
	case <-l.done:
		return nil, net.ErrClosed
	}
}

func (l *one) Close() error   { return nil }
func (l *one) Addr() net.Addr { return &net.TCPAddr{Port: 80} }

// play has h serve s, with early refusal or without, in a bubble. It
// returns the answers, and how many requests net/http has seen.
func play(t *testing.T, s *sender, h *Handler, early bool) (answers string, seen int) {
	t.Helper()
	l := &one{make(chan net.Conn, 1), make(chan struct{})}
	l.conn <- s
	var mu sync.Mutex
	server := &http.Server{ErrorLog: quiet, Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		seen++
		mu.Unlock()
		h.ServeHTTP(w, r)
	})}
	served := make(chan struct{})
	go func() {
		defer close(served)
		if early {
			_ = h.Serve(server, l)
		} else {
			_ = server.Serve(l)
		}
	}()
	synctest.Wait()
	time.Sleep(time.Second) // for connections that linger
	close(l.done)
	<-served
	return s.answers.String(), seen
}

// proto is what each answer begins with.
const proto = "HTTP/1.1 "

// unify makes answers comparable: without dates, fields in order, hints alike.
func unify(t *testing.T, answers string) string {
	t.Helper()
	var all strings.Builder
	for r := bufio.NewReader(strings.NewReader(answers)); ; {
		if _, err := r.Peek(1); err != nil {
			return all.String()
		}
		resp, err := http.ReadResponse(r, nil)
		if err != nil {
			fmt.Fprintf(&all, "%v\n", err)
			return all.String()
		}
		var body []byte
		if next, _ := r.Peek(len(proto)); string(next) != proto { // else this one is for HEAD
			body, _ = io.ReadAll(resp.Body) // one that ends too soon is compared as it is
		}
		resp.Header.Del("Date")
		fmt.Fprintf(&all, "%d %s %q\n", resp.StatusCode, headerText(resp.Header), body)
	}
}

// half is a load at which everything but CRITICAL_PLUS is refused, always with the
// same hint.
func half(t testing.TB, next http.Handler) *Handler {
	config := swamped
	config.Load = utilization(1)
	config.Rand = func() float64 { return 0.5 }
	// However busy the processors of the test are, who may wait is let in, and not
	// refused because it waited.
	config.Shed.MaxWait = 10 * time.Second
	h := mustHandler(t, next, config, HandlerConfig{HealthPaths: []string{"/healthz"}, Classify: func(r *http.Request) (c spillway.Call) {
		if strings.HasPrefix(r.URL.Path, "/vip") {
			c.Criticality = spillway.CriticalPlus
		}
		return c
	}})
	h.looks.Store(1 << 40)
	return h
}

// repeat is a connection that takes everything.
type repeat string

func (repeat) Read([]byte) (int, error)           { return 0, io.EOF }
func (repeat) Write(p []byte) (int, error)        { return len(p), nil }
func (repeat) Close() error                       { return nil }
func (repeat) LocalAddr() net.Addr                { return nil }
func (repeat) RemoteAddr() net.Addr               { return nil }
func (repeat) SetDeadline(time.Time) error        { return nil }
func (repeat) SetReadDeadline(time.Time) error    { return nil }
func (repeat) SetWriteDeadline(t time.Time) error { return nil }
