package mongoproxy

import (
	"bufio"
	"crypto/tls"
	"encoding/binary"
	"io"
	"net"
	"sync/atomic"
	"testing"
	"time"

	"github.com/seed90641741/spillway/cmd/spillway/internal/gateway/config"
	"github.com/seed90641741/spillway/cmd/spillway/internal/gateway/mongoproxy/wire"
	"github.com/seed90641741/spillway/cmd/spillway/internal/gateway/resources"
	"github.com/seed90641741/spillway/internal/mongowire"
)

// counting answers every message with ok, and counts them.
func counting(n *atomic.Int64) func(mongowire.Header, []byte) [][]byte {
	return func(h mongowire.Header, rest []byte) [][]byte {
		n.Add(1)
		return fine(h, rest)
	}
}

// TestProxyCertificateIsNotLent: a client cannot authenticate by X.509 with the
// certificate of the proxy, in whatever form it tries, unless the configuration says so.
func TestProxyCertificateIsNotLent(t *testing.T) {
	authenticate := func(b *mongowire.Builder) {
		b.Int("authenticate", 1)
		b.Text("mechanism", "MONGODB-X509")
		b.Text("$db", "$external")
	}
	inner := doc(authenticate)
	speculative := func(b *mongowire.Builder, docs ...[]byte) {
		b.Int("hello", 1)
		for _, d := range docs {
			b.Value("speculativeAuthenticate", mongowire.Value{Kind: mongowire.KindDocument, Data: d})
		}
		b.Text("$db", "admin")
	}
	scram := doc(func(b *mongowire.Builder) { b.Int("saslStart", 1); b.Text("mechanism", "SCRAM-SHA-256") })
	legacy := func(d []byte) []byte {
		return raw(0, mongowire.OpQuery, u32(0), []byte("admin.$cmd\x00"), u32(0), u32(1), d)
	}
	for name, c := range map[string]struct {
		message  []byte
		rejected bool
	}{
		"authenticate":                   {msg(7, 0, doc(authenticate)), true},
		"authenticate without mechanism": {msg(7, 0, doc(func(b *mongowire.Builder) { b.Int("authenticate", 1); b.Text("$db", "$external") })), true},
		"two mechanisms": {msg(7, 0, doc(func(b *mongowire.Builder) {
			b.Int("authenticate", 1)
			b.Text("mechanism", "SCRAM-SHA-256")
			b.Text("mechanism", "MONGODB-X509")
			b.Text("$db", "$external")
		})), true},
		"saslStart": {msg(7, 0, doc(func(b *mongowire.Builder) {
			b.Int("saslStart", 1)
			b.Text("mechanism", "MONGODB-X509")
			b.Text("$db", "$external")
		})), true},
		"hello":               {msg(7, 0, doc(func(b *mongowire.Builder) { speculative(b, inner) })), true},
		"hello with two":      {msg(7, 0, doc(func(b *mongowire.Builder) { speculative(b, scram, inner) })), true},
		"an old hello":        {legacy(doc(func(b *mongowire.Builder) { speculative(b, inner) })), true},
		"an old authenticate": {legacy(doc(authenticate)), true},
		"SCRAM": {msg(7, 0, doc(func(b *mongowire.Builder) {
			b.Int("saslStart", 1)
			b.Text("mechanism", "SCRAM-SHA-256")
			b.Text("$db", "admin")
		})), false},
		"SCRAM in a hello": {msg(7, 0, doc(func(b *mongowire.Builder) { speculative(b, scram) })), false},
		"a find with such a field": {msg(7, 0, doc(func(b *mongowire.Builder) {
			b.Text("find", "c")
			b.Text("mechanism", "MONGODB-X509")
			b.Text("$db", "test")
		})), false},
	} {
		for _, lent := range []bool{false, true} {
			t.Run(name, func(t *testing.T) {
				cert, key := certificate(t)
				var seen atomic.Int64
				s := newServer(t, counting(&seen))
				s.Listener = nil
				pair, err := tls.LoadX509KeyPair(cert, key)
				if err != nil {
					t.Fatal(err)
				}
				l, err := tls.Listen("tcp", "127.0.0.1:0", &tls.Config{Certificates: []tls.Certificate{pair}})
				if err != nil {
					t.Fatal(err)
				}
				s.conns.Go(func() {
					for {
						c, err := l.Accept()
						if err != nil {
							return
						}
						s.conns.Go(func() { s.serve(c) })
					}
				})
				t.Cleanup(func() { _ = l.Close() })
				f := newFront(t, func(m *config.Mongo) {
					m.Endpoints = []string{l.Addr().String()}
					m.UpstreamTLS = &config.ClientTLS{CA: cert, Certificate: cert, Key: key}
					m.SharedX509 = lent
				})
				p := f.dial()
				p.ask(hello(false))
				before := seen.Load()
				p.send(c.message)
				_, answer := p.receive()
				rejected := !isOK(answer)
				if want := c.rejected && !lent; rejected != want || rejected != (seen.Load() == before) {
					t.Errorf("lent %v: rejected %v, want %v; the server saw %d messages", lent, rejected, want, seen.Load()-before)
				}
				if n, _ := mongowire.Lookup(answer, "code").Number(); rejected && n != 18 {
					t.Errorf("code %v, want AuthenticationFailed", n)
				}
				if !isOK(p.ask(hello(false))) {
					t.Error("the connection does not go on")
				}
			})
		}
	}
}

// TestBeforeAuthentication: a connection that has to authenticate can send short
// messages, a few commands, and any number of hellos.
func TestBeforeAuthentication(t *testing.T) {
	var seen atomic.Int64
	f := newFront(t, func(m *config.Mongo) { m.Authentication = true }, newServer(t, counting(&seen)))
	long := doc(func(b *mongowire.Builder) {
		b.Int("ping", 1)
		b.Text("x", string(make([]byte, wire.PageSize)))
		b.Text("$db", "test")
	})

	monitor := f.dial()
	for range 3 * maxUnprovenCommands {
		if !isOK(monitor.ask(hello(false))) {
			t.Fatal("a hello is rejected")
		}
	}
	p := f.dial()
	p.ask(hello(false))
	for range maxUnprovenCommands {
		p.ask(msg(2, 0, ping))
	}
	p.send(msg(2, 0, ping))
	p.ended()

	p = f.dial()
	p.ask(hello(false))
	before := seen.Load()
	p.send(msg(2, 0, long))
	p.ended()
	if seen.Load() != before {
		t.Error("the server has seen a long message")
	}

	p = f.dial()
	p.ask(hello(false))
	p.ask(msg(2, 0, doc(func(b *mongowire.Builder) { b.Int("authenticate", 1); b.Text("$db", "$external") })))
	for range 3 * maxUnprovenCommands {
		p.ask(msg(2, 0, ping))
	}
	if !isOK(p.ask(msg(2, 0, long))) {
		t.Error("a long message is rejected after authentication")
	}
	eventually(t, "closed twice", func() bool { return f.stats().Closed[Unauthenticated] == 2 })
}

// TestFirstMessageComesBeforeTheServer: a client that does not complete its first message
// causes no connection to a server and almost no memory, whatever length it declares.
func TestFirstMessageComesBeforeTheServer(t *testing.T) {
	s := newServer(t, fine)
	f := newFront(t, func(m *config.Mongo) { m.HandshakeTimeout = 5 * time.Second }, s)
	kept := resources.Memory.Used()
	before := heap()
	var all []*peer
	for range 500 {
		p := f.dial()
		h := hello(false)
		binary.LittleEndian.PutUint32(h, maxUnprovenMessage)
		p.send(h[:40])
		all = append(all, p)
	}
	huge := f.dial()
	huge.send(raw(mongowire.MaxMessageSize, mongowire.OpMsg, u32(0)))
	huge.ended()
	eventually(t, "accepted", func() bool { return f.stats().Connections.Open >= 500 })
	if n := s.count(); n != 0 {
		t.Errorf("%d connections to the server", n)
	}
	if grown := heap() - before; grown > 500*(20<<10) {
		t.Errorf("memory has grown by %d KB for 500 connections", grown>>10)
	}
	if !isOK(f.dial().ask(hello(false))) {
		t.Error("an honest client is shut out")
	}
	for _, p := range all {
		p.ended()
	}
	eventually(t, "given back", func() bool { return resources.Memory.Used() == kept })
	eventually(t, "closed as stalled", func() bool { return f.stats().Closed[Stalled] == 500 })
}

// TestFilledByTheSilent: if silent or slow connections reach the limit, an honest client gets
// through after seconds, not after their handshake timeouts.
func TestFilledByTheSilent(t *testing.T) {
	t.Parallel() // it waits for timeouts
	f := newFront(t, func(m *config.Mongo) { m.MaxConnections = 100; m.HandshakeTimeout = time.Minute }, newServer(t, fine))
	for i := range 100 {
		p := f.dial()
		if i%2 == 0 {
			p.send(hello(false)[:20])
		}
	}
	eventually(t, "full", func() bool { return f.stats().Connections.Open == 100 })
	start := time.Now()
	eventually(t, "served", func() bool {
		c, err := net.Dial("tcp", f.addr)
		if err != nil {
			return false
		}
		defer c.Close()
		p := &peer{c, t, bufio.NewReader(c)}
		if _, err = p.Write(hello(false)); err == nil {
			_, _, err = p.try()
		}
		return err == nil
	})
	if took := time.Since(start); took > 5*time.Second {
		t.Errorf("an honest client is served after %v", took)
	}
}

// TestMemoryOfRetriesGrowsWithWhatArrives: a command that is buffered for a retry takes memory
// as it arrives. If the memory budget is used up, it is not buffered and sent once.
func TestMemoryOfRetriesGrowsWithWhatArrives(t *testing.T) {
	var tries atomic.Int64
	s := newServer(t, func(h mongowire.Header, rest []byte) [][]byte {
		if h.RequestID == 9 && tries.Add(1) == 1 {
			return overload(h)
		}
		return fine(h, rest)
	})
	f := newFront(t, func(m *config.Mongo) { m.Retry = config.MongoRetry{Mode: "enforce", MaxBytes: 8 << 20} }, s)
	command := msg(9, 0, doc(func(b *mongowire.Builder) {
		b.Text("find", "c")
		b.Text("x", string(make([]byte, 4<<20)))
		b.Text("$db", "test")
	}))
	p := f.dial()
	p.ask(hello(false))
	kept := resources.Memory.Used()
	p.send(command[:100<<10])
	eventually(t, "arrived", func() bool { return resources.Memory.Used() > kept })
	if used := resources.Memory.Used() - kept; used > 512<<10 {
		t.Errorf("%d KB are taken for 100 that have come", used>>10)
	}
	p.send(command[100<<10:])
	if _, d := p.receive(); !isOK(d) || tries.Load() != 2 {
		t.Errorf("not sent again: %d", tries.Load())
	}
	eventually(t, "given back", func() bool { return resources.Memory.Used() == kept })

	resources.Memory.SetLimit(kept + 1)
	defer resources.Memory.SetLimit(0)
	tries.Store(0)
	p.send(command)
	if _, d := p.receive(); isOK(d) || tries.Load() != 1 {
		t.Errorf("sent %d times, want once, as there is no memory to keep it", tries.Load())
	}
	if !isOK(p.ask(msg(2, 0, ping))) {
		t.Error("the connection does not go on")
	}
}

// TestRelayTimeouts: a connection whose TLS is passed through ends when it is silent, or
// takes nothing, for too long, and not while it trickles.
func TestRelayTimeouts(t *testing.T) {
	t.Parallel() // it waits for timeouts
	open := func(idle, stall time.Duration) (*front, *peer, net.Conn) {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = l.Close() })
		f := newFront(t, func(m *config.Mongo) {
			m.Endpoints = []string{l.Addr().String()}
			m.TLSPassthrough, m.IdleTimeout, m.StallTimeout = true, idle, stall
		})
		p := f.dial()
		p.send([]byte{0x16, 3, 1, 0, 0})
		c, err := l.Accept()
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = c.Close() })
		return f, p, c
	}
	f, p, c := open(2*time.Second, time.Minute)
	ticks := time.NewTicker(200 * time.Millisecond)
	defer ticks.Stop()
	for range 15 { // longer than the limit, in one direction only
		<-ticks.C
		if _, err := c.Write([]byte{1}); err != nil {
			t.Fatalf("ended while it trickles: %v", err)
		}
	}
	if _, err := io.ReadFull(p, make([]byte, 15)); err != nil {
		t.Fatal(err)
	}
	f.closed(Idle)

	f, _, c = open(time.Second, 300*time.Millisecond) // its client reads nothing
	_ = c.SetWriteDeadline(time.Now().Add(10 * time.Second))
	var err error
	for err == nil {
		_, err = c.Write(make([]byte, 1<<20))
	}
	f.closed(Stalled)
}
