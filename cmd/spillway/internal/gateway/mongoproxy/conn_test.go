package mongoproxy

import (
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/seed90641741/spillway/cmd/spillway/internal/gateway/config"
	"github.com/seed90641741/spillway/internal/mongowire"
)

// setHello is the hello of a replica set member.
var setHello = doc(func(b *mongowire.Builder) {
	b.Bool("ismaster", true)
	b.Text("setName", "rs0")
	b.Array("hosts", "a:1", "b:1")
	b.Text("primary", "a:1")
	b.Text("me", "a:1")
	b.Bool("secondary", false)
	b.Int("maxWireVersion", 27)
	b.Double("ok", 1)
})

func fields(doc []byte) string {
	var all []string
	for key := range mongowire.Elements(doc) {
		all = append(all, string(key))
	}
	return strings.Join(all, " ")
}

// TestHello checks what a client sees of a replica set, with each form of hello.
func TestHello(t *testing.T) {
	s := newServer(t, func(h mongowire.Header, rest []byte) [][]byte {
		if h.OpCode == mongowire.OpQuery {
			return [][]byte{mongowire.AppendReply(nil, 1, h.RequestID, setHello)}
		}
		return [][]byte{mongowire.AppendMsg(nil, 1, h.RequestID, mongowire.ChecksumPresent, setHello)}
	})
	balanced := msg(7, 0, doc(func(b *mongowire.Builder) { b.Int("hello", 1); b.Bool("loadBalanced", true); b.Text("$db", "admin") }))
	isMaster := doc(func(b *mongowire.Builder) { b.Int("isMaster", 1) })
	wrapped := doc(func(b *mongowire.Builder) {
		b.Value("$query", mongowire.Value{Kind: mongowire.KindDocument, Data: isMaster})
	})
	query := func(doc []byte) []byte {
		return raw(0, mongowire.OpQuery, u32(4), []byte("admin.$cmd\x00"), u32(0), u32(1), doc)
	}
	for _, test := range []struct {
		name, topology string
		message        []byte
		want           string
	}{
		{"hello", "", hello(false), "ismaster maxWireVersion ok msg"},
		{"isMaster", "", query(isMaster), "ismaster maxWireVersion ok msg"},
		{"wrapped", "", query(wrapped), "ismaster maxWireVersion ok msg"},
		{"passed", "pass", hello(false), "ismaster setName hosts primary me secondary maxWireVersion ok"},
		{"load balanced", "", balanced, "ismaster maxWireVersion ok msg serviceId"},
	} {
		t.Run(test.name, func(t *testing.T) {
			f := newFront(t, func(m *config.Mongo) { m.Topology = test.topology }, s)
			if got := fields(f.dial().ask(test.message)); got != test.want {
				t.Errorf("got %s, want %s", got, test.want)
			}
		})
	}
}

// TestStream: a hello may have many answers. When the client disconnects, the server
// connection is closed.
func TestStream(t *testing.T) {
	t.Parallel() // it waits for the watch
	s := newServer(t, func(h mongowire.Header, _ []byte) (all [][]byte) {
		to := h.RequestID
		for i := range int32(3) {
			flags := uint32(mongowire.MoreToCome)
			if i == 2 && h.RequestID == 1 {
				flags = 0
			}
			all = append(all, mongowire.AppendMsg(nil, 100+i, to, flags, setHello))
			to = 100 + i
		}
		return all
	})
	f := newFront(t, nil, s)
	p := f.dial()
	stream := func(id int32) {
		t.Helper()
		p.send(msg(id, mongowire.ExhaustAllowed, doc(func(b *mongowire.Builder) { b.Int("hello", 1); b.Text("$db", "admin") })))
		for i := range 3 {
			h, doc := p.receive()
			if fields(doc) != "ismaster maxWireVersion ok msg" || h.RequestID != int32(100+i) {
				t.Fatalf("got %+v %s", h, fields(doc))
			}
		}
	}
	stream(1)
	stream(2) // and now the server is silent
	_ = p.Close()
	f.closed(Left)
	eventually(t, "gone", func() bool { return s.count() == 0 })
}

// TestExhaustCursor: a getMore may be answered many times, compressed or not, and what
// comes next is an answer to the next command.
func TestExhaustCursor(t *testing.T) {
	s := newServer(t, func(h mongowire.Header, rest []byte) (all [][]byte) {
		if h.RequestID < 50 {
			return fine(h, rest)
		}
		to := h.RequestID
		for i := range int32(3) {
			flags := uint32(mongowire.MoreToCome)
			if i == 2 {
				flags = 0
			}
			m := mongowire.AppendMsg(nil, 100+i, to, flags, okDoc)
			if h.OpCode == mongowire.OpCompressed {
				size := u32(uint32(len(m) - mongowire.HeaderSize))
				m = raw(0, mongowire.OpCompressed, u32(mongowire.OpMsg), size, []byte{2}, compressed(t, 2, m[mongowire.HeaderSize:]))
				copy(m[4:], append(u32(uint32(100+i)), u32(uint32(to))...))
			}
			all, to = append(all, m), 100+i
		}
		return all
	})
	f := newFront(t, nil, s)
	p := f.dial()
	p.ask(hello(false))
	more := commanding("getMore", nil)
	plain := msg(50, mongowire.ExhaustAllowed, more)
	small := append(append(u32(mongowire.ExhaustAllowed), 0), more...)
	small = raw(0, mongowire.OpCompressed, u32(mongowire.OpMsg), u32(uint32(len(small))), []byte{2}, compressed(t, 2, small))
	copy(small[4:], u32(51))
	for _, m := range [][]byte{plain, small} {
		p.send(m)
		to := mongowire.ParseHeader(m).RequestID
		for i := range int32(3) {
			h, _ := p.receive()
			if h.RequestID != 100+i || h.ResponseTo != to || h.OpCode != mongowire.ParseHeader(m).OpCode {
				t.Fatalf("got %+v, want an answer to %d", h, to)
			}
			to = h.RequestID
		}
		if !isOK(p.ask(msg(2, 0, ping))) {
			t.Fatal("no answer")
		}
	}
}

// TestCounts: all counters have unique names and the right values.
func TestCounts(t *testing.T) {
	f := newFront(t, func(m *config.Mongo) {
		m.Parameters = config.MongoParameters{
			RequestEnabled: true, RequestRate: 1.0 / 3600, RequestBurst: 3600,
			ConnectionEnabled: true, ConnectionRate: 1, ConnectionDepth: 5,
		}
	}, newServer(t, fine))
	p, broken := f.dial(), f.dial() // the second waits for a second
	p.ask(hello(true))
	p.ask(msg(2, 0, ping))
	p.ask(msg(3, 0, ping))
	broken.send(raw(1, 1))
	f.closed(Malformed)
	st := f.stats()
	got := make(map[string]float64)
	levels := 0
	for _, c := range st.Counts() {
		if IsLevel(c.Name) {
			levels++
		}
		if _, again := got[c.Name]; again {
			t.Errorf("%s twice", c.Name)
		}
		got[c.Name] = c.Value
	}
	for name, want := range map[string]float64{
		"connections.current": 1, "network.numRequests": 3,
		"network.ingressRequestRateLimiter.attemptedAdmissions":  2,
		"network.ingressRequestRateLimiter.successfulAdmissions": 1,
		"network.ingressRequestRateLimiter.rejectedAdmissions":   1,
		"network.ingressRequestRateLimiter.exemptedAdmissions":   1,
		"queues.ingressSessionEstablishment.addedToQueue":        1,
		"queues.ingressSessionEstablishment.removedFromQueue":    1,
		"proxy.connectionsClosed.malformed":                      1,
		"proxy.connectionsClosed.hung_up":                        0,
	} {
		if n, ok := got[name]; n != want || !ok {
			t.Errorf("%s is %v, want %v", name, n, want)
		}
	}
	if levels != 5 {
		t.Errorf("%d values can fall, want 5: connections, connections in the queue, their mean wait, and tokens twice", levels)
	}
	if got["queues.ingressSessionEstablishment.averageTimeQueuedMicros"] < 100_000 {
		t.Errorf("%v", got)
	}
}

// TestServerHangsUp: an idle client is disconnected when its server closes the connection.
func TestServerHangsUp(t *testing.T) {
	t.Parallel() // it waits for the watch
	if runtime.GOOS != "linux" {
		t.Skip("nothing tells")
	}
	s := newServer(t, fine)
	f := newFront(t, nil, s)
	p := f.dial()
	p.ask(hello(false))
	s.hangUp()
	p.ended()
	f.closed(HungUp)
}

// TestFailover: if a server is unreachable, another one is used.
func TestFailover(t *testing.T) {
	const gone = "127.0.0.1:1" // not a free port, which the proxy itself may get
	s := newServer(t, fine)
	f := newFront(t, func(m *config.Mongo) { m.Endpoints = append([]string{gone}, m.Endpoints...) }, s)
	f.dial().ask(hello(false))
	f.config.Mongo[0].Endpoints = []string{gone}
	f.put()
	p := f.dial()
	p.send(hello(false))
	p.ended()
	f.closed(Unreachable)
}

// TestServerTakenAway: connections to a server that was removed from the configuration end
// after the command in flight. Otherwise one client would have connections to two servers.
func TestServerTakenAway(t *testing.T) {
	asked, proceed := make(chan struct{}), make(chan struct{})
	goOn := sync.OnceFunc(func() { close(proceed) })
	defer goOn()
	old := newServer(t, func(h mongowire.Header, rest []byte) [][]byte {
		if h.RequestID == 50 {
			close(asked)
			<-proceed
		}
		return fine(h, rest)
	})
	other := newServer(t, fine)
	f := newFront(t, nil, old)
	idle, busy := f.dial(), f.dial()
	idle.ask(hello(true))
	busy.ask(hello(true))
	busy.send(msg(50, 0, ping))
	<-asked
	f.config.Mongo[0].Endpoints = append(f.config.Mongo[0].Endpoints, other.Addr().String())
	f.put()
	if !isOK(idle.ask(msg(6, 0, ping))) {
		t.Error("a server that stays was left")
	}
	f.config.Mongo[0].Endpoints = f.config.Mongo[0].Endpoints[1:]
	f.put()
	for _, p := range []*peer{idle, busy} {
		if err := p.SetDeadline(time.Now().Add(10 * time.Second)); err != nil {
			t.Fatal(err)
		}
	}
	idle.ended()
	goOn()
	if _, doc := busy.receive(); !isOK(doc) {
		t.Error("a command under way was cut off")
	}
	busy.ended()
	f.closed(Drained)
	if p := f.dial(); !isOK(p.ask(hello(true))) || other.count() != 1 {
		t.Error("the other server is not used")
	}
}

// TestUpdateOfStallTimeout: the timeout changes for open connections.
func TestUpdateOfStallTimeout(t *testing.T) {
	f := newFront(t, func(m *config.Mongo) { m.StallTimeout = 50 * time.Millisecond }, newServer(t, fine))
	p := f.dial()
	p.ask(hello(false))
	f.config.Mongo[0].StallTimeout = -1
	f.put()
	half := msg(2, 0, ping)
	p.send(half[:20])
	<-time.After(60 * time.Millisecond) // which was too long
	p.send(half[20:])
	if _, doc := p.receive(); !isOK(doc) {
		t.Fatal("no answer")
	}
	f.config.Mongo[0].StallTimeout = 50 * time.Millisecond
	f.put()
	p.send(half[:20])
	if err := p.SetDeadline(time.Now().Add(5 * time.Second)); err != nil {
		t.Fatal(err)
	}
	p.ended()
	f.closed(Stalled)
}

// TestUpdate: settings change for open connections; new listeners start, removed listeners
// end, and an invalid configuration changes nothing.
func TestUpdate(t *testing.T) {
	s := newServer(t, fine)
	f := newFront(t, nil, s)
	p := f.dial()
	p.ask(hello(true))
	m := f.config.Mongo[0]
	m.Address = f.addr // another one, and a new one
	f.config.Mongo[0].Parameters = config.MongoParameters{RequestEnabled: true, RequestRate: 1.0 / 3600, RequestBurst: 3600}
	other := f.config.Mongo[0]
	other.Name = "other"
	f.config.Mongo = append(f.config.Mongo, other)
	f.put()
	p.ask(msg(2, 0, ping))
	if isOK(p.ask(msg(3, 0, ping))) {
		t.Error("the limit is not there")
	}
	q := dialTo(t, f.Addr("other").String())
	q.ask(hello(true))
	bad := *f.config
	taken := other
	taken.Name, taken.Address = "taken", s.Addr().String()
	good := other
	good.Name, good.Address = "good", "127.0.0.1:0"
	bad.Mongo = append(bad.Mongo[:1:1], good, taken)
	if err := f.Update(bad.Defaulted()); err == nil {
		t.Fatal("an address that is taken was taken")
	}
	if !isOK(q.ask(msg(4, 0, ping))) || f.Addr("good") != nil || !f.Serving() {
		t.Error("a change that failed has changed something")
	}
	f.config.Mongo = f.config.Mongo[:1]
	f.put()
	q.ended()
	if f.Addr("other") != nil {
		t.Error("a listener that is gone has an address")
	}
}

// TestIdle: idle clients are disconnected, if configured, as are clients that never send a
// message.
func TestIdle(t *testing.T) {
	f := newFront(t, func(m *config.Mongo) {
		m.IdleTimeout, m.HandshakeTimeout = 50*time.Millisecond, 50*time.Millisecond
	}, newServer(t, fine))
	silent, p := f.dial(), f.dial()
	p.ask(hello(false))
	p.ended()
	silent.ended()
	f.closed(Idle)
	f.closed(Stalled)
}

// TestNothingIsLeft: no goroutines leak.
func TestNothingIsLeft(t *testing.T) {
	before := runtime.NumGoroutine()
	s := newServer(t, fine)
	f := newFront(t, nil, s)
	for range 20 {
		f.dial().ask(hello(false))
	}
	if err := f.drain(); err != nil {
		t.Fatal(err)
	}
	_ = s.Close()
	s.conns.Wait()
	eventually(t, "as before", func() bool { return runtime.NumGoroutine() <= before })
}
