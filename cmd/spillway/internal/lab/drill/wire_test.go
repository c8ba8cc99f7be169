package drill

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
		config Config
		words  string
		call
	}{
		{Config{}, "GET over HTTP/1.1", call{"GET", "HTTP/1.1", 0}},
		{Config{HTTP2: true}, "GET over HTTP/2", call{"GET", "HTTP/2.0", 0}},
		{Config{Body: 5000}, "POST of 5000 bytes over HTTP/1.1", call{"POST", "HTTP/1.1", 5000}},
		{Config{HTTP2: true, Body: 100_000}, "POST of 100000 bytes over HTTP/2", call{"POST", "HTTP/2.0", 100_000}},
	} {
		w := row.config.wire()
		transport := w.transport(4)
		status, err := w.send(t.Context(), &http.Client{Transport: transport, Timeout: 5 * time.Second}, "http://"+ln.Addr().String())
		if err != nil || status != http.StatusOK {
			t.Fatalf("%s: %d, %v", row.words, status, err)
		}
		if got := <-seen; got != row.call || w.words() != row.words {
			t.Errorf("%s (%s): %v, want %v", w.words(), row.words, got, row.call)
		}
		transport.CloseIdleConnections()
	}
}
