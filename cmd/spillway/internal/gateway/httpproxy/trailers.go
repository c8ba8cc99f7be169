package httpproxy

import (
	"io"
	"net/http"
	"net/http/httputil"

	"github.com/seed90641741/spillway/cmd/spillway/internal/gateway/message"
	"github.com/seed90641741/spillway/ingress"
)

// A trailed is a body. Its trailers are known when it ends.
type trailed struct {
	io.ReadCloser

	ended func()
}

func (b *trailed) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if err != nil {
		b.ended()
	}
	return n, err
}

// sendTrailer sends the trailers of a request on. net/http adds those to the map that have not been announced.
func (s *settings) sendTrailer(r *httputil.ProxyRequest) {
	trailer := r.In.Trailer
	r.Out.Trailer = trailer
	if trailer == nil {
		return
	}
	clean := func() {
		message.SanitizeTrailer(trailer)
		message.RemoveListed(trailer, r.In.Header["Connection"])
		if !s.internal {
			message.Sanitize(trailer, s.table.Trusted)
		}
	}
	clean()
	if r.Out.Body != nil {
		r.Out.Body = &trailed{r.Out.Body, clean}
	}
}

// receiveTrailer has the trailers of an answer say no more than its headers.
func (s *settings) receiveTrailer(resp *http.Response) {
	clean := func() {
		message.SanitizeTrailer(resp.Trailer)
		delete(resp.Trailer, costHeader)
		if resp.Trailer[reasonHeader] != nil && s.discloses != ingress.ReasonsFull {
			s.concealIn(resp.Trailer, resp.Trailer.Get("Grpc-Status") == "8")
		}
	}
	clean()
	if resp.ContentLength < 0 && resp.StatusCode != http.StatusSwitchingProtocols || resp.ProtoMajor == 2 {
		resp.Body = &trailed{resp.Body, clean}
	}
}
