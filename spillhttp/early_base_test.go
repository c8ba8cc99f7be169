package spillhttp

import (
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/seed90641741/spillway"
	"github.com/seed90641741/spillway/spillhttp/internal/early"
	"github.com/seed90641741/spillway/spillhttp/internal/early/earlytest"
)

// newSender returns a client that sends each piece when the server is ready for it.
func newSender(pieces ...string) *earlytest.Client { return earlytest.NewClient(pieces...) }

// serves returns how h serves, with early rejection or without.
func serves(h *Handler, early bool) earlytest.Serve {
	if early {
		return h.Serve
	}
	return (*http.Server).Serve
}

// play has h serve s, with early rejection or without, in a bubble. It returns the answers, and how many requests net/http has seen.
func play(t *testing.T, s *earlytest.Client, h *Handler, early bool) (answers string, seen int) {
	t.Helper()
	return earlytest.Play(t, s, h, serves(h, early))
}

// unify makes answers comparable: without dates, fields in order, hints alike.
func unify(t *testing.T, answers string) string { return earlytest.Unify(t, answers) }

// A viewer is a Gate that rejects each request after a look at its head.
type viewer func(*early.Head)

func (viewer) Looks() bool    { return true }
func (viewer) Now() time.Time { return time.Time{} }

func (v viewer) Decide(_ time.Time, _ *early.Conn, x *early.Head) []byte {
	v(x)
	return unavailable
}

var unavailable = []byte("HTTP/1.1 503 Service Unavailable\r\n\r\n")

// arrivals returns a func that has g decide on a request, which comes in two pieces. It reports whether g has rejected it.
func arrivals(g early.Gate) (arrive func(request, rest []byte) (rejected bool)) {
	return arrivalsAt(early.NewRejecter(g, claimHeaders))
}

// arrivalsAt is arrivals on a connection of a Rejecter.
func arrivalsAt(r *early.Rejecter) (arrive func(request, rest []byte) (rejected bool)) {
	from := new(repeat)
	c := r.Wrap(from)
	early.State(c, http.StateNew)
	buf := make([]byte, 4096)
	return func(request, rest []byte) bool {
		from.next = append(from.next[:0], request, rest)
		n, _ := c.Read(buf)
		if n > 0 {
			early.State(c, http.StateIdle) // it was answered
		}
		return n == 0
	}
}

const plainRequest = "GET /search?q=go HTTP/1.1\r\nHost: example.com\r\n\r\n"

// half is a load at which everything but CRITICAL_PLUS is rejected, always with the
// same hint.
func half(t testing.TB, next http.Handler) *Handler {
	config := swamped
	config.Load = utilization(1)
	config.Rand = func() float64 { return 0.5 }
	// However busy the processors of the test are, who may wait is let in, and not
	// rejected because it waited.
	config.Shed.MaxWait = 10 * time.Second
	h := mustHandler(t, next, config, HandlerConfig{HealthPaths: []string{"/healthz"}, Classify: func(r *http.Request) (c spillway.Call) {
		if strings.HasPrefix(r.URL.Path, "/vip") {
			c.Criticality = spillway.CriticalPlus
		}
		return c
	}})
	h.looks.Store(1 << 40)
	return h
}

// repeat is a connection that has some pieces to read at a time, and takes everything.
type repeat struct {
	net.Conn
	next [][]byte
}

func (r *repeat) Read(p []byte) (n int, err error) {
	if len(r.next) == 0 {
		return 0, io.EOF
	}
	n = copy(p, r.next[0])
	copy(r.next, r.next[1:])
	r.next = r.next[:len(r.next)-1]
	return n, nil
}

func (*repeat) Write(p []byte) (int, error)      { return len(p), nil }
func (*repeat) RemoteAddr() net.Addr             { return &net.TCPAddr{IP: net.IPv4(10, 0, 0, 1), Port: 1} }
func (*repeat) SetWriteDeadline(time.Time) error { return nil }
