package mongotest

import (
	"bufio"
	"errors"
	"net"
	"net/netip"
	"os"
	"sync"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/seed90641741/spillway/ratelimit"
	"github.com/seed90641741/spillway/spillmongo/mongotest/internal/wire"
)

// A conn is a connection of a client. Only its own goroutine uses it, but for close.
type conn struct {
	node   *Node
	net    net.Conn
	id     int64
	src    *bufio.Reader
	reader *wire.Reader
	watch  chan error // what the look for the next message found; nil if nobody looks
	out    []byte
	once   sync.Once
	closed chan struct{}

	client client
	auth   authentication
}

// client is what the handshake said.
type client struct {
	greeted bool
	appName string
	driver  string
}

func newConn(n *Node, nc net.Conn, id int64) *conn {
	src := bufio.NewReaderSize(nc, 16<<10)
	return &conn{node: n, net: nc, id: id, src: src, reader: wire.NewReader(src), closed: make(chan struct{})}
}

// local reports whether it represents a caller inside the process.
func (c *conn) local() bool { return c.net == nil }

// serve answers messages until the client has gone or breaks the protocol.
func (c *conn) serve() {
	defer c.end()
	if !c.establish() || !c.connect() {
		return
	}
	for {
		if !c.join() {
			return
		}
		m, err := c.reader.Next()
		if err != nil {
			return
		}
		if !c.answer(m) {
			return
		}
	}
}

func (c *conn) end() {
	c.close()
	c.join()
}

// close may be called by anybody, and again.
func (c *conn) close() {
	c.once.Do(func() {
		close(c.closed)
		c.net.Close()
	})
}

// answer runs a command and sends the reply. It returns false to end the connection.
func (c *conn) answer(m *wire.Message) bool {
	r := newRequest(c, m)
	if r == nil {
		return false
	}
	reply, ok := r.run()
	if !ok || m.NoReply {
		return ok
	}
	if r.stream && m.Exhaust && !m.Compressed {
		return c.stream(r, m, reply)
	}
	return c.send(wire.Reply{RequestID: c.node.nextReply(), ResponseTo: m.RequestID}, m, reply)
}

// stream sends reply and then a new one whenever there is one, until the client has
// gone.
func (c *conn) stream(r *request, m *wire.Message, reply bson.Raw) bool {
	to := m.RequestID
	for {
		id := c.node.nextReply()
		more := isOK(reply)
		if !c.send(wire.Reply{RequestID: id, ResponseTo: to, More: more}, m, reply) || !more {
			return more
		}
		to = id
		var ok bool
		if reply, ok = r.again(); !ok {
			return false
		}
	}
}

func (c *conn) send(reply wire.Reply, m *wire.Message, doc bson.Raw) bool {
	if cap(c.out) > 64<<10 {
		c.out = nil
	}
	var err error
	if c.out, err = reply.Append(c.out[:0], m, doc); err != nil {
		return false
	}
	_, err = c.net.Write(c.out)
	return err == nil
}

// wait returns true after d, or when wake is closed; and false at once when the client
// has gone.
func (c *conn) wait(d time.Duration, wake <-chan struct{}) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	if c.local() {
		return c.waitBlind(timer, wake)
	}
	if c.watch == nil {
		watch := make(chan error, 1)
		c.watch = watch
		go func() {
			_, err := c.src.Peek(1)
			watch <- err
		}()
	}
	select {
	case err := <-c.watch:
		c.watch = nil
		if err != nil {
			return false
		}
		return c.waitBlind(timer, wake) // the client sends ahead, and is not seen to go
	case <-timer.C:
	case <-wake:
	}
	return true
}

func (c *conn) waitBlind(timer *time.Timer, wake <-chan struct{}) bool {
	select {
	case <-timer.C:
	case <-wake:
	case <-c.closed:
		return false
	}
	return true
}

// join waits until no other goroutine reads the next message, and reports whether there
// is one.
func (c *conn) join() bool {
	if c.watch == nil {
		return true
	}
	err := <-c.watch
	c.watch = nil
	return err == nil
}

// establish asks the limiter of connections. It waits, if it has to, for the time that
// the client is there.
func (c *conn) establish() bool {
	l := c.node.limits
	if !l.parameters().ConnEnabled || l.conns.Exempt(c.caller("")) {
		return true
	}
	res, err := l.conns.Reserve(time.Now())
	if err != nil {
		c.node.count(func(s *Stats) { s.ConnectionsRefused++ })
		return false
	}
	return res.Wait == 0 || c.queue(&res)
}

// connect does the work of a new connection.
func (c *conn) connect() bool {
	c.node.worker.do(c.node.worker.work.Connect, c.closed)
	return true
}

// queue waits for the turn of a reservation. Nothing is answered before the turn, and
// no client sends more than the buffer takes before its first answer; so the look for
// more ends at the deadline, or when the client goes.
func (c *conn) queue(res *ratelimit.Reservation) bool {
	err := c.net.SetReadDeadline(time.Now().Add(res.Wait))
	if err == nil {
		_, err = c.src.Peek(c.src.Size())
	}
	return res.End(time.Now()) && errors.Is(err, os.ErrDeadlineExceeded) && c.net.SetReadDeadline(time.Time{}) == nil
}

// caller is what the limiters know of the client.
func (c *conn) caller(name string) ratelimit.Caller {
	var addr netip.Addr
	if ap, err := netip.ParseAddrPort(c.net.RemoteAddr().String()); err == nil {
		addr = ap.Addr()
	}
	return ratelimit.Caller{Addr: addr, Application: name}
}
