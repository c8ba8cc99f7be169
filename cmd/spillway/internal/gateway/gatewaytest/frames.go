package gatewaytest

import (
	"encoding/binary"
	"strings"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"
)

// Frame returns a frame. Nothing is checked: a frame may be wrong.
func Frame(kind http2.FrameType, flags http2.Flags, stream uint32, payload string) string {
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

// RequestFrame returns a HEADERS frame with a method, a path and more fields.
func RequestFrame(flags http2.Flags, stream uint32, method, path string, more ...string) string {
	pairs := []string{":method", method, ":scheme", "http", ":path", path, ":authority", "a"}
	return Frame(http2.FrameHeaders, http2.FlagHeadersEndHeaders|flags, stream, Fields(append(pairs, more...)...))
}

// CancelFrame returns a frame by which a client cancels a stream.
func CancelFrame(stream uint32) string {
	return Frame(http2.FrameRSTStream, 0, stream, "\x00\x00\x00\x08")
}

// WindowFrame returns a frame that lets the server send n more bytes, on a stream or, for
// stream 0, on the connection.
func WindowFrame(stream, n uint32) string {
	return Frame(http2.FrameWindowUpdate, 0, stream, string(binary.BigEndian.AppendUint32(nil, n)))
}
