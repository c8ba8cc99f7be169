// Package frames writes frames of HTTP/2, for tests of clients that break its rules.
package frames

import (
	"encoding/binary"
	"strings"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"
)

// Of returns a frame. Nothing is checked: a frame may be wrong.
func Of(kind http2.FrameType, flags http2.Flags, stream uint32, payload string) string {
	var b strings.Builder
	_ = http2.NewFramer(&b, nil).WriteRawFrame(kind, flags, stream, []byte(payload)) // a Builder never fails
	return b.String()
}

// Fields packs pairs of names and values without indexing: the payload of a HEADERS frame.
func Fields(pairs ...string) string {
	var b strings.Builder
	e := hpack.NewEncoder(&b)
	for i := 0; i+1 < len(pairs); i += 2 {
		_ = e.WriteField(hpack.HeaderField{Name: pairs[i], Value: pairs[i+1], Sensitive: true}) // as above
	}
	return b.String()
}

// Request returns a HEADERS frame with a method, a path and more fields.
func Request(flags http2.Flags, stream uint32, method, path string, more ...string) string {
	pairs := []string{":method", method, ":scheme", "http", ":path", path, ":authority", "a"}
	return Of(http2.FrameHeaders, http2.FlagHeadersEndHeaders|flags, stream, Fields(append(pairs, more...)...))
}

// Cancel returns a frame by which a client cancels a stream.
func Cancel(stream uint32) string { return Of(http2.FrameRSTStream, 0, stream, "\x00\x00\x00\x08") }

// Increment returns a frame that lets the server send n more bytes, on a stream or, for
// stream 0, on the connection.
func Increment(stream, n uint32) string {
	return Of(http2.FrameWindowUpdate, 0, stream, string(binary.BigEndian.AppendUint32(nil, n)))
}
