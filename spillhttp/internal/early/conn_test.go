package early

import (
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"
)

// A feed is a connection that has pieces to read, and takes all that is written.
type feed struct {
	net.Conn
	pieces []string
	wrote  strings.Builder
}

func (f *feed) Read(p []byte) (n int, err error) {
	if len(f.pieces) == 0 {
		return 0, io.EOF
	}
	n = copy(p, f.pieces[0])
	f.pieces = f.pieces[1:]
	return n, nil
}

func (f *feed) Write(p []byte) (int, error)    { return f.wrote.Write(p) }
func (*feed) SetWriteDeadline(time.Time) error { return nil }
func (*feed) RemoteAddr() net.Addr             { return &net.TCPAddr{IP: net.IPv4(10, 0, 0, 1), Port: 1} }

// read returns what c lets pass of pieces.
func (f *feed) read(c *Conn, pieces ...string) string {
	f.pieces = pieces
	var all strings.Builder
	for buf := make([]byte, 4096); ; {
		n, err := c.Read(buf)
		all.Write(buf[:n])
		if err != nil {
			return all.String()
		}
	}
}

// A head in pieces is kept up to a bound, whatever it is made of, and nothing on the connection is parsed after that.
func TestHeadInPiecesIsBounded(t *testing.T) {
	for name, piece := range map[string]string{"bytes": "x", "lines": "X: y\r\n", "pages": "X: " + strings.Repeat("y", 1000)} {
		from := new(feed)
		c := NewRejecter(&gate{}, names).Wrap(from)
		State(c, http.StateNew)
		start := "GET / HTTP/1.1\r\nHost: x\r\n"
		longest := 0
		from.read(c, start)
		for range 5000 {
			if from.read(c, piece) != piece {
				t.Fatalf("%s: bytes were changed or held back", name)
			}
			longest = max(longest, len(c.head))
		}
		if longest < maxHead-len(piece) || longest > maxHead+len(piece) || c.head != nil || c.owed.Load() != untracked {
			t.Errorf("%s: %d bytes were kept, %d still are, %d owed", name, longest, len(c.head), c.owed.Load())
		}
		State(c, http.StateIdle) // which net/http says when it has answered
		if got := from.read(c, plainRequest); got != plainRequest || from.wrote.Len() > 0 {
			t.Errorf("%s: the connection is still parsed: %q, answered %q", name, got, from.wrote.String())
		}
	}
}

// What is not examined is passed through as it is: without State, while the gate is not interested, and after a byte out of order.
func TestPassesThrough(t *testing.T) {
	const vip = "GET /vip HTTP/1.1\r\nHost: x\r\n\r\n"
	for name, row := range map[string]struct {
		gate   Gate
		states []http.ConnState
		before []string
		passes bool
	}{
		"examined":         {&gate{}, []http.ConnState{http.StateNew}, nil, false},
		"without State":    {&gate{}, nil, nil, true},
		"no interest":      {&gate{off: true}, []http.ConnState{http.StateNew}, nil, true},
		"hijacked":         {&gate{}, []http.ConnState{http.StateNew, http.StateHijacked}, nil, true},
		"between requests": {&gate{}, []http.ConnState{http.StateNew}, []string{vip}, true},
		"out of order":     {&gate{}, []http.ConnState{http.StateNew}, []string{vip + "G"}, true},
		"two bytes ahead":  {&gate{}, []http.ConnState{http.StateNew}, []string{vip, "GE"}, true},
		"two with it":      {&gate{}, []http.ConnState{http.StateNew}, []string{vip + "GE"}, true},
		"not HTTP":         {&gate{}, []http.ConnState{http.StateNew}, []string{"\x16\x03\x01\r\n\r\n"}, true},
	} {
		from := new(feed)
		c := NewRejecter(row.gate, names).Wrap(from)
		for _, s := range row.states {
			State(c, s)
		}
		if got := from.read(c, row.before...); got != strings.Join(row.before, "") {
			t.Errorf("%s: %q was changed to %q", name, row.before, got)
		}
		if got := from.read(c, plainRequest); (got == plainRequest) != row.passes || (from.wrote.Len() == 0) != row.passes {
			t.Errorf("%s: %q passed through, %q was answered", name, got, from.wrote.String())
		}
	}
}

// A note is taken once, by the request that it is on.
func TestNote(t *testing.T) {
	c := NewRejecter(&gate{}, names).Wrap(new(feed))
	ctx := Context(t.Context(), c)
	c.SetNote(7)
	if first, second, other := TakeNote(ctx), TakeNote(ctx), TakeNote(t.Context()); first != 7 || second != 0 || other != 0 {
		t.Errorf("notes %d, %d, %d; want 7, 0, 0", first, second, other)
	}
	if Context(t.Context(), new(feed)) != t.Context() {
		t.Error("another connection has no notes")
	}
}
