package netconn

import (
	"bytes"
	"errors"
	"io"
	"net"
	"strings"
	"testing"
)

// files is a connection that notes what is done with it.
type files struct {
	net.Conn

	sent   bytes.Buffer
	from   io.Reader
	closed bool
}

func (f *files) ReadFrom(r io.Reader) (int64, error) {
	f.from = r
	return f.sent.ReadFrom(r)
}

func (f *files) CloseWrite() error {
	f.closed = true
	return nil
}

// TestConn: what the connection underneath can do, the wrapper can do.
func TestConn(t *testing.T) {
	under := new(files)
	c := struct{ Conn }{Conn{under}}
	text := struct{ io.Reader }{strings.NewReader("text")}
	if n, err := c.ReadFrom(text); n != 4 || err != nil || under.from != io.Reader(text) || under.sent.String() != "text" {
		t.Errorf("sent %d bytes (%v), %q", n, err, under.sent.String())
	}
	if err := c.CloseWrite(); err != nil || !under.closed {
		t.Errorf("the sending side is not closed: %v", err)
	}
	if c.NetConn() != net.Conn(under) {
		t.Error("another connection is underneath")
	}
	if found, ok := Find[*files](c); !ok || found != under {
		t.Error("the connection underneath is not found")
	}
	if _, ok := Find[*net.TCPConn](c); ok {
		t.Error("found a connection that is not there")
	}
	if found, ok := Find[net.Conn](c); !ok || found != net.Conn(c) {
		t.Error("the outermost connection is not the first")
	}
	if err := (Conn{struct{ net.Conn }{}}).CloseWrite(); !errors.Is(err, errors.ErrUnsupported) {
		t.Errorf("closed the sending side of a connection that has none: %v", err)
	}
}
