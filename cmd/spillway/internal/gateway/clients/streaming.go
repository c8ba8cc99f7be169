package clients

import (
	"net/http"

	"github.com/seed90641741/spillway/cmd/spillway/internal/gateway/message"
	"github.com/seed90641741/spillway/spillhttp"
)

// streaming is the writer of an answer that may be a stream: of gRPC, or of events. Between
// two pieces of a stream, neither the proxy nor, as far as it can know, the upstream works
// for the client: a stream may be open for days without an event.
type streaming struct {
	http.ResponseWriter
	exchange *Exchange
	resting  bool
	informed int // answers with a status of 1xx
}

// maxInformational is how many answers with a status of 1xx a client gets to one request.
const maxInformational = 100

// WriteHeader implements [http.ResponseWriter]. An answer without a type stays without one: net/http
// would find one in the body, and a browser runs what is HTML.
func (s *streaming) WriteHeader(status int) {
	switch h := s.Header(); {
	case status < http.StatusOK:
		if s.informed++; s.informed > maxInformational || s.exchange.former {
			return
		}
		message.Inform(h)
	case h["Content-Type"] == nil:
		h["Content-Type"] = nil
	}
	s.ResponseWriter.WriteHeader(status)
}

// Streaming returns a writer that detects when the answer is an idle stream, and notifies the
// exchange and package spillhttp.
func (x *Exchange) Streaming(w http.ResponseWriter) http.ResponseWriter {
	return &streaming{ResponseWriter: w, exchange: x}
}

func (s *streaming) Write(p []byte) (int, error) {
	s.wake()
	return s.ResponseWriter.Write(p)
}

// FlushError is for [http.ResponseController].
func (s *streaming) FlushError() error {
	s.wake()
	err := http.NewResponseController(s.ResponseWriter).Flush()
	if err == nil && message.IsStream(s.Header()) {
		s.resting = true
		s.exchange.resting.Store(true)
		spillhttp.Suspend(s.ResponseWriter)
	}
	return err
}

func (s *streaming) wake() {
	if s.resting {
		s.resting = false
		s.exchange.resting.Store(false)
		spillhttp.Resume(s.ResponseWriter)
	}
}

func (s *streaming) Unwrap() http.ResponseWriter { return s.ResponseWriter }
