package mongoproxy

import (
	"bytes"
	"context"
	"encoding/binary"
	"io"
	"net"
	"runtime"
	"sync"
	"testing"
	"time"

	"github.com/seed90641741/spillway"
	"github.com/seed90641741/spillway/cmd/spillway/internal/gateway/config"
	"github.com/seed90641741/spillway/cmd/spillway/internal/gateway/mongoproxy/wire"
	"github.com/seed90641741/spillway/internal/mongowire"
)

func u32(n uint32) []byte { return binary.LittleEndian.AppendUint32(nil, n) }

// raw is a message with any code and any length.
func raw(length, code int32, parts ...[]byte) []byte {
	rest := bytes.Join(parts, nil)
	if length == 0 {
		length = int32(mongowire.HeaderSize + len(rest))
	}
	return append(mongowire.Header{Length: length, RequestID: 7, OpCode: code}.Append(nil), rest...)
}

// TestWhatIsWrongIsClosed: a malformed message closes its connection with a reason, and does
// not affect another one.
func TestWhatIsWrongIsClosed(t *testing.T) {
	body := func(doc []byte) []byte { return append([]byte{0}, doc...) }
	lying := bytes.Clone(ping)
	lying[0] += 40
	inner := bytes.Clone(ping)
	inner[bytes.IndexByte(inner, mongowire.KindString)+5] += 100 // the length of a string
	secret := raw(0, mongowire.OpCompressed, u32(mongowire.OpMsg), u32(uint32(5+len(ping))), []byte{0}, u32(0), body(doc(func(b *mongowire.Builder) {
		b.Int("saslStart", 1)
	})))
	for _, test := range []struct {
		name    string
		message []byte
		reason  Reason
		hangUp  bool
	}{
		{"no length", raw(1, mongowire.OpMsg), Malformed, false},
		{"a negative length", raw(-5, mongowire.OpMsg), Malformed, false},
		{"48 MB and a byte", raw(mongowire.MaxMessageSize+1, mongowire.OpMsg, u32(0)), Malformed, false},
		{"an unknown code", raw(0, 9999, u32(0), body(ping)), Malformed, false},
		{"a reply", raw(0, mongowire.OpReply, make([]byte, 20), ping), Malformed, false},
		{"an insert of long ago", raw(0, 2002, u32(0), []byte("a.b\x00"), ping), Malformed, false},
		{"a message without anything", raw(0, mongowire.OpMsg), Malformed, false},
		{"no body", raw(0, mongowire.OpMsg, u32(0)), Malformed, false},
		{"an empty body", raw(0, mongowire.OpMsg, u32(0), body([]byte{5, 0, 0, 0, 0})), Malformed, false},
		{"two bodies", raw(0, mongowire.OpMsg, u32(0), body(ping), body(ping)), Malformed, false},
		{"unknown flags", raw(0, mongowire.OpMsg, u32(1<<9), body(ping)), Malformed, false},
		{"an unknown section", raw(0, mongowire.OpMsg, u32(0), []byte{7}, ping), Malformed, false},
		{"a body that is too long", raw(0, mongowire.OpMsg, u32(0), body(lying)), Malformed, false},
		{"a body that ends early", raw(0, mongowire.OpMsg, u32(0), body(ping), []byte{0, 0}), Malformed, false},
		{"a string that is too long", raw(0, mongowire.OpMsg, u32(0), body(inner)), Malformed, false},
		{"a sequence that is too long", raw(0, mongowire.OpMsg, u32(0), body(ping), []byte{1}, u32(99), []byte("a\x00")), Malformed, false},
		{"a query that is none", raw(0, mongowire.OpQuery, u32(0), []byte("test.c\x00"), u32(0), u32(1), ping), Malformed, false},
		{"a query cut short", raw(0, mongowire.OpQuery, u32(0), []byte("admin.$cmd")), Malformed, false},
		{"compressed by nobody", raw(0, mongowire.OpCompressed, u32(mongowire.OpMsg), u32(10), []byte{9}, ping), Malformed, false},
		{"compressed nonsense", raw(0, mongowire.OpCompressed, u32(mongowire.OpMsg), u32(10), []byte{mongowire.CompressorZstd}, ping), Malformed, false},
		{"compressed to too much", raw(0, mongowire.OpCompressed, u32(mongowire.OpMsg), u32(mongowire.MaxMessageSize), []byte{0}, ping), Malformed, false},
		{"compressed twice", raw(0, mongowire.OpCompressed, u32(mongowire.OpCompressed), u32(uint32(len(ping))), []byte{0}, ping), Malformed, false},
		{"a secret that is compressed", secret, Malformed, false},
		{"a hello that is too long", msg(7, 0, doc(func(b *mongowire.Builder) {
			b.Int("hello", 1)
			b.Text("comment", string(make([]byte, 100<<10)))
		})), Malformed, false},
		{"half a header", raw(0, mongowire.OpMsg)[:7], Cut, true},
		{"half a message", msg(7, 0, ping)[:30], Cut, true},
		{"half a message that is long", raw(1<<20, mongowire.OpMsg, u32(0), body(ping)), Cut, true},
		{"half a header, and nothing more", raw(0, mongowire.OpMsg)[:7], Stalled, false},
		{"half a message, and nothing more", msg(7, 0, ping)[:30], Stalled, false},
		{"TLS", []byte{0x16, 3, 1, 2, 0, 1, 0, 1, 0xfc, 3, 3}, NotTLS, false},
	} {
		t.Run(test.name, func(t *testing.T) {
			s := newServer(t, fine)
			f := newFront(t, func(m *config.Mongo) { m.StallTimeout = 100 * time.Millisecond }, s)
			neighbour := f.dial()
			neighbour.ask(hello(false))
			p := f.dial()
			if test.reason != NotTLS {
				p.ask(hello(false))
			}
			p.send(test.message)
			if test.hangUp {
				_ = p.Close()
			} else {
				p.ended()
			}
			f.closed(test.reason)
			if !isOK(neighbour.ask(msg(2, 0, ping))) {
				t.Error("the neighbour was disturbed")
			}
			eventually(t, "one connection left", func() bool { return s.count() == 1 })
		})
	}
}

// outcomes is an observer that counts how commands ended for the shedder.
type outcomes struct {
	mu    sync.Mutex
	count map[spillway.Outcome]int
}

func (o *outcomes) Observe(e spillway.Event) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if e.Policy == "shed" {
		o.count[e.Outcome]++
	}
}

// TestWhoseFault: a command that the client aborts says nothing about the server; a command
// that the server aborts does.
func TestWhoseFault(t *testing.T) {
	s := newServer(t, func(h mongowire.Header, rest []byte) [][]byte {
		if h.RequestID == 66 {
			return nil
		}
		return fine(h, rest)
	})
	seen := &outcomes{count: make(map[spillway.Outcome]int)}
	f := newFront(t, func(m *config.Mongo) { m.Shed.Mode = "enforce" }, s)
	if err := f.drain(); err != nil {
		t.Fatal(err)
	}
	f.Proxy = New(context.Background(), Config{Observer: seen}) // one with an observer
	f.put()
	for _, test := range []struct {
		message []byte
		want    spillway.Outcome
	}{
		{msg(7, 0, commanding("insert", func(b *mongowire.Builder) { b.Text("x", string(make([]byte, 1<<20))) }))[:100<<10], spillway.OutcomeAbandoned},
		{msg(66, 0, ping), spillway.OutcomeFailed},
	} {
		p := dialTo(t, f.Addr("m").String())
		p.ask(hello(true))
		p.send(test.message)
		if test.want == spillway.OutcomeAbandoned {
			_ = p.Conn.(*net.TCPConn).CloseWrite()
		}
		p.ended()
		eventually(t, test.want.String(), func() bool {
			seen.mu.Lock()
			defer seen.mu.Unlock()
			return seen.count[test.want] == 1
		})
	}
}

// TestServersThatAreWrong: a misbehaving server does not affect other connections either.
func TestServersThatAreWrong(t *testing.T) {
	long := doc(func(b *mongowire.Builder) { b.Text("x", string(make([]byte, 1<<20))) })
	for _, test := range []struct {
		name   string
		answer func(mongowire.Header) [][]byte
		reason Reason
	}{
		{"hangs up", func(mongowire.Header) [][]byte { return nil }, HungUp},
		{"half an answer", func(h mongowire.Header) [][]byte { return [][]byte{msg(h.RequestID, 0, okDoc)[:20]} }, HungUp},
		{"half an answer that is long", func(h mongowire.Header) [][]byte {
			return [][]byte{mongowire.AppendMsg(nil, 1, h.RequestID, 0, long)[:100<<10]}
		}, HungUp},
		{"no length", func(mongowire.Header) [][]byte { return [][]byte{raw(3, mongowire.OpMsg)} }, Broken},
		{"another answer", func(h mongowire.Header) [][]byte {
			return [][]byte{mongowire.AppendMsg(nil, 1, h.RequestID+1, 0, okDoc)}
		}, Broken},
		{"no answer", func(h mongowire.Header) [][]byte {
			return [][]byte{mongowire.Header{Length: 16, ResponseTo: h.RequestID, OpCode: mongowire.OpMsg}.Append(nil)}
		}, Broken},
	} {
		t.Run(test.name, func(t *testing.T) {
			s := newServer(t, func(h mongowire.Header, rest []byte) [][]byte {
				if h.RequestID == 66 {
					return test.answer(h)
				}
				return fine(h, rest)
			})
			f := newFront(t, func(m *config.Mongo) { m.StallTimeout = 100 * time.Millisecond }, s)
			neighbour, p := f.dial(), f.dial()
			neighbour.ask(hello(false))
			p.ask(hello(false))
			p.send(msg(66, 0, ping))
			p.ended()
			f.closed(test.reason)
			if !isOK(neighbour.ask(msg(2, 0, ping))) {
				t.Error("the neighbour was disturbed")
			}
		})
	}
}

// TestMemoryIsBounded sends messages of the maximum length in both directions, complete and
// stalled, many at a time.
func TestMemoryIsBounded(t *testing.T) {
	if testing.Short() {
		t.Skip("moves a few hundred megabytes")
	}
	const clients = 6
	big := doc(func(b *mongowire.Builder) {
		b.Value("data", mongowire.Value{Kind: mongowire.KindBinary, Data: append(append(u32(mongowire.MaxMessageSize-60), 0), make([]byte, mongowire.MaxMessageSize-60)...)})
	})
	answer := mongowire.AppendMsg(nil, 1, 77, 0, big)
	s := newServer(t, func(h mongowire.Header, rest []byte) [][]byte {
		if h.RequestID == 77 {
			return [][]byte{answer}
		}
		return fine(h, rest)
	})
	f := newFront(t, nil, s)
	all := make([]*peer, clients)
	ask := msg(77, 0, ping)
	insert := doc(func(b *mongowire.Builder) { b.Text("insert", "c"); b.Text("$db", "test") })
	length := int32(mongowire.MaxMessageSize)
	head := raw(length, mongowire.OpMsg, u32(0), []byte{0}, insert, []byte{1}, u32(uint32(length)-16-4-1-uint32(len(insert))-1), []byte("documents\x00"))
	zeros := make([]byte, 1<<20)
	for i := range all {
		all[i] = f.dial()
		all[i].ask(hello(false))
	}
	before := heap()
	for _, p := range all { // half of a document of 48 MB from each
		p.send(head)
		for range 20 {
			p.send(zeros)
		}
	}
	// The server reads them into memory, which is the test's; the proxy must not.
	if grown := heap() - before; grown > clients*mongowire.MaxMessageSize+16<<20 {
		t.Errorf("memory has grown by %d MB while %d clients send 48 MB each", grown>>20, clients)
	}
	for _, p := range all {
		left := int(length) - len(head) - 20<<20
		for left > 0 {
			n := min(left, len(zeros))
			p.send(zeros[:n])
			left -= n
		}
		if _, doc := p.receive(); !isOK(doc) {
			t.Fatal("48 MB were not taken")
		}
	}
	before = heap()
	for _, p := range all {
		p.send(ask)
	}
	if neighbour := f.dial(); !isOK(neighbour.ask(msg(2, 0, ping))) {
		t.Error("somebody waits for clients that do not read")
	}
	for _, p := range all { // the others wait with 48 MB that are not read
		if _, err := io.CopyN(io.Discard, p.src, int64(len(answer))); err != nil {
			t.Fatal(err)
		}
	}
	if grown := heap() - before; grown > 8<<20 {
		t.Errorf("memory has grown by %d MB while %d clients were sent 48 MB each", grown>>20, clients)
	}
	for _, p := range all {
		if !isOK(p.ask(msg(2, 0, ping))) {
			t.Error("not as before")
		}
	}
}

// TestServerLeavesSender: if a server hangs up during a long message, the reason is the
// server, not the client.
func TestServerLeavesSender(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("nothing tells")
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	f := newFront(t, func(m *config.Mongo) { m.Endpoints = []string{l.Addr().String()} })
	p := f.dial()
	rest := uint32(mongowire.MaxMessageSize - mongowire.HeaderSize - 4 - 1 - len(ping) - 1)
	first := msg(1, 0, ping)
	p.send(first)
	c, err := l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := io.CopyN(io.Discard, c, int64(len(first))); err != nil {
		t.Fatal(err)
	}
	if _, err := c.Write(mongowire.AppendMsg(nil, 1, 1, 0, okDoc)); err != nil {
		t.Fatal(err)
	}
	p.receive()
	p.send(raw(mongowire.MaxMessageSize, mongowire.OpMsg, u32(0), []byte{0}, ping, []byte{1}, u32(rest), []byte("a\x00"), make([]byte, 1<<20)))
	if _, err := io.CopyN(io.Discard, c, 1<<20); err != nil {
		t.Fatal(err)
	}
	_ = c.Close()
	for err == nil { // until the proxy hangs up
		_, err = p.Write(make([]byte, 1<<20))
	}
	f.closed(HungUp)
}

// TestSlowReader: a client that does not read its answer is disconnected.
func TestSlowReader(t *testing.T) {
	answer := mongowire.AppendMsg(nil, 1, 77, 0, doc(func(b *mongowire.Builder) { b.Text("x", string(make([]byte, 30<<20))) }))
	s := newServer(t, func(h mongowire.Header, rest []byte) [][]byte {
		if h.RequestID == 77 {
			return [][]byte{answer}
		}
		return fine(h, rest)
	})
	f := newFront(t, func(m *config.Mongo) { m.StallTimeout = 200 * time.Millisecond }, s)
	p := f.dial()
	p.ask(hello(false))
	p.send(msg(77, 0, ping))
	f.closed(Stalled)
	eventually(t, "gone", func() bool { return s.count() == 0 })
}

// heap is how much memory is in use.
func heap() int64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

// FuzzConnection sends arbitrary bytes on a connection, and checks that another connection is
// still served.
func FuzzConnection(f *testing.F) {
	for _, seed := range [][]byte{
		msg(1, 0, ping), hello(true), msg(2, mongowire.MoreToCome, ping), msg(2, mongowire.ChecksumPresent, ping),
		raw(0, mongowire.OpQuery, u32(4), []byte("admin.$cmd\x00"), u32(0), u32(1), ping),
		raw(0, mongowire.OpCompressed, u32(mongowire.OpMsg), u32(uint32(5+len(ping))), []byte{0}, u32(0), []byte{0}, ping),
		msg(1, 0, ping)[:20], raw(1<<20, mongowire.OpMsg, ping), append(hello(false), msg(3, mongowire.ExhaustAllowed, ping)...),
	} {
		f.Add(seed)
	}
	s := newServer(f, func(h mongowire.Header, rest []byte) [][]byte {
		if h.RequestID%5 == 4 {
			return overload(h)
		}
		return fine(h, rest)
	})
	front := newFront(f, func(m *config.Mongo) {
		m.StallTimeout = 50 * time.Millisecond
		m.Retry.MaxRetries = 1
		m.Classes = []config.MongoClass{{Databases: []string{"test"}, Customer: "database"}}
	}, s)
	neighbour := front.dial()
	f.Fuzz(func(t *testing.T, data []byte) {
		if err := neighbour.SetDeadline(time.Now().Add(5 * time.Second)); err != nil {
			t.Fatal(err)
		}
		neighbour.tb = t
		p := dialTo(t, front.addr)
		p.send(data)
		_ = p.Conn.(interface{ CloseWrite() error }).CloseWrite()
		_, _ = io.Copy(io.Discard, p)
		if !isOK(neighbour.ask(msg(1, 0, ping))) {
			t.Error("the neighbour was disturbed")
		}
		// Connections that wait before a retry end later.
		eventually(t, "few connections left", func() bool { return s.count() <= 20 })
	})
}

// FuzzCommand parses arbitrary bytes as a message: it must not panic, and positions must be
// consistent.
func FuzzCommand(f *testing.F) {
	f.Add(msg(1, 0, ping), 0)
	f.Add(hello(true), 3)
	f.Add(raw(0, mongowire.OpQuery, u32(4), []byte("admin.$cmd\x00"), u32(0), u32(1), ping), 0)
	f.Add(raw(0, mongowire.OpCompressed, u32(mongowire.OpMsg), u32(uint32(5+len(ping))), []byte{0}, u32(0), []byte{0}, ping), 0)
	f.Fuzz(func(t *testing.T, data []byte, rest int) {
		if len(data) < mongowire.HeaderSize || rest < 0 || rest > 1<<20 {
			return
		}
		h := mongowire.ParseHeader(data)
		h.Length = int32(len(data) + rest)
		fr := wire.Frame{Header: h, Head: data, Rest: rest}
		space := make([]byte, wire.PageSize)
		var c wire.Command
		if err := c.Read(fr, space); err == nil {
			_, _, _, _, _ = c.Timeout(), c.Access(), c.Unacknowledged(), c.Waits(), wire.NewHandshake(c.Doc)
			_ = wire.Claimant(c.Doc)
			c.Shorten(fr, time.Second)
			if rest == 0 && h.OpCode == mongowire.OpMsg && c.Name == nil {
				t.Error("a whole message without a name")
			}
		}
		if v, err := wire.Judge(fr, space, true); err == nil && v.Overloaded && !v.Failed {
			t.Error("overloaded, but not failed")
		}
		if doc, _, ok := wire.Document(fr); ok {
			seen := wire.Mask{Hide: true, Service: [12]byte{1}}.Apply(doc)
			if _, rest, err := mongowire.Document(seen); err != nil || len(rest) > 0 {
				t.Errorf("a hello became malformed: %v", err)
			}
		}
	})
}
