package load

import (
	"io"
	"net"
	"net/http"
	"testing"
	"time"
)

func TestWire(t *testing.T) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	type call struct {
		method, protocol string
		body             int64
	}
	seen := make(chan call, 1)
	protocols := new(http.Protocols)
	protocols.SetHTTP1(true)
	protocols.SetUnencryptedHTTP2(true)
	server := &http.Server{Protocols: protocols, ReadHeaderTimeout: time.Minute, Handler: http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		n, _ := io.Copy(io.Discard, r.Body) // what is wrong shows in n
		seen <- call{r.Method, r.Proto, n}
	})}
	defer server.Close()
	go func() { _ = server.Serve(ln) }() // ends when it is closed
	for _, row := range []struct {
		format Format
		words  string
		call
	}{
		{Format{}, "GET over HTTP/1.1", call{"GET", "HTTP/1.1", 0}},
		{Format{HTTP2: true}, "GET over HTTP/2", call{"GET", "HTTP/2.0", 0}},
		{Format{Body: make([]byte, 5000)}, "POST of 5000 bytes over HTTP/1.1", call{"POST", "HTTP/1.1", 5000}},
		{Format{HTTP2: true, Body: make([]byte, 100_000)}, "POST of 100000 bytes over HTTP/2", call{"POST", "HTTP/2.0", 100_000}},
	} {
		transport := row.format.Transport(4)
		answer, err := row.format.Send(t.Context(), &http.Client{Transport: transport, Timeout: 5 * time.Second}, "http://"+ln.Addr().String())
		if err != nil || answer.Status != http.StatusOK {
			t.Fatalf("%s: %d, %v", row.words, answer.Status, err)
		}
		if got := <-seen; got != row.call || row.format.String() != row.words {
			t.Errorf("%s (%s): %v, want %v", row.format, row.words, got, row.call)
		}
		transport.CloseIdleConnections()
	}
}
