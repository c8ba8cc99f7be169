package upstream

import (
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/seed90641741/spillway/internal/netconn"
)

// TestConnectionIsRestored: what net/http removes from an answer is put back, wherever reads end. Fields of interim answers and
// lines of bodies do not count.
func TestConnectionIsRestored(t *testing.T) {
	for _, row := range []struct {
		text string
		want []string
	}{
		{"HTTP/1.1 200 OK\r\nConnection: close, X-Hop\r\n\r\nabc", []string{"close, X-Hop"}},
		{"HTTP/1.1 200 OK\nCONNECTION:close\nConnection:\t X-Hop \n\nabc", []string{"close", "X-Hop"}},
		{"HTTP/1.1 200 OK\r\nConnection: close,\r\n X-Hop\r\nA: b\r\n c\r\n\r\n", []string{"close, X-Hop"}},
		{"HTTP/1.1 103 Early Hints\r\nConnection: close, Link\r\n\r\nHTTP/1.1 200 OK\r\nConnection: close, X-Hop\r\n\r\n", []string{"close, X-Hop"}},
		{"HTTP/1.1 103 Early Hints\r\nConnection: close, Link\r\n\r\nHTTP/1.1 200 OK\r\n\r\n", nil},
		{"HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\n\r\nA\r\nConnection: B\r\n\r\n", []string{"Upgrade"}},
		{"HTTP/1.1 200 OK\r\nA: Connection: b\r\n\r\nA\r\nConnection: close, B\r\n\r\n", nil},
	} {
		for seed := range uint64(20) {
			random := rand.New(rand.NewPCG(seed, 0))
			in := &pieces{all: strings.NewReader(row.text), size: func() int { return 1 + random.IntN(2*int(seed)+1) }}
			c := &firstConn{Conn: netconn.Conn{Conn: net.Conn(in)}, of: new(keeping)}
			for range 2 { // a connection is used again
				in.all = strings.NewReader(row.text)
				c.begin()
				if got, _ := io.ReadAll(c); string(got) != row.text {
					t.Fatalf("%q was read, want %q", got, row.text)
				}
				resp := &http.Response{Header: make(http.Header)}
				if c.restore(resp); !slices.Equal(resp.Header["Connection"], row.want) {
					t.Errorf("seed %d: %q, want %q of %q", seed, resp.Header["Connection"], row.want, row.text)
				}
			}
		}
	}
}
