package upstream

import (
	"context"
	"crypto/tls"
	"encoding/binary"
	"errors"
	"net"
	"sync/atomic"
)

// Connections of HTTP/2 to endpoints. For each request with a body net/http keeps a buffer as
// long as the longest frame that the endpoint accepts, at most 512 KiB, until the body ends. A
// server of net/http accepts frames of 1 MiB: each stream of a client that sends nothing would
// cost the proxy half a megabyte. So the proxy lowers the value that the transport sees to 16
// KiB, which every peer must accept.

// The parts of a frame, its types and a flag, and the setting SETTINGS_MAX_FRAME_SIZE: RFC 9113, sections 4.1,
// 6.5.1 and 6.5.2.
const (
	preface      = 24 // bytes that a client sends first
	frameHead    = 9
	headersType  = 1
	endHeaders   = 4
	settingsType = 4
	settingSize  = 6
	maxFrameSize = 5
)

// leastMaxFrameSize is the smallest value that is allowed, 16 KiB.
var leastMaxFrameSize = [4]byte{0, 0, 1 << 14 >> 8, 0}

// errNotSecond says that HTTP/2 was not negotiated.
var errNotSecond = errors.New("the endpoint does not speak HTTP/2 over TLS: set its protocol to http1, or let it offer h2 (ALPN)")

// A DialFunc connects.
type DialFunc = func(ctx context.Context, network, address string) (net.Conn, error)

// overTLS returns a dial function for TLS that negotiates HTTP/2 only.
func overTLS(d *net.Dialer, secured *tls.Config) DialFunc {
	secured = secured.Clone()
	secured.NextProtos = []string{"h2"}
	dialer := &tls.Dialer{NetDialer: d, Config: secured}
	return func(ctx context.Context, network, address string) (net.Conn, error) {
		c, err := dialer.DialContext(ctx, network, address)
		if err != nil {
			return nil, err
		}
		if c.(*tls.Conn).ConnectionState().NegotiatedProtocol != "h2" {
			_ = c.Close() // nothing was said on it
			return nil, errNotSecond
		}
		return c, nil
	}
}

// shortFrames returns dial with connections whose peers accept frames of at most 16 KiB.
func shortFrames(dial DialFunc) DialFunc {
	return func(ctx context.Context, network, address string) (net.Conn, error) {
		c, err := dial(ctx, network, address)
		if err != nil {
			return nil, err
		}
		return &secondConn{Conn: c, out: parser{left: preface}}, nil
	}
}

// A secondConn is a connection of HTTP/2 to a server. It has one reader and one writer at a time.
type secondConn struct {
	net.Conn
	in, out parser
	setting [2]byte
	at      int           // bytes of the setting
	sent    atomic.Uint32 // the stream of the last request
	long    atomic.Uint32 // the stream of the last answer whose head is longer than a frame
}

// A parser follows the frames of one direction.
type parser struct {
	head [frameHead]byte
	read int // bytes of head
	left int // bytes of the frame after its head
}

// follow calls begins after the head of each frame, and part with what comes of the rest.
func (p *parser) follow(b []byte, begins func(), part func([]byte)) {
	for len(b) > 0 {
		if p.left == 0 {
			n := copy(p.head[p.read:], b)
			p.read, b = p.read+n, b[n:]
			if p.read == frameHead {
				p.read, p.left = 0, int(binary.BigEndian.Uint32(p.head[:4])>>8)
				begins()
			}
			continue
		}
		n := min(p.left, len(b))
		part(b[:n])
		p.left, b = p.left-n, b[n:]
	}
}

// headersOf returns the stream of a frame of headers that end with it, or do not; 0 is another frame.
func (p *parser) headersOf(ended bool) (stream uint32) {
	if p.head[3] != headersType || (p.head[4]&endHeaders > 0) != ended {
		return 0
	}
	return binary.BigEndian.Uint32(p.head[5:])
}

func (c *secondConn) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	c.shorten(b[:n])
	return n, err
}

// shorten changes the maximum frame size in the settings of the server.
func (c *secondConn) shorten(b []byte) { c.in.follow(b, c.received, c.change) }

func (c *secondConn) received() {
	c.at = 0
	if stream := c.in.headersOf(false); stream > 0 {
		c.long.Store(stream)
	}
}

func (c *secondConn) Write(b []byte) (int, error) {
	n, err := c.Conn.Write(b)
	c.out.follow(b[:n], c.wrote, func([]byte) {})
	return n, err
}

func (c *secondConn) wrote() {
	if stream := max(c.out.headersOf(true), c.out.headersOf(false)); stream > 0 {
		c.sent.Store(stream)
	}
}

// change is shorten for bytes of a frame. They may end within a setting.
func (c *secondConn) change(b []byte) {
	if c.in.head[3] != settingsType {
		return
	}
	for i := range b {
		switch {
		case c.at < len(c.setting):
			c.setting[c.at] = b[i]
		case binary.BigEndian.Uint16(c.setting[:]) == maxFrameSize:
			b[i] = leastMaxFrameSize[c.at-len(c.setting)]
		}
		c.at = (c.at + 1) % settingSize
	}
}
