package message

import (
	"net/http"
	"strings"
)

// GRPC is the media type of gRPC.
const GRPC = "application/grpc"

// IsGRPC reports whether a request is a call of gRPC, which takes HTTP/2. What says so by
// HTTP/1.1 has the bounds of any other request.
func IsGRPC(r *http.Request) bool {
	return r.ProtoMajor >= 2 && r.Method == http.MethodPost && is(r.Header, GRPC)
}

// IsStream reports whether an answer is a stream: of gRPC, or of events.
func IsStream(h http.Header) bool { return IsEvents(h) || is(h, GRPC) }

// IsEvents reports whether an answer is a stream of events.
func IsEvents(h http.Header) bool { return is(h, "text/event-stream") }

// is reports whether the content of h is of a type, or of one of its variants.
func is(h http.Header, kind string) bool {
	values := h["Content-Type"]
	if len(values) == 0 {
		return false
	}
	rest, ok := strings.CutPrefix(values[0], kind)
	return ok && (rest == "" || rest[0] == '+' || rest[0] == ';')
}
