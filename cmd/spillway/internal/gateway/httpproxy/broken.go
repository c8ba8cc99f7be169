package httpproxy

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"

	"github.com/seed90641741/spillway/cmd/spillway/internal/gateway/message"
)

// Answers of an upstream that break off. A client must see that: one that gets no bytes may take the connection for one that was
// closed before its request came, and send the request again.

// smallAnswer is the length up to which net/http sends nothing of an answer before it is complete: its smallest buffer, for chunks.
const smallAnswer = 2048

// completed reads the body of a small answer, so that an answer that breaks off is replaced by one of the proxy.
func completed(resp *http.Response) error {
	length := resp.ContentLength
	if length <= 0 || length > smallAnswer || resp.Request.Method == http.MethodHead || message.IsStream(resp.Header) {
		return nil
	}
	text := make([]byte, length)
	if _, err := io.ReadFull(resp.Body, text); err != nil {
		return fmt.Errorf("the answer broke off: %w", err)
	}
	resp.Body = &readAhead{resp.Body, text}
	return nil
}

// readAhead is a body whose beginning was read already: text is what its reader has not received of that. The trailers come with the end
// of the body below.
type readAhead struct {
	io.ReadCloser
	text []byte
}

// Read implements [io.Reader].
func (r *readAhead) Read(b []byte) (int, error) {
	if len(r.text) == 0 {
		return r.ReadCloser.Read(b)
	}
	n := copy(b, r.text)
	r.text = r.text[n:]
	return n, nil
}

// broken is deferred: ReverseProxy panics if an answer breaks off. It sends the part of the answer that has come, and a call of
// gRPC whose deadline has passed gets the status for that. Else the client learns of it as the connection or the stream is reset.
func (n *accounting) broken(ctx context.Context, w http.ResponseWriter) {
	p := recover()
	if p == nil {
		return
	}
	_ = n.exchange.FlushError() // who has left does not read it
	if err, _ := p.(error); !errors.Is(err, http.ErrAbortHandler) || !message.IsGRPC(n.request) || !errors.Is(ctx.Err(), context.DeadlineExceeded) {
		panic(p) //nolint:forbidigo // that of ReverseProxy goes on
	}
	n.note(errLate, ctx.Err())
	w.Header()[http.TrailerPrefix+"Grpc-Status"] = []string{errLate.code}
	w.Header()[http.TrailerPrefix+"Grpc-Message"] = []string{"the deadline passed before the end of the answer"}
}
