package early

import (
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seed90641741/spillway/spillhttp/internal/early/earlytest"
)

// A verdict rejects a request, unless it is for /healthz, or for /vip and not labelled. Its answer says what was understood of the
// request.
type verdict struct{ method, path, label string }

func (v *verdict) rejects() bool {
	return v.path != "/healthz" && (v.label != "" || !strings.HasPrefix(v.path, "/vip"))
}

func (v *verdict) body() string { return fmt.Sprintf("%q %q %q\n", v.method, v.path, v.label) }

// verdictOf returns the verdict on a request that was read as a whole.
func verdictOf(r *http.Request) *verdict {
	return &verdict{r.Method, r.URL.Path, strings.Join(r.Header[names[0]], "|")}
}

// serveHTTP rejects requests as a gate does, and echoes all others.
func serveHTTP(w http.ResponseWriter, r *http.Request) {
	if v := verdictOf(r); v.rejects() {
		w.Header().Set("Content-Type", "text/plain")
		w.Header().Set("Content-Length", fmt.Sprint(len(v.body())))
		w.WriteHeader(http.StatusServiceUnavailable)
		_, _ = io.WriteString(w, v.body())
		return
	}
	body, _ := io.ReadAll(r.Body)
	_, _ = w.Write(body)
}

// A gate is a Gate that reads requests at a glance, if that is enough, or as a whole.
type gate struct {
	glance bool
	off    bool
}

func (g *gate) Looks() bool  { return !g.off }
func (*gate) Now() time.Time { return time.Now() }

func (g *gate) Decide(_ time.Time, c *Conn, h *Head) []byte {
	var v *verdict
	if path, plain := h.Path(); g.glance && plain && !h.Repeats() {
		label, _ := h.Field(0)
		v = &verdict{string(h.Method()), string(path), string(label)}
	} else {
		peer, _ := c.Peer()
		r, ok := h.Request(peer)
		if !ok {
			return nil
		}
		v = verdictOf(r)
	}
	if !v.rejects() {
		return nil
	}
	body := v.body()
	answer := fmt.Sprintf("HTTP/1.1 503 Service Unavailable\r\nContent-Type: text/plain\r\nContent-Length: %d\r\n\r\n", len(body))
	if v.method != http.MethodHead {
		answer += body
	}
	return []byte(answer)
}

// A listener has a Rejecter wrap its connections.
type listener struct {
	net.Listener
	rejecter *Rejecter
}

func (l listener) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	return l.rejecter.Wrap(c), nil
}

// serving returns how a server serves with early rejection by g.
func serving(g Gate) earlytest.Serve {
	return func(s *http.Server, l net.Listener) error {
		s.ConnState, s.ConnContext = State, Context
		return s.Serve(listener{l, NewRejecter(g, names)})
	}
}

// answersAlike fails if a client can tell by the answers whether requests are rejected
// early. It returns how many requests net/http did not see.
func answersAlike(t *testing.T, pieces []string, eager bool) (early int) {
	t.Helper()
	for _, glance := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			got, want, some, all := earlytest.Both(t, pieces, eager, http.HandlerFunc(serveHTTP), serving(&gate{glance: glance}))
			early += all - some
			if got != want || some > all {
				t.Errorf("at a glance %v, %q: net/http saw %d requests, without early rejection %d; answers\n%swant\n%s", glance, pieces, some, all, got, want)
			}
		})
	}
	return early
}

// TestStreamsAgree: whatever a client sends, and in whatever pieces, it gets the same
// answers with early rejection and without.
func TestStreamsAgree(t *testing.T) {
	rejected := 0
	for seed := range uint64(800) {
		random := rand.New(rand.NewPCG(seed, 18))
		rejected += answersAlike(t, earlytest.Stream(random), random.IntN(3) == 0)
		if t.Failed() {
			t.Fatalf("seed %d", seed)
		}
	}
	if rejected < 300 {
		t.Errorf("%d were rejected early: the test shows little", rejected)
	}
}

// FuzzConnection is the same for anything.
func FuzzConnection(f *testing.F) {
	all := append(earlytest.BodyShapes(), earlytest.HeadShapes()...)
	for i := 0; i < len(all); i += 97 { // the rest is tested without fuzzing
		f.Add(all[i]+plainRequest, uint64(i), i%2 == 0)
	}
	f.Add("HMAD / HTTP/1.1\r\nHost: a\r\n\r\n"+plainRequest+"\r\n", uint64(4338), true) // two bytes at the end
	f.Fuzz(func(t *testing.T, text string, seed uint64, eager bool) {
		answersAlike(t, earlytest.Cut(rand.New(rand.NewPCG(seed, 19)), text), eager)
	})
}

// words are what streams of requests are made of.
var words = []string{
	"GET / HTTP/1.1\r\nHost: x\r\n\r\n",
	"GET / HTTP/1.1\r\nHost: x\r\nX-Request-Criticality: SHEDDABLE\r\n\r\n",
	"GET /vip HTTP/1.1\r\nHost: x\r\n\r\n",
	"HEAD / HTTP/1.1\r\nHost: x\r\n\r\n",
	"GET /healthz?a=%41 HTTP/1.1\r\nHost: x\r\nconnection: keep-alive\r\n\r\n",
	"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\n\r\n",
	"POST /vip HTTP/1.1\r\nHost: x\r\nContent-Length: 27\r\n\r\n",
	"POST /vip HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n",
	"PUT /vip HTTP/1.1\r\nHost: x\r\nExpect: 100-continue\r\nContent-Length: 5\r\n\r\n",
	"hello", "5\r\nhello\r\n", "1b\r\n", "\r\n", "0\r\n\r\n", "G", "X: y\r\n",
	"GET / HTTP/1.1\r\nHost: x\r\n", "GET /vip HTTP/1.1\nHost: x\n\n", "GET / HTTP/1.0\r\nConnection: keep-alive\r\n\r\n",
	"GET /vip HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n",
}

// stream returns the pieces in which a client sends what program says: a word for
// each byte, whole or in two, after the one before or apart.
func stream(program []byte) (pieces []string) {
	apart := true
	for _, b := range program {
		word := words[int(b&31)%len(words)]
		if apart {
			pieces = append(pieces, "")
		}
		if b&32 != 0 {
			pieces[len(pieces)-1] += word[:len(word)/2]
			pieces = append(pieces, "")
			word = word[len(word)/2:]
		}
		pieces[len(pieces)-1] += word
		apart = b&64 == 0
	}
	return pieces
}

// FuzzStream: whatever a client sends, and in whatever pieces, it is answered as
// it is without the package.
func FuzzStream(f *testing.F) {
	f.Add([]byte{0, 0, 2, 0}, false)
	f.Add([]byte{64 + 2, 6, 0, 0}, false)
	f.Add([]byte{7, 11, 0, 12, 13, 32, 0}, true)
	f.Add([]byte{6, 0, 0, 12, 0}, false) // an empty line after a POST and another request
	f.Add([]byte{5, 9, 12, 0, 12, 0}, false)
	f.Fuzz(func(t *testing.T, program []byte, eager bool) {
		// A line that fills the buffer of net/http to its last byte but one has it read
		// one byte, which the sender takes for a look whether the client is still there.
		if len(program) <= 50 {
			answersAlike(t, stream(program), eager)
		}
	})
}

// TestStreams is the same for many streams.
func TestStreams(t *testing.T) {
	random, spared := rand.New(rand.NewPCG(1, 2)), 0
	for range 500 {
		program := make([]byte, 1+random.IntN(8))
		for i := range program {
			program[i] = byte(random.Uint32())
			if random.IntN(2) == 0 {
				program[i] &= 7 // well-formed, whole and apart
			}
		}
		spared += answersAlike(t, stream(program), random.IntN(4) == 0)
	}
	if spared < 100 {
		t.Errorf("only %d requests were rejected early: nothing was tested", spared)
	}
}
