package upstream

import (
	"errors"
	"io"
	"net/http"
	"sync/atomic"
	"time"

	"github.com/seed90641741/spillway/cmd/spillway/internal/gateway/message"
)

// hold counts an attempt as in flight until its answer has ended, and removes the load report
// from its trailers.
func (e *endpoints) hold(x *endpoint, resp *http.Response) {
	if resp.Body == nil || resp.Body == http.NoBody {
		x.End()
		return
	}
	message.TakeLoadReport(resp.Trailer, false) // the announced ones
	h := &held{ReadCloser: resp.Body, endpoints: e, endpoint: x, response: resp, listed: resp.Header["Connection"]}
	message.RemoveListed(resp.Trailer, h.listed)
	resp.Body = h
	if w, ok := h.ReadCloser.(io.Writer); ok { // a protocol was switched to: both may talk
		resp.Body = &duplex{h, w}
	}
}

// held is the body of an answer.
type held struct {
	io.ReadCloser
	endpoints *endpoints
	endpoint  *endpoint
	response  *http.Response
	listed    []string // values of Connection
	ended     atomic.Bool
}

func (h *held) Read(p []byte) (int, error) {
	n, err := h.ReadCloser.Read(p)
	if err != nil {
		if len(h.response.Trailer) > 0 {
			h.endpoints.report(time.Now(), h.endpoint, h.response.Trailer)
			message.RemoveListed(h.response.Trailer, h.listed)
		}
		h.end()
	}
	return n, err
}

func (h *held) Close() error {
	defer h.end()
	return h.ReadCloser.Close()
}

func (h *held) end() {
	if h.ended.CompareAndSwap(false, true) {
		h.endpoint.End()
	}
}

// duplex is a body that can be written to.
type duplex struct {
	*held
	io.Writer
}

// CloseWrite informs the endpoint that the client sends no more. The endpoint may still answer.
func (d *duplex) CloseWrite() error {
	if x, ok := d.Writer.(interface{ CloseWrite() error }); ok {
		return x.CloseWrite()
	}
	return errors.ErrUnsupported
}
