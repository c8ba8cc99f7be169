package httpproxy

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/seed90641741/spillway/cmd/spillway/internal/gateway/message"
)

// A book records the applied requests of each client. A client sends its requests one after
// the other, with increasing numbers, so the last 64 are enough to detect a duplicate.
type book struct {
	mu      sync.Mutex
	clients [soakClients]entry
}

type entry struct {
	last  uint64
	done  uint64 // a bit for each of the last 64
	twice int
}

// do notes that request n of a client is done.
func (l *book) do(client int, n uint64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	e := &l.clients[client]
	if n > e.last {
		e.done <<= min(64, n-e.last)
		e.last = n
	}
	if bit := uint64(1) << (e.last - n); e.done&bit != 0 {
		e.twice++
	} else {
		e.done |= bit
	}
}

// check returns whether request n of a client was done, and how many were twice.
func (l *book) check(client int, n uint64) (done bool, twice int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	e := &l.clients[client]
	return n <= e.last && e.done>>(e.last-n)&1 != 0, e.twice
}

// service is an upstream that applies each request it receives and records it.
type service struct{ book *book }

func (s *service) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	switch {
	case r.URL.Path == "/healthz":
	case r.URL.Path == "/large":
		_, _ = w.Write(make([]byte, 1<<20))
	case r.Header.Get("Upgrade") != "":
		s.upgrade(w)
	case r.URL.Path == "/echo.Echo/Stream":
		stream(w, r)
	case r.Method == http.MethodPost:
		s.order(w, r)
	default:
		_, _ = io.WriteString(w, "some page")
	}
}

// order does what a POST or a call of gRPC asks for.
func (s *service) order(w http.ResponseWriter, r *http.Request) {
	text, err := io.ReadAll(r.Body)
	if err != nil {
		return
	}
	call := message.IsGRPC(r)
	if call && len(text) > 5 {
		text = text[5:]
	}
	var client int
	var n uint64
	if _, err := fmt.Sscanf(string(text), "order %d %d", &client, &n); err != nil {
		w.WriteHeader(http.StatusBadRequest)
		return
	}
	s.book.do(client, n)
	if call {
		w.Header().Set("Content-Type", "application/grpc")
		w.Header().Set("Trailer", "Grpc-Status")
		_, _ = io.WriteString(w, frame("done"))
		w.Header().Set("Grpc-Status", "0")
		return
	}
	_, _ = io.WriteString(w, "done")
}

// upgrade switches to its own protocol: it echoes everything.
func (s *service) upgrade(w http.ResponseWriter) {
	c, rw, err := http.NewResponseController(w).Hijack()
	if err != nil {
		return
	}
	defer c.Close()
	_, _ = io.WriteString(c, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: echo\r\n\r\n")
	_, _ = io.Copy(c, rw)
}

// stream echoes all messages of a call.
func stream(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "application/grpc")
	w.Header().Set("Trailer", "Grpc-Status")
	control := http.NewResponseController(w)
	_ = control.Flush()
	b := make([]byte, 1024)
	for {
		n, err := r.Body.Read(b)
		if n > 0 {
			_, _ = w.Write(b[:n])
			_ = control.Flush()
		}
		if err != nil {
			break
		}
	}
	w.Header().Set("Grpc-Status", "0")
}

// soakClients is how many order something.
const soakClients = 8

// clients starts clients of all kinds. Together they send some hundred requests in a
// second.
func (s *soak) clients(ctx context.Context, all *sync.WaitGroup) {
	for i := range soakClients {
		all.Go(func() { s.orders(ctx, i) })
		all.Go(func() { s.pages(ctx, i%2 == 0) })
	}
	for range 2 {
		all.Go(func() { s.calls(ctx) })
		all.Go(func() { s.sockets(ctx) })
	}
	for _, behave := range []func(context.Context, net.Conn) error{silence, trickle, stall, sip} {
		all.Go(func() { s.slowly(ctx, behave) })
	}
}

// soaked returns a client, which must be closed.
func soaked(second bool) (*http.Client, func()) {
	tr := &http.Transport{Protocols: new(http.Protocols)}
	tr.Protocols.SetHTTP1(!second)
	tr.Protocols.SetUnencryptedHTTP2(second)
	return &http.Client{Transport: tr, Timeout: 20 * time.Second}, tr.CloseIdleConnections
}

// send sends a request. It returns 200 if the request was served, 503 if it was rejected, and
// another value if the outcome is unknown.
func send(ctx context.Context, c *http.Client, r *http.Request, want string) int {
	resp, err := c.Do(r.WithContext(ctx))
	if err != nil {
		return 0
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	switch status := resp.Header.Get("Grpc-Status"); {
	case err != nil:
		return 0
	case resp.StatusCode == http.StatusServiceUnavailable && resp.Header.Get("X-Envoy-Overloaded") == "true",
		status == "14" && resp.Header.Get("Grpc-Message") == "overloaded":
		return http.StatusServiceUnavailable
	case resp.StatusCode != http.StatusOK || string(text) != want || message.IsGRPC(r) && resp.Trailer.Get("Grpc-Status") != "0":
		return 1
	}
	return http.StatusOK
}

// count counts what happened to a request. It may fail only while something is changed.
func (s *soak) count(ctx context.Context, status int, calm bool, what string) {
	switch {
	case ctx.Err() != nil:
	case status == http.StatusOK:
		s.served.Add(1)
	case status == http.StatusServiceUnavailable:
		s.rejected.Add(1)
	default:
		s.failed.Add(1)
		if calm && s.calm() {
			s.t.Errorf("%s has failed though nothing was changed", what)
		}
	}
}

// orders sends requests that must not be applied twice: POST with and without a declared
// length, and gRPC calls.
func (s *soak) orders(ctx context.Context, i int) {
	c, end := soaked(i%3 == 2)
	defer end()
	for n := uint64(1); pause(ctx, 50*time.Millisecond); n++ {
		var body io.Reader = strings.NewReader(fmt.Sprint("order ", i, " ", n))
		kind, want := "text/plain", "done"
		switch i % 3 {
		case 1:
			body = io.MultiReader(body)
		case 2:
			body, kind, want = io.MultiReader(strings.NewReader(frame(fmt.Sprint("order ", i, " ", n)))), "application/grpc", frame("done")
		}
		r, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://"+s.address+"/order", body)
		if err != nil {
			s.t.Error(err)
			return
		}
		r.Header.Set("Content-Type", kind)
		calm := s.calm()
		status := send(ctx, c, r, want)
		s.count(ctx, status, calm, kind)
		switch done, twice := s.book.check(i, n); {
		case twice > 0:
			s.t.Errorf("client %d: something was done twice", i)
			return
		case status == http.StatusOK && !done:
			s.t.Errorf("client %d: request %d was answered, and not done", i, n)
		case status == http.StatusServiceUnavailable && done:
			s.t.Errorf("client %d: request %d was rejected, and done", i, n)
		}
	}
}

// pages sends what may be repeated.
func (s *soak) pages(ctx context.Context, second bool) {
	c, end := soaked(second)
	defer end()
	for pause(ctx, 40*time.Millisecond) {
		r, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+s.address+"/page", nil)
		if err != nil {
			s.t.Error(err)
			return
		}
		calm := s.calm()
		s.count(ctx, send(ctx, c, r, "some page"), calm, "GET")
	}
}

// talks has a conversation of some messages, one at a time.
func talks(ctx context.Context, out io.Writer, in io.Reader) error {
	for i := range 10 {
		said := frame("message " + strconv.Itoa(i))
		if _, err := io.WriteString(out, said); err != nil {
			return err
		}
		heard := make([]byte, len(said))
		if _, err := io.ReadFull(in, heard); err != nil {
			return err
		}
		if string(heard) != said {
			return fmt.Errorf("said %q, heard %q", said, heard)
		}
		sleep(ctx, 10*time.Millisecond)
	}
	return nil
}

// calls makes calls of gRPC that go both ways.
func (s *soak) calls(ctx context.Context) {
	c, end := soaked(true)
	defer end()
	for pause(ctx, 100*time.Millisecond) {
		calm := s.calm()
		status := 0
		out, in := io.Pipe()
		unblock := context.AfterFunc(ctx, func() { _ = out.Close() })
		r, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://"+s.address+"/echo.Echo/Stream", out)
		if err != nil {
			s.t.Error(err)
			return
		}
		r.Header.Set("Content-Type", "application/grpc")
		if resp, err := c.Do(r); err == nil {
			status = s.converse(ctx, resp, in)
			_ = resp.Body.Close()
		}
		_ = in.Close()
		unblock()
		s.count(ctx, status, calm, "a stream")
	}
}

// converse talks in a call, and returns what happened to it.
func (s *soak) converse(ctx context.Context, resp *http.Response, in io.WriteCloser) int {
	switch over := resp.Header.Get("Grpc-Status"); {
	case over == "14" && resp.Header.Get("Grpc-Message") == "overloaded":
		return http.StatusServiceUnavailable
	case over != "":
		return 1
	}
	if talks(ctx, in, resp.Body) != nil {
		return 0
	}
	_ = in.Close()
	if _, err := io.Copy(io.Discard, resp.Body); err != nil || resp.Trailer.Get("Grpc-Status") != "0" {
		return 0
	}
	s.streams.Add(1)
	return http.StatusOK
}

// sockets talks on connections that have changed their protocol.
func (s *soak) sockets(ctx context.Context) {
	for pause(ctx, 100*time.Millisecond) {
		calm := s.calm()
		c, err := new(net.Dialer).DialContext(ctx, "tcp", s.address)
		if err != nil {
			s.count(ctx, 0, calm, "a connection")
			continue
		}
		_ = c.SetDeadline(time.Now().Add(10 * time.Second))
		_, _ = io.WriteString(c, "GET /socket HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: echo\r\n\r\n")
		in := bufio.NewReader(c)
		status := 0
		if resp, err := http.ReadResponse(in, nil); err == nil {
			status = resp.StatusCode
			if status == http.StatusSwitchingProtocols && talks(ctx, c, in) == nil {
				status = http.StatusOK
				s.streams.Add(1)
			}
			_ = resp.Body.Close()
		}
		_ = c.Close()
		s.count(ctx, status, calm, "a socket")
	}
}

// slowly connects, and behaves badly.
func (s *soak) slowly(ctx context.Context, behave func(context.Context, net.Conn) error) {
	for pause(ctx, 200*time.Millisecond) {
		c, err := new(net.Dialer).DialContext(ctx, "tcp", s.address)
		if err != nil {
			continue // the listener is just being replaced
		}
		_ = c.SetDeadline(time.Now().Add(20 * time.Second))
		if err := behave(ctx, c); err != nil && ctx.Err() == nil {
			s.t.Error(err)
		}
		s.slow.Add(1)
		_ = c.Close()
	}
}

// silence says nothing, until it is hung up on.
func silence(_ context.Context, c net.Conn) error { return hungUp(c) }

// hungUp waits for the end of a connection.
func hungUp(c net.Conn) error {
	_, err := io.Copy(io.Discard, c)
	if timeout, ok := err.(net.Error); ok && timeout.Timeout() {
		return fmt.Errorf("a slow client is not hung up on: %w", err)
	}
	return nil
}

// trickle sends a head so slowly that it never ends.
func trickle(ctx context.Context, c net.Conn) error {
	_, _ = io.WriteString(c, "GET / HTTP/1.1\r\nHost: a\r\n")
	for ctx.Err() == nil {
		if _, err := io.WriteString(c, "X-More: "+strings.Repeat("y", 10)+"\r\n"); err != nil {
			return nil //nolint:nilerr // as it should be
		}
		sleep(ctx, 100*time.Millisecond)
	}
	return nil
}

// stall sends half of a body.
func stall(_ context.Context, c net.Conn) error {
	_, _ = io.WriteString(c, "POST /order HTTP/1.1\r\nHost: a\r\nContent-Length: 100\r\n\r\norder")
	return hungUp(c)
}

// sip reads an answer in small pieces, and leaves before its end.
func sip(ctx context.Context, c net.Conn) error {
	_, _ = io.WriteString(c, "GET /large HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n")
	b := bytes.NewBuffer(nil)
	for range 10 {
		if _, err := io.CopyN(b, c, 4<<10); err != nil || !sleep(ctx, 20*time.Millisecond) {
			return nil //nolint:nilerr // the endpoint may have ended
		}
	}
	return nil
}

// TestBook checks that the book detects duplicates, and does not mistake late requests for
// them.
func TestBook(t *testing.T) {
	for _, row := range []struct {
		done  []uint64
		twice int
	}{
		{[]uint64{1, 2, 3}, 0}, {[]uint64{1, 1}, 1}, {[]uint64{1, 3, 2}, 0}, {[]uint64{1, 3, 2, 2}, 1}, {[]uint64{2, 70, 71, 70}, 1}, {[]uint64{5, 5, 5}, 2},
	} {
		var b book
		for _, n := range row.done {
			b.do(1, n)
			if done, _ := b.check(1, n); !done {
				t.Errorf("%v: %d is not done", row.done, n)
			}
		}
		if done, twice := b.check(1, 4); twice != row.twice || done {
			t.Errorf("%v: %d were done twice, want %d; one that was not: %v", row.done, twice, row.twice, done)
		}
	}
}
