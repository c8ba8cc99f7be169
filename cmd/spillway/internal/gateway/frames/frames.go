// Package frames writes frames of HTTP/2 by hand, for tests of clients that break its rules.
package frames

import (
	"encoding/binary"
)

// The kinds of frames, RFC 9113, section 6.
const (
	Data         = 0
	Headers      = 1
	Reset        = 3
	Settings     = 4
	Ping         = 6
	Window       = 8
	Continuation = 9
)

// Flags of frames.
const (
	EndStream  = 1
	EndHeaders = 4
)

// Preface is what a client sends first.
const Preface = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"

// Of returns a frame. Nothing is checked: a frame may be wrong.
func Of(kind, flags byte, stream uint32, payload string) string {
	n := len(payload)
	head := []byte{byte(n >> 16), byte(n >> 8), byte(n), kind, flags}
	return string(binary.BigEndian.AppendUint32(head, stream)) + payload
}

// Fields packs pairs of names and values as literals without indexing (RFC 7541, section
// 6.2.2): the payload of a Headers frame.
func Fields(pairs ...string) string {
	var b []byte
	for i, text := range pairs {
		if i%2 == 0 {
			b = append(b, 0)
		}
		if n := len(text); n < 127 {
			b = append(b, byte(n))
		} else {
			b = binary.AppendUvarint(append(b, 127), uint64(n-127))
		}
		b = append(b, text...)
	}
	return string(b)
}

// Request returns a Headers frame with a method, a path and more fields.
func Request(flags byte, stream uint32, method, path string, more ...string) string {
	pairs := []string{":method", method, ":scheme", "http", ":path", path, ":authority", "a"}
	return Of(Headers, EndHeaders|flags, stream, Fields(append(pairs, more...)...))
}

// Cancel returns a frame by which a client cancels a stream.
func Cancel(stream uint32) string { return Of(Reset, 0, stream, "\x00\x00\x00\x08") }

// Increment returns a frame that lets the server send n more bytes, on a stream or, for
// stream 0, on the connection.
func Increment(stream, n uint32) string {
	return Of(Window, 0, stream, string(binary.BigEndian.AppendUint32(nil, n)))
}
