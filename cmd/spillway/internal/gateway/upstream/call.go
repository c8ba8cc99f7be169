package upstream

import (
	"encoding/binary"
	"fmt"
	"io"
	"net/http"

	"google.golang.org/protobuf/proto"
)

// The proxy calls services of endpoints itself: health checks and load reports. Its calls go over the
// connections of a transport of net/http.

// headOfCall returns the header of a call of gRPC.
func headOfCall() http.Header {
	return http.Header{"Content-Type": {"application/grpc"}, "Te": {"trailers"}, "User-Agent": {"spillway"}}
}

// frame returns a message as gRPC sends it.
func frame(m proto.Message) ([]byte, error) {
	message, err := proto.Marshal(m)
	return append(binary.BigEndian.AppendUint32([]byte{0}, uint32(len(message))), message...), err
}

// maxMessage is the maximum length of a message.
const maxMessage = 16 << 10

// readMessage reads one message, which must not be compressed.
func readMessage(from io.Reader) ([]byte, error) {
	var head [5]byte
	if _, err := io.ReadFull(from, head[:]); err != nil {
		return nil, err
	}
	n := binary.BigEndian.Uint32(head[1:])
	if head[0] != 0 || n > maxMessage {
		return nil, fmt.Errorf("a message of %d bytes (flags %d), must be at most %d and not compressed", n, head[0], maxMessage)
	}
	message := make([]byte, n)
	_, err := io.ReadFull(from, message)
	return message, err
}
