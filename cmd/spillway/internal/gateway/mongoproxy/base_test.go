package mongoproxy

import (
	"bufio"
	"bytes"
	"compress/zlib"
	"context"
	"encoding/binary"
	"errors"
	"io"
	"log/slog"
	"net"
	"os"
	"sync"
	"testing"
	"time"

	"github.com/klauspost/compress/zstd"

	"github.com/seed90641741/spillway"
	"github.com/seed90641741/spillway/cmd/spillway/internal/gateway/config"
	"github.com/seed90641741/spillway/internal/admin/accounts"
	"github.com/seed90641741/spillway/internal/mongowire"
)

// A server is a minimal server: its field answer makes the answer to each message.
type server struct {
	net.Listener

	answer func(head mongowire.Header, rest []byte) [][]byte // the messages to send; nil hangs up
	conns  sync.WaitGroup
	mu     sync.Mutex
	open   map[net.Conn]bool
}

func newServer(t testing.TB, answer func(mongowire.Header, []byte) [][]byte) *server {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s := &server{Listener: l, answer: answer, open: make(map[net.Conn]bool)}
	s.conns.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			s.mu.Lock()
			s.open[c] = true
			s.mu.Unlock()
			s.conns.Go(func() { s.serve(c) })
		}
	})
	t.Cleanup(func() {
		_ = l.Close()
		s.hangUp()
		s.conns.Wait()
	})
	return s
}

func (s *server) hangUp() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for c := range s.open {
		_ = c.Close()
	}
}

func (s *server) count() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.open)
}

func (s *server) serve(c net.Conn) {
	defer func() {
		_ = c.Close()
		s.mu.Lock()
		defer s.mu.Unlock()
		delete(s.open, c)
	}()
	src := bufio.NewReaderSize(c, 64<<10)
	head := make([]byte, mongowire.HeaderSize)
	var rest []byte
	for {
		if _, err := io.ReadFull(src, head); err != nil {
			return
		}
		h := mongowire.ParseHeader(head)
		n := int(h.Length) - mongowire.HeaderSize
		if n < 0 {
			return
		}
		if cap(rest) < n {
			rest = make([]byte, n)
		}
		rest = rest[:n]
		if _, err := io.ReadFull(src, rest); err != nil {
			return
		}
		answers := s.answer(h, rest)
		if answers == nil {
			return
		}
		for _, a := range answers {
			if _, err := c.Write(a); err != nil {
				return
			}
		}
	}
}

var (
	okDoc = doc(func(b *mongowire.Builder) { b.Double("ok", 1) })
	ping  = doc(func(b *mongowire.Builder) { b.Int("ping", 1); b.Text("$db", "test") })
)

func doc(fill func(*mongowire.Builder)) []byte {
	var b mongowire.Builder
	fill(&b)
	return b.Document()
}

// fine answers each message that expects an answer with ok.
func fine(h mongowire.Header, rest []byte) [][]byte {
	if h.OpCode == mongowire.OpQuery {
		return [][]byte{mongowire.AppendReply(nil, 1, h.RequestID, okDoc)}
	}
	if h.OpCode == mongowire.OpMsg && len(rest) > 4 && binary.LittleEndian.Uint32(rest)&mongowire.MoreToCome != 0 {
		return [][]byte{}
	}
	return [][]byte{mongowire.AppendMsg(nil, 1, h.RequestID, 0, okDoc)}
}

// msg is an OP_MSG.
func msg(id int32, flags uint32, doc []byte) []byte {
	return mongowire.AppendMsg(nil, id, 0, flags, doc)
}

func hello(backpressure bool) []byte {
	return msg(1, 0, doc(func(b *mongowire.Builder) {
		b.Int("hello", 1)
		if backpressure {
			b.Bool("backpressure", true)
		}
		b.Text("$db", "admin")
	}))
}

// A front is a proxy in front of servers, with the listener "m".
type front struct {
	*Proxy

	tb     testing.TB
	config *config.Config
	book   *accounts.Book
	addr   string
}

func newFront(tb testing.TB, change func(*config.Mongo), servers ...*server) *front {
	tb.Helper()
	return newObserved(tb, nil, change, servers...)
}

// newObserved is newFront with an observer.
func newObserved(tb testing.TB, by spillway.Observer, change func(*config.Mongo), servers ...*server) *front {
	tb.Helper()
	m := config.Mongo{Name: "m", Address: "127.0.0.1:0"}
	for _, s := range servers {
		m.Endpoints = append(m.Endpoints, s.Addr().String())
	}
	if change != nil {
		change(&m)
	}
	f := &front{tb: tb, config: &config.Config{Mode: "enforce", DrainTimeout: time.Second, Mongo: []config.Mongo{m}}}
	logger := slog.New(slog.DiscardHandler)
	if t, ok := tb.(*testing.T); ok {
		logger = slog.New(slog.NewTextHandler(t.Output(), nil))
	}
	f.book = new(accounts.Book)
	f.Proxy = New(context.Background(), Config{Logger: logger, Observer: by, Accounts: f.book})
	f.put()
	f.addr = f.Addr("m").String()
	tb.Cleanup(func() { _ = f.drain() })
	return f
}

func (f *front) drain() error {
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	return f.Drain(ctx)
}

// Update puts a configuration in place.
func (p *Proxy) Update(c *config.Config) error {
	n, err := p.Prepare(c)
	if err == nil {
		n.Commit()
	}
	return err
}

func (f *front) put() {
	f.tb.Helper()
	if err := f.config.Check(); err != nil {
		f.tb.Fatal(err)
	}
	if err := f.Update(f.config.Defaulted()); err != nil {
		f.tb.Fatal(err)
	}
}

func (f *front) stats() Stats { return f.Stats(time.Now())[0] }

// closed waits until a connection was closed for a reason.
func (f *front) closed(r Reason) {
	f.tb.Helper()
	eventually(f.tb, "closed: "+r.String(), func() bool { return f.stats().Closed[r] > 0 })
}

// eventually waits until is returns true, for at most ten seconds.
func eventually(tb testing.TB, what string, is func() bool) {
	tb.Helper()
	ticks := time.NewTicker(time.Millisecond)
	defer ticks.Stop()
	for end := time.Now().Add(time.Minute); time.Now().Before(end); <-ticks.C {
		if is() {
			return
		}
	}
	tb.Fatalf("not %s after a minute", what)
}

// A peer is a client that sends and receives raw messages.
type peer struct {
	net.Conn

	tb  testing.TB
	src *bufio.Reader
}

func (f *front) dial() *peer {
	f.tb.Helper()
	return dialTo(f.tb, f.addr)
}

func dialTo(tb testing.TB, addr string) *peer {
	tb.Helper()
	c, err := net.Dial("tcp", addr)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { _ = c.Close() })
	if err := c.SetDeadline(time.Now().Add(20 * time.Second)); err != nil {
		tb.Fatal(err)
	}
	return &peer{c, tb, bufio.NewReader(c)}
}

func (p *peer) send(b []byte) {
	p.tb.Helper()
	if _, err := p.Write(b); err != nil {
		p.tb.Fatal(err)
	}
}

// receive reads a message.
func (p *peer) receive() (mongowire.Header, []byte) {
	p.tb.Helper()
	h, doc, err := p.try()
	if err != nil {
		p.tb.Fatal(err)
	}
	return h, doc
}

// try reads a message and returns its document.
func (p *peer) try() (h mongowire.Header, doc []byte, err error) {
	head := make([]byte, mongowire.HeaderSize)
	if _, err := io.ReadFull(p.src, head); err != nil {
		return h, nil, err
	}
	h = mongowire.ParseHeader(head)
	rest := make([]byte, int(h.Length)-mongowire.HeaderSize)
	if _, err := io.ReadFull(p.src, rest); err != nil {
		return h, nil, err
	}
	switch h.OpCode {
	case mongowire.OpMsg:
		return h, rest[5:], nil
	case mongowire.OpReply:
		return h, rest[20:], nil
	default:
		return h, rest, nil
	}
}

// ask sends a message and returns the document of the answer.
func (p *peer) ask(b []byte) []byte {
	p.tb.Helper()
	p.send(b)
	h, doc := p.receive()
	if want := mongowire.ParseHeader(b).RequestID; h.ResponseTo != want {
		p.tb.Fatalf("an answer to %d, want %d", h.ResponseTo, want)
	}
	return doc
}

// isOK reports whether a document says that a command has succeeded.
func isOK(doc []byte) bool { return mongowire.Lookup(doc, "ok").True() }

// ended checks that the proxy closes the connection.
func (p *peer) ended() {
	p.tb.Helper()
	if h, doc, err := p.try(); err == nil || errors.Is(err, os.ErrDeadlineExceeded) {
		p.tb.Fatalf("got %+v %x, error %v; want the end of the connection", h, doc, err)
	}
}

// labels returns the error labels of an answer.
func labels(doc []byte) string {
	var all [][]byte
	for _, v := range mongowire.Elements(mongowire.Lookup(doc, "errorLabels").Array()) {
		all = append(all, v.Text())
	}
	return string(bytes.Join(all, []byte(" ")))
}

// overload is an answer of a server that is overloaded.
func overload(h mongowire.Header) [][]byte {
	return [][]byte{mongowire.AppendMsg(nil, 1, h.RequestID, 0, rejection("busy", 0, true))}
}

// compressed returns data by a compressor.
func compressed(t testing.TB, by byte, data []byte) []byte {
	t.Helper()
	switch by {
	case mongowire.CompressorZlib:
		var b bytes.Buffer
		w := zlib.NewWriter(&b)
		if err := errors.Join(write(w, data), w.Close()); err != nil {
			t.Fatal(err)
		}
		return b.Bytes()
	case mongowire.CompressorZstd:
		var b bytes.Buffer
		w, err := zstd.NewWriter(&b)
		if err == nil {
			err = errors.Join(write(w, data), w.Close())
		}
		if err != nil {
			t.Fatal(err)
		}
		return b.Bytes()
	}
	return data
}

func write(w io.Writer, data []byte) error {
	_, err := w.Write(data)
	return err
}
