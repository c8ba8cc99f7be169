package board

import (
	"bytes"
	"context"
	"errors"
	"net"
	"strconv"
	"syscall"

	"github.com/redis/go-redis/v9"
)

// Bounds of an answer. They are far above what tasks exchange. The client allocates what a
// length announces before it has arrived, and calls itself for each level of nesting: without bounds a
// server could end the process with a few bytes.
const (
	maxAnswer  = 256 << 20 // bytes, with elementSize for each element
	maxLine    = 64 << 10  // bytes without an announced length, such as errors
	maxNesting = 32
	// elementSize is about what the client allocates for an element of an array.
	elementSize = 48
)

var errAnswer = errors.New("board: the server's answer is larger than any that Redis or Valkey makes here, or is none; the connection was closed")

type dialer = func(ctx context.Context, network, addr string) (net.Conn, error)

// boundedDialer returns a dialer whose connections return an error for an answer that is beyond the bounds.
func boundedDialer(o *redis.UniversalOptions) dialer {
	dial := o.Dialer
	if dial == nil {
		dial = redis.NewDialer(&redis.Options{DialTimeout: o.DialTimeout, TLSConfig: o.TLSConfig})
	}
	return func(ctx context.Context, network, addr string) (net.Conn, error) {
		c, err := dial(ctx, network, addr)
		if err != nil {
			return nil, err
		}
		b := &bounded{Conn: c}
		if raw, ok := c.(syscall.Conn); ok { // by which the pool finds that a server has closed the connection
			return &struct {
				*bounded
				syscall.Conn
			}{b, raw}, nil
		}
		return b, nil
	}
}

// A bounded connection follows the protocol (RESP) as far as needed to find the lengths in it.
type bounded struct {
	net.Conn

	err  error
	text int     // bytes of a text that are still to come
	line []byte  // the begin of a line
	size int     // of this answer, as announced
	open []level // of arrays and maps
}

// A level is an array or a map that has not ended.
type level struct {
	left int  // elements
	none bool // it is an attribute, which precedes an element and is none
}

// Read reads from the connection.
func (c *bounded) Read(p []byte) (int, error) {
	if c.err != nil {
		return 0, c.err
	}
	n, err := c.Conn.Read(p)
	if !c.follow(p[:n]) {
		c.err = errAnswer
		return 0, c.err
	}
	return n, err
}

// follow takes in what arrives, and returns false if it is beyond the bounds.
func (c *bounded) follow(b []byte) bool {
	for len(b) > 0 {
		if c.text > 0 {
			n := min(c.text, len(b))
			c.text -= n
			b = b[n:]
			continue
		}
		part, rest, ended := bytes.Cut(b, []byte{'\n'})
		if len(c.line)+len(part) > maxLine {
			return false
		}
		c.line = append(c.line, part...)
		if !ended {
			return true
		}
		if !c.header(bytes.TrimSuffix(c.line, []byte{'\r'})) {
			return false
		}
		c.line, b = c.line[:0], rest
	}
	return true
}

// header takes in a line.
func (c *bounded) header(line []byte) bool {
	if len(line) == 0 {
		return false
	}
	if len(c.open) == 0 {
		c.size = 0
	}
	switch line[0] {
	case '$', '=', '!':
		n, ok := c.length(line[1:], 1)
		if n >= 0 {
			c.text = n + len("\r\n")
		}
		c.ended()
		return ok
	case '*', '~', '>':
		return c.array(line, 1)
	case '%', '|':
		return c.array(line, 2)
	}
	c.size += len(line)
	c.ended()
	return c.size <= maxAnswer
}

// array takes in the header of an array, or of a map with two elements for each that it counts.
func (c *bounded) array(line []byte, each int) bool {
	n, ok := c.length(line[1:], each*elementSize)
	if !ok || len(c.open) >= maxNesting {
		return false
	}
	attribute := line[0] == '|'
	switch {
	case n > 0:
		c.open = append(c.open, level{n * each, attribute})
	case !attribute:
		c.ended()
	}
	return true
}

// length reads the length of a text, or of an array whose elements have a size. It is -1 for none at all.
func (c *bounded) length(text []byte, size int) (n int, ok bool) {
	n, err := strconv.Atoi(string(text))
	if err != nil || n < -1 || n > (maxAnswer-c.size)/size {
		return 0, false
	}
	c.size += max(n, 0) * size
	return n, true
}

// ended takes note of the end of an element, and with it of all arrays that it is the last one of.
func (c *bounded) ended() {
	for i := len(c.open) - 1; i >= 0; i-- {
		last := &c.open[i]
		if last.left--; last.left > 0 {
			return
		}
		c.open = c.open[:i]
		if last.none {
			return
		}
	}
}
