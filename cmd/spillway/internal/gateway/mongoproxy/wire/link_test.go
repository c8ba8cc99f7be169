package wire

import (
	"errors"
	"io"
	"net"
	"testing"
	"time"
)

// TestIdleLinkHasNoBuffer: a link that waits for a message holds no buffer.
func TestIdleLinkHasNoBuffer(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	p, err := net.Dial("tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	c, err := l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	x := NewLink(c, time.Minute, func(err error) error { return err })
	if x.raw == nil {
		t.Skip("the platform takes one")
	}
	x.take()
	x.Give()
	if err := c.SetReadDeadline(time.Now().Add(10 * time.Millisecond)); err != nil {
		t.Fatal(err)
	}
	if err := x.Wait(); err == nil || x.buf != nil || x.page != nil {
		t.Errorf("error %v, a buffer of %d bytes", err, len(x.buf))
	}
	if err := c.SetReadDeadline(time.Time{}); err != nil {
		t.Fatal(err)
	}
	if _, err := p.Write([]byte("find")); err != nil {
		t.Fatal(err)
	}
	if err := x.Wait(); err != nil || x.page == nil {
		t.Errorf("error %v, a buffer of %d bytes", err, len(x.buf))
	}
}

// lastBytes is a connection that returns its last bytes together with io.EOF, as crypto/tls does.
type lastBytes struct {
	net.Conn

	text string
}

func (c *lastBytes) Read(p []byte) (int, error) {
	n := copy(p, c.text)
	c.text = c.text[n:]
	return n, io.EOF
}

func TestLastBytesCountBeforeTheEnd(t *testing.T) {
	x := NewLink(&lastBytes{text: "insert"}, 0, func(err error) error { return err })
	if err := x.Wait(); err != nil || string(x.Peek()) != "insert" {
		t.Errorf("%q and error %v", x.Peek(), err)
	}
	x.Discard()
	if err := x.Wait(); !errors.Is(err, io.EOF) || len(x.Peek()) > 0 {
		t.Errorf("%q and error %v at the end", x.Peek(), err)
	}
}
