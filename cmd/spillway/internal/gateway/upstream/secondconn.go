package upstream

import (
	"context"
	"crypto/tls"
	"encoding/binary"
	"errors"
	"net"
)

// Connections of HTTP/2 to endpoints. For each request with a body net/http keeps a buffer as
// long as the longest frame that the endpoint accepts, at most 512 KiB, until the body ends. A
// server of net/http accepts frames of 1 MiB: each stream of a client that sends nothing would
// cost the proxy half a megabyte. So the proxy lowers the value that the transport sees to 16
// KiB, which every peer must accept.

// The parts of a frame, and the setting SETTINGS_MAX_FRAME_SIZE: RFC 9113, sections 4.1,
// 6.5.1 and 6.5.2.
const (
	frameHead    = 9
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
		return &secondConn{Conn: c}, nil
	}
}

// A secondConn is a connection of HTTP/2 to a server. It has one reader at a time.
type secondConn struct {
	net.Conn
	head    [frameHead]byte
	read    int // bytes of head
	left    int // bytes of the frame after its head
	setting [2]byte
	at      int // bytes of the setting
}

func (c *secondConn) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	c.shorten(b[:n])
	return n, err
}

// shorten changes the maximum frame size in the settings of the server.
func (c *secondConn) shorten(b []byte) {
	for len(b) > 0 {
		if c.left == 0 {
			n := copy(c.head[c.read:], b)
			c.read, b = c.read+n, b[n:]
			if c.read == frameHead {
				c.read, c.at = 0, 0
				c.left = int(binary.BigEndian.Uint32(c.head[:4]) >> 8)
			}
			continue
		}
		n := min(c.left, len(b))
		if c.head[3] == settingsType {
			c.change(b[:n])
		}
		c.left, b = c.left-n, b[n:]
	}
}

// change is shorten for bytes of settings. They may end within one.
func (c *secondConn) change(b []byte) {
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
