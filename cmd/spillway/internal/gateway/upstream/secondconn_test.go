package upstream

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"golang.org/x/net/http2"

	"github.com/seed90641741/spillway/cmd/spillway/internal/gateway/gatewaytest"
)

// A pieces is a connection that gives what it has in pieces of a given size.
type pieces struct {
	net.Conn
	all  io.Reader
	size func() int
}

func (p *pieces) Read(b []byte) (int, error) { return p.all.Read(b[:min(len(b), p.size())]) }

// TestShortFrames: only the one setting changes, wherever the reads end.
func TestShortFrames(t *testing.T) {
	const long = "\x00\x05\x00\x10\x00\x00" // 1 MiB
	const short = "\x00\x05\x00\x00\x40\x00"
	stream := func(size string) string {
		return gatewaytest.Frame(http2.FrameSettings, 0, 0, "\x00\x03\x00\x00\x00\xfa"+size+"\x00\x04\x00\x10\x00\x00") +
			gatewaytest.Frame(http2.FrameSettings, 1, 0, "") + // an acknowledgement
			gatewaytest.Frame(http2.FrameData, 0, 1, long+long) +
			gatewaytest.Frame(http2.FrameHeaders, http2.FlagHeadersEndHeaders, 1, strings.Repeat(long, 20)) +
			gatewaytest.Frame(http2.FrameSettings, 0, 0, size+size) +
			gatewaytest.Frame(http2.FrameSettings, 0, 0, "\x00\x05\x00") + // of a wrong length
			gatewaytest.Frame(http2.FramePing, 0, 0, "12345678")
	}
	given, want := stream(long), stream(short)
	for seed := range uint64(100) {
		random := rand.New(rand.NewPCG(seed, 0))
		c := &secondConn{Conn: &pieces{all: strings.NewReader(given), size: func() int { return 1 + random.IntN(int(seed)+1) }}}
		got, err := io.ReadAll(c)
		if err != nil || string(got) != want {
			t.Fatalf("seed %d: %q, %v, want %q", seed, got, err, want)
		}
	}
}

// FuzzShortFrames: what an endpoint sends keeps its length, and whole reads and single
// bytes give the same.
func FuzzShortFrames(f *testing.F) {
	f.Add([]byte(gatewaytest.Frame(http2.FrameSettings, 0, 0, "\x00\x05\x00\x10\x00\x00")))
	f.Add([]byte("HTTP/1.1 400 Bad Request\r\n\r\n"))
	f.Fuzz(func(t *testing.T, b []byte) {
		whole, single := bytes.Clone(b), bytes.Clone(b)
		new(secondConn).shorten(whole)
		var c secondConn
		for i := range single {
			c.shorten(single[i : i+1])
		}
		if !bytes.Equal(whole, single) {
			t.Errorf("%q in one piece, %q in single bytes", whole, single)
		}
	})
}

// TestNotSecond: an endpoint that negotiates no protocol over TLS is reported as such.
func TestNotSecond(t *testing.T) {
	certificates := httptest.NewTLSServer(http.NotFoundHandler())
	defer certificates.Close()
	l, err := tls.Listen("tcp", "127.0.0.1:0", &tls.Config{Certificates: certificates.TLS.Certificates})
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	go func() {
		if c, err := l.Accept(); err == nil {
			_, _ = io.Copy(io.Discard, c)
			_ = c.Close()
		}
	}()
	roots := x509.NewCertPool()
	roots.AddCert(certificates.Certificate())
	dial := overTLS(new(net.Dialer), &tls.Config{RootCAs: roots})
	if _, err := dial(t.Context(), "tcp", l.Addr().String()); !errors.Is(err, errNotSecond) {
		t.Errorf("%v, want that HTTP/2 is not spoken", err)
	}
}
