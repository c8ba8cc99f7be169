package spillhttp

import (
	"math/rand/v2"
	"testing"
	"testing/synctest"
)

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

// compare fails if a client is answered otherwise than without a Listener. It
// returns how many requests net/http did not see.
func compare(t *testing.T, program []byte, eager bool) (spared int) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		got, want, seen, all := both(t, half(t, echo), stream(program), eager)
		if got != want {
			t.Errorf("%q (eager %v): answered\n%swant\n%s", stream(program), eager, got, want)
		}
		spared = all - seen
	})
	return spared
}

// FuzzListener: whatever a client sends, and in whatever pieces, it is answered as
// it is without a Listener.
func FuzzListener(f *testing.F) {
	f.Add([]byte{0, 0, 2, 0}, false)
	f.Add([]byte{64 + 2, 6, 0, 0}, false)
	f.Add([]byte{7, 11, 0, 12, 13, 32, 0}, true)
	f.Add([]byte{6, 0, 0, 12, 0}, false) // an empty line after a POST and another request
	f.Add([]byte{5, 9, 12, 0, 12, 0}, false)
	f.Fuzz(func(t *testing.T, program []byte, eager bool) {
		// A line that fills the buffer of net/http to its last byte but one has it read
		// one byte, which the sender takes for a look whether the client is still there.
		if len(program) <= 50 {
			compare(t, program, eager)
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
		spared += compare(t, program, random.IntN(4) == 0)
	}
	if spared < 100 {
		t.Errorf("only %d requests were refused early: nothing was tested", spared)
	}
}
