package hostile

import (
	"bufio"
	"context"
	"crypto/tls"
	"encoding/json"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"time"

	"github.com/seed90641741/spillway/ingress"
	"github.com/seed90641741/spillway/spillhttp"
)

// The same for a server that has the library in it, and no proxy in front.

// Kinds of servers.
const (
	inClear = "clear"
	overTLS = "tls"
	without = "bare" // the library: net/http alone, to compare with by hand
)

// beLibrary serves behind a Handler, over HTTP/1.1 and HTTP/2. Its second line says which kind of server it is; the first is not used.
func beLibrary(in io.Reader, out io.Writer) error {
	lines := bufio.NewScanner(in)
	lines.Scan()
	lines.Scan()
	kind := lines.Text()
	gates, err := ingress.New(ingress.Config{MaxInFlight: 64})
	if err != nil {
		return err
	}
	defer gates.Close()
	h, err := spillhttp.NewHandler(watched(&upstream{kind: "plain"}), spillhttp.HandlerConfig{
		Ingress: gates, HealthPaths: []string{"/grpc.health.v1.Health/Check"},
	})
	if err != nil {
		return err
	}
	l, err := (&net.ListenConfig{}).Listen(context.Background(), "tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	s := &http.Server{Handler: h, ReadHeaderTimeout: 5 * time.Second, IdleTimeout: 10 * time.Second, Protocols: new(http.Protocols), ErrorLog: log.New(io.Discard, "", 0)}
	s.Protocols.SetHTTP1(true)
	s.Protocols.SetHTTP2(true)
	s.Protocols.SetUnencryptedHTTP2(true)
	go serveLibrary(kind, h, s, l)
	fmt.Fprintln(out, l.Addr())
	for lines.Scan() {
		_ = json.NewEncoder(out).Encode(measure())
	}
	return s.Close()
}

func serveLibrary(kind string, h *spillhttp.Handler, s *http.Server, l net.Listener) {
	switch kind {
	case overTLS:
		example := httptest.NewTLSServer(nil)
		s.TLSConfig = &tls.Config{Certificates: example.TLS.Certificates, MinVersion: tls.VersionTLS12}
		example.Close()
		_ = h.ServeTLS(s, l, "", "")
	case without:
		s.Handler = watched(&upstream{kind: "plain"})
		_ = s.Serve(l)
	default:
		_ = h.Serve(s, l)
	}
}

// watched answers clients that watch something with one message, and sends no other. All else is for next.
func watched(next http.Handler) http.Handler {
	mux := http.NewServeMux()
	mux.Handle("/", next)
	watch := func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.WriteString(w, "data: state\n\n")
		_ = http.NewResponseController(w).Flush()
		<-r.Context().Done()
	}
	mux.HandleFunc("/events", watch)
	mux.HandleFunc("/grpc.health.v1.Health/Watch", watch)
	return mux
}

// headRate is how many connections with a long head come per second.
const headRate = 100

// longHeads has heads come that are many times longer than a server accepts, from another address than that of the honest client.
func longHeads(ctx context.Context, s *stage) error {
	s.heads(ctx, loopback(1), 50_000)
	return nil
}

// nearHeads: the same from the address of the honest client.
func nearHeads(ctx context.Context, s *stage) error {
	s.heads(ctx, honestAddress, 50_000)
	return nil
}

// fullHeads are just as long as a server accepts: each begins a request.
func fullHeads(ctx context.Context, s *stage) error {
	s.heads(ctx, loopback(1), 6_000)
	return nil
}

// heads has connections come whose heads have so many lines, each another header.
func (s *stage) heads(ctx context.Context, from string, count int) {
	var text strings.Builder
	text.WriteString("GET /none HTTP/1.1\r\nHost: a\r\n")
	for i := range count {
		fmt.Fprintf(&text, "x%d: 1\r\n", i)
	}
	text.WriteString("\r\n")
	every(ctx, time.Second/headRate, func(int) {
		go func() {
			c, err := s.dialFrom(ctx, from)
			if err != nil {
				return
			}
			defer c.Close()
			_ = c.SetDeadline(time.Now().Add(2 * time.Second))
			_, _ = io.WriteString(c, text.String())
			_, _ = c.Read(make([]byte, 100)) // until it is answered
		}()
	})
}

// dialFrom connects as [dialFrom] does, with TLS where the server has it.
func (s *stage) dialFrom(ctx context.Context, from string) (net.Conn, error) {
	c, err := dialFrom(ctx, s.address, from)
	if err == nil && s.secure {
		c = tls.Client(c, trusting)
	}
	return c, err
}

// trusting is for servers of this test.
var trusting = &tls.Config{InsecureSkipVerify: true} // their certificates are those of nobody

// silentHandshakes are connections that send the beginning of a handshake, or nothing.
func silentHandshakes(ctx context.Context, s *stage) error {
	every(ctx, 5*time.Millisecond, func(i int) {
		go func() {
			if c, err := dialFrom(ctx, s.address, loopback(i%50)); err == nil && i%2 == 0 {
				_, _ = io.WriteString(c, "\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03")
			}
		}()
	})
	return nil
}

// idleWatches are streams of events that stay open and say nothing, and watches of the health of the server: more than may be in
// flight.
func idleWatches(ctx context.Context, s *stage) error {
	every(ctx, 50*time.Millisecond, func(i int) {
		path := [...]string{"/events", "/grpc.health.v1.Health/Watch"}[i%2]
		c, err := dialFrom(ctx, s.address, loopback(i%20))
		if err == nil {
			_, _ = io.WriteString(c, "GET "+path+" HTTP/1.1\r\nHost: a\r\n\r\n")
		}
	})
	return nil
}
