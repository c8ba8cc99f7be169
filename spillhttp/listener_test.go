package spillhttp

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"math/rand/v2"
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
		body, _ := io.ReadAll(resp.Body)
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
	h := mustHandler(t, next, config, HandlerConfig{Classify: func(r *http.Request) (c spillway.Call) {
		if strings.HasPrefix(r.URL.Path, "/vip") {
			c.Criticality = spillway.CriticalPlus
		}
		return c
	}})
	h.looks.Store(1 << 40)
	return h
}

// TestEarlyRefusal: which requests net/http does not even see, and that the client
// cannot tell.
func TestEarlyRefusal(t *testing.T) {
	const (
		get   = "GET / HTTP/1.1\r\nHost: x\r\n\r\n"
		vip   = "GET /vip HTTP/1.1\r\nHost: x\r\n\r\n"
		probe = "GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n"
		post  = "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\n\r\n"
		chunk = "POST /vip HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n"
		last  = "GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n"
	)
	for _, row := range []struct {
		name   string
		pieces []string
		seen   int
	}{
		{"refused", []string{get, get, get}, 0},
		{"admitted and exempt", []string{get, vip, get, probe, get}, 2},
		{"head in pieces", []string{get[:7], get[7:], get, get}, 1},
		{"whole body", []string{post + "hello", get}, 1},
		{"body apart", []string{post, "hel", "lo", get}, 1},
		{"body that looks like a request", []string{"POST /vip HTTP/1.1\r\nHost: x\r\nContent-Length: 27\r\n\r\n", get, get}, 1},
		{"pipelined", []string{get, get + get, get}, 3},
		{"pipelined before a body", []string{
			vip + "POST /vip HTTP/1.1\r\nHost: x\r\nContent-Length: 27\r\n\r\n", get, get,
		}, 3},
		{"pipelined in part", []string{vip + "P", "GET / HTTP/1.1\r\nHost: x\r\n\r\n", get}, 3},
		{"chunked", []string{get, chunk, get}, 2},
		{"the last", []string{get, last, get}, 1},
		{"bare line feeds", []string{"GET / HTTP/1.1\nHost: x\n\n", get}, 2},
		{"wrong", []string{get, "GET / HTTP/1.1\r\nHost: x\r\nHost: y\r\n\r\n", get}, 0},
		{"TLS", []string{"\x16\x03\x01\x02\x00\x01", get}, 0},
		{"long head", []string{get[:len(get)-2] + "X: " + strings.Repeat("x", 5000) + "\r\n\r\n", get}, 2},
	} {
		t.Run(row.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				h := half(t, echo)
				got, seen := play(t, newSender(row.pieces...), h, true)
				want, _ := play(t, newSender(row.pieces...), h, false)
				if unify(t, got) != unify(t, want) || seen != row.seen {
					t.Errorf("net/http saw %d requests, want %d; answers\n%swant\n%s", seen, row.seen, unify(t, got), unify(t, want))
				}
				nothingLeft(t, h)
			})
		})
	}
}

// TestEarlyRefusalAtAGlance is the same for a Handler that looks at nothing but the
// path and the claims.
func TestEarlyRefusalAtAGlance(t *testing.T) {
	const sheddable = "X-Request-Criticality: SHEDDABLE\r\n"
	get := func(path, fields string) string { return "GET " + path + " HTTP/1.1\r\nHost: x\r\n" + fields + "\r\n" }
	for _, row := range []struct {
		name, request string
		seen          int // of two
	}{
		{"labelled", get("/", sheddable), 0},
		{"in lower case", get("/?a=%41", "x-request-criticality:\tsheddable \r\n"), 0},
		{"twice", get("/", "X-Request-Criticality: CRITICAL\r\n"+sheddable), 0},
		{"in the baggage", get("/", "baggage: a=b, criticality=SHEDDABLE_PLUS;c\r\n"), 0},
		{"no time left", get("/", "X-Envoy-Expected-Rq-Timeout-Ms: 0\r\n"), 2},
		{"of another method", "DELETE / HTTP/1.1\r\nHost: x\r\n" + sheddable + "\r\n", 0},
		{"not labelled", get("/", ""), 2},
		{"exempt", get("/healthz", sheddable), 2},
		{"exempt, escaped", get("/health%7a", sheddable), 2},
		{"like exempt", get("/healthz/", sheddable), 0},
		{"badly escaped", get("/%zz", sheddable), 0}, // which net/http answers by itself, and closes
	} {
		t.Run(row.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				config := busy
				config.Rand = func() float64 { return 0.5 }
				h := mustHandler(t, echo, config, HandlerConfig{})
				h.looks.Store(lookOn)
				got, seen := play(t, newSender(row.request, row.request), h, true)
				want, _ := play(t, newSender(row.request, row.request), h, false)
				if unify(t, got) != unify(t, want) || seen != row.seen {
					t.Errorf("net/http saw %d requests, want %d; answers\n%swant\n%s", seen, row.seen, unify(t, got), unify(t, want))
				}
				nothingLeft(t, h)
			})
		})
	}
}

// words are what streams of requests are made of.
var words = []string{
	"GET / HTTP/1.1\r\nHost: x\r\n\r\n",
	"GET / HTTP/1.1\r\nHost: x\r\nX-Request-Criticality: SHEDDABLE\r\n\r\n",
	"GET /vip HTTP/1.1\r\nHost: x\r\n\r\n",
	"HEAD / HTTP/1.1\r\nHost: x\r\n\r\n",
	"GET /healthz?a=%41 HTTP/1.1\r\nHost: x\r\nconnection: keep-alive\r\n\r\n",
	"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\n\r\n",
	"POST /vip HTTP/1.1\r\nHost: x\r\nContent-Length: 27\r\n\r\n",
	"POST /vip HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n",
	"PUT /vip HTTP/1.1\r\nHost: x\r\nExpect: 100-continue\r\nContent-Length: 5\r\n\r\n",
	"hello", "5\r\nhello\r\n", "1b\r\n", "\r\n", "0\r\n\r\n", "G", "X: y\r\n",
	"GET / HTTP/1.1\r\nHost: x\r\n", "GET /vip HTTP/1.1\nHost: x\n\n", "GET / HTTP/1.0\r\nConnection: keep-alive\r\n\r\n",
	"GET /vip HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n",
}

// stream returns the pieces in which a client sends what program says: a word for
// each byte, whole or in two, after the one before or apart.
func stream(program []byte) (pieces []string) {
	apart := true
	for _, b := range program {
		word := words[int(b&31)%len(words)]
		if apart {
			pieces = append(pieces, "")
		}
		if b&32 != 0 {
			pieces[len(pieces)-1] += word[:len(word)/2]
			pieces = append(pieces, "")
			word = word[len(word)/2:]
		}
		pieces[len(pieces)-1] += word
		apart = b&64 == 0
	}
	return pieces
}

// compare fails if a client is answered otherwise than without a Listener. It
// returns how many requests net/http did not see.
func compare(t *testing.T, program []byte, eager bool) (spared int) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		h := half(t, echo)
		answers := func(early bool) (string, int) {
			s := newSender(stream(program)...)
			s.eager = eager
			got, seen := play(t, s, h, early)
			// To less than four bytes at the end net/http says nothing, unless they
			// are the first that it sees.
			const garbage = "400 Content-Type: text/plain; charset=utf-8 \"400 Bad Request\"\n"
			return strings.TrimSuffix(unify(t, got), garbage), seen
		}
		got, seen := answers(true)
		want, all := answers(false)
		if got != want {
			t.Errorf("%q (eager %v): answered\n%swant\n%s", stream(program), eager, got, want)
		}
		spared = all - seen
	})
	return spared
}

// FuzzListener: whatever a client sends, and in whatever pieces, it is answered as
// it is without a Listener.
func FuzzListener(f *testing.F) {
	f.Add([]byte{0, 0, 2, 0}, false)
	f.Add([]byte{64 + 2, 6, 0, 0}, false)
	f.Add([]byte{7, 11, 0, 12, 13, 32, 0}, true)
	f.Fuzz(func(t *testing.T, program []byte, eager bool) { compare(t, program, eager) })
}

// TestStreams is the same for many streams.
func TestStreams(t *testing.T) {
	random, spared := rand.New(rand.NewPCG(1, 2)), 0
	for range 500 {
		program := make([]byte, 1+random.IntN(8))
		for i := range program {
			program[i] = byte(random.Uint32())
			if random.IntN(2) == 0 {
				program[i] &= 7 // well-formed, whole and apart
			}
		}
		spared += compare(t, program, random.IntN(4) == 0)
	}
	if spared < 100 {
		t.Errorf("only %d requests were refused early: nothing was tested", spared)
	}
}

// TestWithoutConnState: a Listener that is not told where requests end refuses
// nothing.
func TestWithoutConnState(t *testing.T) {
	h := half(t, echo)
	l := &one{make(chan net.Conn, 1), nil}
	l.conn <- newSender(plainRequest)
	c := must(NewListener(l, h).Accept())
	buf := make([]byte, 4096)
	if n, err := c.Read(buf); string(buf[:n]) != plainRequest || err != nil {
		t.Errorf("%q, %v", buf[:n], err)
	}
}

// TestHijackedConnection: on a connection that was taken over nothing is looked at,
// though it may look like requests.
func TestHijackedConnection(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tunnel := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			c, rw, err := http.NewResponseController(w).Hijack()
			if err != nil {
				t.Error(err)
				return
			}
			defer c.Close()
			for line, err := rw.ReadString('\n'); err == nil; line, err = rw.ReadString('\n') {
				fmt.Fprint(c, "> ", line)
			}
		})
		got, _ := play(t, newSender("GET /vip HTTP/1.1\r\nHost: x\r\n\r\n", plainRequest), half(t, tunnel), true)
		if want := "> GET /search?q=go HTTP/1.1\r\n> Host: example.com\r\n> \r\n"; got != want {
			t.Errorf("%q, want %q", got, want)
		}
	})
}

// TestSpell: a connection that answers by itself lets the server's timeouts begin
// anew now and then, and does not wait for a client that never reads.
func TestSpell(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := half(t, http.HandlerFunc(func(http.ResponseWriter, *http.Request) { time.Sleep(time.Minute) }))
		s := open(t, "HTTP1", h, true)
		seen := 0
		s.server.IdleTimeout = 5 * time.Second
		s.server.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			seen++
			h.ServeHTTP(w, r)
		})
		defer s.close()
		get := func(path string) int {
			r := newRequest(t, t.Context(), http.MethodGet, nil)
			r.URL.Path = path
			resp := must(s.base.RoundTrip(r))
			readAll(t, resp)
			return resp.StatusCode
		}
		for i := range 100 {
			if status := get("/"); status != 503 {
				t.Fatal(status)
			}
			if i%10 == 0 {
				if status := get("/vip"); status != 200 {
					t.Errorf("%d to a slow request after a refusal", status)
				}
			}
			time.Sleep(400 * time.Millisecond)
		}
		if seen < 20 || seen > 60 {
			t.Errorf("net/http saw %d requests of 110, want one for each second", seen)
		}
		if n := s.network.opens.Load(); n != 1 {
			t.Errorf("%d connections, want 1 that is never idle", n)
		}
		deaf := must(s.network.dial(t.Context(), "", ""))
		defer deaf.Close()
		fmt.Fprint(deaf, plainRequest)
		time.Sleep(time.Minute)
		if _, err := fmt.Fprint(deaf, plainRequest); err == nil {
			t.Error("the server still waits for its answer to be read")
		}
	})
}

// TestSentAhead: a client that sends its next request while the last one is being
// answered, of which net/http then reads the first byte, is refused early again as
// soon as it has an answer before it asks.
func TestSentAhead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := half(t, http.HandlerFunc(func(http.ResponseWriter, *http.Request) { time.Sleep(time.Minute) }))
		s := open(t, "HTTP1", h, true)
		seen := 0
		s.server.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			seen++
			h.ServeHTTP(w, r)
		})
		defer s.close()
		c := must(s.network.dial(t.Context(), "", ""))
		defer c.Close()
		answers := bufio.NewReader(c)
		ask := func(status int, requests ...string) {
			go func() {
				for _, r := range requests {
					fmt.Fprint(c, r) // returns when all of it was read
					time.Sleep(time.Second)
				}
			}()
			for range requests {
				resp := must(http.ReadResponse(answers, nil))
				readAll(t, resp)
				if resp.StatusCode != status {
					t.Errorf("status %d, want %d", resp.StatusCode, status)
				}
			}
			synctest.Wait()
		}
		const vip = "GET /vip HTTP/1.1\r\nHost: x\r\n\r\n"
		for i, step := range []struct {
			status   int
			requests []string
			seen     int
		}{
			{503, []string{plainRequest}, 0},
			{200, []string{vip, vip}, 2},
			{503, []string{plainRequest}, 2},
			{200, []string{vip, vip, vip}, 5},
			{503, []string{plainRequest}, 5},
		} {
			if ask(step.status, step.requests...); seen != step.seen {
				t.Errorf("step %d: net/http saw %d requests, want %d", i, seen, step.seen)
			}
		}
	})
}

// TestLooks: connections are looked at while requests are refused, and no longer.
func TestLooks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := half(t, echo)
		h.looks.Store(0)
		if _, seen := play(t, newSender(plainRequest, plainRequest, plainRequest), h, true); seen != 1 {
			t.Errorf("net/http saw %d requests, want the first, whose refusal shows that there is reason to look", seen)
		}
		vip := strings.Repeat("GET /vip HTTP/1.1\r\nHost: x\r\n\r\n|", lookOn+1)
		if _, seen := play(t, newSender(strings.Split(vip, "|")...), h, true); seen != lookOn+1 || h.looks.Load() != 0 {
			t.Errorf("%d seen, %d looks left", seen, h.looks.Load())
		}
	})
}

func BenchmarkEarlyRefusal(b *testing.B) {
	const text = "GET /search?q=go HTTP/1.1\r\nHost: example.com:8080\r\nUser-Agent: Go-http-client/1.1\r\n" +
		headerCriticality + ": SHEDDABLE\r\nAccept-Encoding: gzip\r\n\r\n"
	plain := mustHandler(b, echo, swamped, HandlerConfig{})
	for _, bench := range []struct {
		name    string
		handler *Handler
	}{{"plain", plain}, {"classified", half(b, echo)}} {
		b.Run(bench.name, func(b *testing.B) {
			c := &conn{Conn: repeat(""), handler: bench.handler, peer: "10.0.0.1:1"}
			bench.handler.looks.Store(1 << 40)
			c.owed.Store(atBoundary)
			buf := make([]byte, 4096)
			b.ReportAllocs()
			for b.Loop() {
				if refused, err := c.examine(buf[:copy(buf, text)]); !refused || err != nil {
					c.endSpell()
					c.owed.Store(atBoundary)
				}
			}
		})
	}
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
