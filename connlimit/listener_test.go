package connlimit

import (
	"errors"
	"io"
	"maps"
	"net"
	"net/netip"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seed90641741/spillway/internal/netconn"
	"github.com/seed90641741/spillway/ratelimit"
)

// pipes is a listener whose connections are made by dial.
type pipes struct {
	conns  chan net.Conn
	fails  chan error
	closed chan struct{}
}

func newPipes() *pipes {
	return &pipes{make(chan net.Conn), make(chan error), make(chan struct{})}
}

func (p *pipes) Accept() (net.Conn, error) {
	select {
	case c := <-p.conns:
		return c, nil
	case err := <-p.fails:
		return nil, err
	case <-p.closed:
		return nil, net.ErrClosed
	}
}

func (p *pipes) Close() error   { close(p.closed); return nil }
func (p *pipes) Addr() net.Addr { return &net.TCPAddr{Port: 1} }

// peer is a connection that knows where it comes from and when it was closed.
type peer struct {
	net.Conn
	from   string
	closed atomic.Bool
}

func (p *peer) RemoteAddr() net.Addr {
	return net.TCPAddrFromAddrPort(netip.MustParseAddrPort(p.from))
}

func (p *peer) Close() error { p.closed.Store(true); return p.Conn.Close() }

func (p *pipes) dial(from string) *peer {
	server, _ := net.Pipe()
	c := &peer{Conn: server, from: from}
	p.conns <- c
	synctest.Wait()
	return c
}

// listen returns a Listener whose connections arrive in a channel with the time
// at which they were let in.
func listen(t *testing.T, c Config) (*Listener, *pipes, chan net.Conn) {
	t.Helper()
	p := newPipes()
	l, err := NewListener(p, c)
	if err != nil {
		t.Fatal(err)
	}
	in := make(chan net.Conn, 10_000)
	go func() {
		defer close(in)
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			in <- c
		}
	}()
	return l, p, in
}

const stranger = "192.0.2.1:1000"

func TestListenerAdmitsQueuesAndRejects(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		limits := make(map[string]Limit)
		l, p, in := listen(t, Config{Rejected: func(client net.Addr, limit Limit) { limits[client.String()] = limit }, Rate: ratelimit.Config{
			Rate: 10, BurstSeconds: 0.1, QueueDepth: 2,
			Exempt: ratelimit.Exempt{CIDRs: []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8")}},
		}})
		start := time.Now()
		first := p.dial(stranger)
		second, third := p.dial(stranger), p.dial(stranger)
		fourth := p.dial(stranger)
		friend := p.dial("10.1.2.3:4")
		for _, want := range []struct {
			conn *peer
			at   time.Duration
		}{{first, 0}, {friend, 0}, {second, 100 * time.Millisecond}, {third, 200 * time.Millisecond}} {
			c := <-in
			if c.(*conn).NetConn() != want.conn || time.Since(start) != want.at {
				t.Errorf("let in %v after %v, want after %v", c.RemoteAddr(), time.Since(start), want.at)
			}
		}
		if !fourth.closed.Load() || second.closed.Load() {
			t.Error("rejected somebody else than the last in the queue")
		}
		if !maps.Equal(limits, map[string]Limit{stranger: LimitRate}) {
			t.Errorf("reported %v", limits)
		}
		if st := l.Stats(time.Now()); st.Open != 4 || st.RejectedTotal != 1 || st.Rate.ExemptedTotal != 1 {
			t.Errorf("%+v", st)
		}
		l.Close()
	})
}

func TestListenerBoundsOpenConnections(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l, p, in := listen(t, Config{MaxOpen: 2})
		p.dial(stranger)
		p.dial(stranger)
		if c := p.dial(stranger); !c.closed.Load() {
			t.Error("the third is let in")
		}
		c := <-in
		c.Close()
		c.Close()
		if n := l.Stats(time.Now()).Open; n != 1 {
			t.Errorf("%d open", n)
		}
		p.dial(stranger)
		if c := p.dial(stranger); !c.closed.Load() {
			t.Error("the third is let in after one was closed twice")
		}
		if err := l.Update(Config{Rate: ratelimit.Config{Rate: 1, QueueDepth: -1}}); err == nil {
			t.Error("a bad Update is taken")
		}
		if err := l.Update(Config{}); err != nil {
			t.Error(err)
		}
		if c := p.dial(stranger); c.closed.Load() {
			t.Error("rejected without a limit")
		}
		l.Close()
	})
}

func TestListenerClose(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l, p, in := listen(t, Config{Rate: ratelimit.Config{Rate: 1, QueueDepth: 10}})
		p.dial(stranger)
		waits := p.dial(stranger)
		if err := l.Close(); err != nil {
			t.Error(err)
		}
		if _, err := l.Accept(); !errors.Is(err, net.ErrClosed) {
			t.Errorf("Accept after Close: %v", err)
		}
		if !waits.closed.Load() {
			t.Error("a connection that waits stays open")
		}
		open := 0
		for range in {
			open++
		}
		if open != 1 || l.Close() != nil {
			t.Errorf("%d let in", open)
		}
	})
}

// A Listener that nobody serves from takes no connection, which would be lost.
func TestListenerTakesNothingBeforeAccept(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPipes()
		l, err := NewListener(p, Config{})
		if err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		server, _ := net.Pipe()
		select {
		case p.conns <- server:
			t.Error("a connection is taken before Accept")
		default:
		}
		if err := l.Close(); err != nil {
			t.Error(err)
		}
		if _, err := l.Accept(); !errors.Is(err, net.ErrClosed) {
			t.Errorf("Accept after Close: %v", err)
		}
	})
}

// TestListenerEndsAfterItsQueue: connections that wait have been accepted, and are served although the listener underneath ends.
func TestListenerEndsAfterItsQueue(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l, p, in := listen(t, Config{Rate: ratelimit.Config{Rate: 1, BurstSeconds: 1, QueueDepth: 10}})
		var all []*peer
		for range 4 {
			all = append(all, p.dial(stranger))
		}
		p.fails <- errors.New("gone")
		let := 0
		for range in {
			let++
		}
		l.Close()
		for i, c := range all {
			if c.closed.Load() {
				t.Errorf("connection %d of 4, of which 3 waited, is closed", i+1)
			}
		}
		if let != 4 {
			t.Errorf("%d of 4 are let in", let)
		}
	})
}

// Running out of files passes; anything else is the end.
func TestListenerErrors(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l, p, in := listen(t, Config{})
		p.fails <- &net.OpError{Op: "accept", Err: syscall.EMFILE}
		p.dial(stranger)
		<-in
		gone := errors.New("gone")
		p.fails <- gone
		for range 2 {
			if _, err := l.Accept(); !errors.Is(err, gone) {
				t.Errorf("Accept: %v", err)
			}
		}
		l.Close()
	})
}

func TestListenerOverTCP(t *testing.T) {
	from, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Skip(err)
	}
	l, err := NewListener(from, Config{MaxOpen: 1})
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	a, err := net.Dial("tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer a.Close()
	if _, err := l.Accept(); err != nil {
		t.Fatal(err)
	}
	b, err := net.Dial("tcp", l.Addr().String())
	if err == nil {
		defer b.Close()
		if _, err = b.Read(make([]byte, 1)); err == nil {
			t.Error("the second is answered")
		}
	}
	if !errors.Is(err, syscall.ECONNRESET) {
		t.Errorf("the second is rejected with %v", err)
	}
}

// TestConnKeepsItsAbilities: a server finds in a connection that counts what it
// looks for in any other.
func TestConnKeepsItsAbilities(t *testing.T) {
	inner, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	l, err := NewListener(inner, Config{})
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	client, err := net.Dial("tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	server, err := l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	defer server.Close()
	if n, err := server.(io.ReaderFrom).ReadFrom(strings.NewReader("text")); n != 4 || err != nil {
		t.Errorf("%d, %v", n, err)
	}
	if err := server.(interface{ CloseWrite() error }).CloseWrite(); err != nil {
		t.Error(err)
	}
	if got, err := io.ReadAll(client); string(got) != "text" || err != nil {
		t.Errorf("%q, %v", got, err)
	}
	piped, _ := net.Pipe()
	if err := (&conn{Conn: netconn.Conn{Conn: piped}}).CloseWrite(); !errors.Is(err, errors.ErrUnsupported) {
		t.Errorf("half of a pipe is closed: %v", err)
	}
}

// Near is asked for the last quarter of the connections, if there is a limit.
func TestNearIsAskedNearTheLimit(t *testing.T) {
	for most, want := range map[int][]int{8: {7, 8}, 0: nil, -1: nil} {
		synctest.Test(t, func(t *testing.T) {
			var asked []int
			l, p, _ := listen(t, Config{MaxOpen: most, Near: func(_ net.Conn, open, _ int) bool {
				asked = append(asked, open)
				return true
			}})
			defer l.Close()
			for range 8 {
				p.dial("192.0.2.1:1")
			}
			if len(asked) != len(want) || len(want) > 0 && (asked[0] != want[0] || asked[1] != want[1]) {
				t.Errorf("MaxOpen %d: asked at %v, want %v", most, asked, want)
			}
		})
	}
}
