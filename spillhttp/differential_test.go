package spillhttp

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
)

// What a Listener reads, it must read as net/http does. The tests below compare the two on
// requests that servers have disagreed about, as they are, changed at random, and cut into
// pieces at random.

// bodyShapes are requests with two statements of where the body ends (CL.TE, TE.CL and
// TE.TE), the second sometimes hidden from one of two servers. What one of them takes for
// the body is a request for the other.
func bodyShapes() (all []string) {
	lengths := []string{
		"", "Content-Length: 0", "Content-Length: 4", "Content-Length: 6", "Content-Length: 48", "Content-Length: 00", "Content-Length: 4\r\nContent-Length: 4", "Content-Length: 0\r\nContent-Length: 48",
		"Content-Length: 4, 4", "Content-Length: +4", "Content-Length:\t4", "Content-Length : 4", "content-length: 0\r\nX: y\r\nCONTENT-LENGTH: 48", "Content-Length: 4\x00", "Content-Length: 18446744073709551620", "Content_Length: 48", "X-Content-Length: 48",
	}
	codings := []string{
		"", "Transfer-Encoding: chunked", "Transfer-Encoding : chunked", "Transfer-Encoding:chunked", "Transfer-Encoding: xchunked", "Transfer-Encoding: chunked, identity", "Transfer-Encoding: x\r\nTransfer-Encoding: chunked",
		"Transfer-Encoding:\r\n chunked", "X: y\r\n\tTransfer-Encoding: chunked", "X: y\rTransfer-Encoding: chunked", "X: y\nTransfer-Encoding: chunked", "Transfer-Encoding: chunked\x0b", "\x00Transfer-Encoding: chunked", "Transfer-encoding: \"chunked\"", "TE: chunked", "Transfer\xe2\x80\x91Encoding: chunked",
	}
	bodies := []string{"", "0\r\n\r\n", "0\r\n\r\nGET /vip/inner HTTP/1.1\r\nHost: a\r\n\r\n", "30\r\nGET /vip/inner HTTP/1.1\r\nHost: a\r\nX: 6789012345\r\n0\r\n\r\n", "4\r\nGET \r\n0\r\nX: y\r\n\r\n"}
	for _, length := range lengths {
		for _, coding := range codings {
			for _, fields := range []string{join(length, coding), join(coding, length)} {
				for _, body := range bodies {
					all = append(all, "POST /vip HTTP/1.1\r\nHost: a\r\n"+fields+"\r\n"+body)
				}
			}
		}
	}
	return all
}

// join returns fields as lines.
func join(fields ...string) (text string) {
	for _, f := range fields {
		if f != "" {
			text += f + "\r\n"
		}
	}
	return text
}

// headShapes are requests whose lines, names, values or ends are not as RFC 9112 has them,
// and parsers differ in what they make of them.
func headShapes() (all []string) {
	for _, line := range []string{
		"GET /vip HTTP/1.1", "GET / HTTP/1.1", "get / HTTP/1.1", "GET\t/\tHTTP/1.1", " GET / HTTP/1.1", "\r\nGET / HTTP/1.1", "\nGET / HTTP/1.1", "GET / HTTP/1.0", "GET / HTTP/0.9", "GET /", "GET / HTTP/1.1\x00", "GET / HTTP/01.1", "GET / HTTP/1.1 x", "GET / HTTP/1,1", "GET /  HTTP/1.1",
		"GET /vip/ HTTP/1.1", "GET /v%69p HTTP/1.1", "GET /%2fvip HTTP/1.1", "GET //vip HTTP/1.1", "GET /./vip HTTP/1.1", "GET /vip;x HTTP/1.1", "GET /vip#x HTTP/1.1", "GET /#/../vip HTTP/1.1", "GET /?/vip HTTP/1.1", "GET ?/vip HTTP/1.1", "GET * HTTP/1.1", "GET vip HTTP/1.1", "GET http://a/vip HTTP/1.1", "GET HTTP://b/vip HTTP/1.1", "GET file:///vip HTTP/1.1",
		"GET /healthz HTTP/1.1", "GET /healthz? HTTP/1.1", "GET /healthz/ HTTP/1.1", "GET /health%7a HTTP/1.1", "GET /vip\\..\\x HTTP/1.1", "GET /\xc3\xa9 HTTP/1.1", "GET /%c3%a9 HTTP/1.1", "GET /%zz HTTP/1.1", "GET /a%00b HTTP/1.1", "GET /vip%20HTTP/1.1 HTTP/1.1", "CONNECT a:80 HTTP/1.1", "CONNECT /vip HTTP/1.1", "OPTIONS * HTTP/1.1", "PRI * HTTP/2.0", "TRACE /vip HTTP/1.1", "M-SEARCH /vip HTTP/1.1", "HEAD /vip HTTP/1.1", "HEAD / HTTP/1.1",
	} {
		for _, fields := range []string{
			"Host: a\r\n", "Host: a\r\nHost: a\r\n", "Host: a\r\nHost: b\r\n", "", "Host:\r\n", "Host: a/b\r\n", "Host: a@b\r\n", "Host: a b\r\n", "Host: a:80:80\r\n", "Host: [::1]\r\n", "Host: a\x00\r\n", "Host : a\r\n", " Host: a\r\n", "HOST: a\r\n",
			"Host: a\r\nX-Request-Criticality: SHEDDABLE\r\n", "Host: a\r\nX-Request-Criticality: CRITICAL_PLUS\r\nx-request-criticality:SHEDDABLE\r\n", "Host: a\r\nX_Request_Criticality: SHEDDABLE\r\n", "Host: a\r\nX-Request-Criticality : SHEDDABLE\r\n", "Host: a\r\nX-Request-Criticality: \x0bSHEDDABLE\r\n",
			"Host: a\r\nX-Request-Criticality:\r\n SHEDDABLE\r\n", "Host: a\r\nBaggage: criticality=SHEDDABLE\r\nbaggage: criticality=CRITICAL\r\n", "Host: a\r\nX: y\rX-Request-Criticality: SHEDDABLE\r\n", "Host: a\r\nX-Request-Criticality: SHEDDABLE\n", "Host: a\nX-Request-Criticality: SHEDDABLE\r\n",
			"Host: a\r\n: x\r\n", "Host: a\r\nx\r\n", "Host: a\r\nX:\r\n", "Host: a\r\nX: \x01\r\n", "Host: a\r\nX\x80: y\r\n", "Host: a\r\nX: \x80\r\n", "Host: a\r\nConnection: close\r\n", "Host: a\r\nConnection: keep-alive, close\r\n", "Host: a\r\nConnection: Host\r\n", "Host: a\r\nExpect: 100-continue\r\n", "Host: a\r\nUpgrade: h2c\r\nConnection: Upgrade\r\n",
		} {
			all = append(all, line+"\r\n"+fields+"\r\n")
		}
	}
	return all
}

// mutate changes a text in one to three places.
func mutate(random *rand.Rand, text string, others []string) string {
	const bytes = "\r\n\t \x00\x0b\x0c\x7f\x80\xff:,;=/%?#+-0x\"\\"
	for range 1 + random.IntN(3) {
		lines := strings.SplitAfter(text, "\n")
		i, at := random.IntN(len(lines)), random.IntN(len(text)+1)
		switch random.IntN(8) {
		case 0: // a byte more
			text = text[:at] + bytes[random.IntN(len(bytes)):][:1] + text[at:]
		case 1: // a byte less
			text = text[:max(0, at-1)] + text[at:]
		case 2: // another byte
			text = text[:max(0, at-1)] + bytes[random.IntN(len(bytes)):][:1] + text[at:]
		case 3: // a line again
			text = strings.Join(slices.Insert(lines, i, lines[random.IntN(len(lines))]), "")
		case 4: // a line less
			text = strings.Join(slices.Delete(lines, i, i+1), "")
		case 5: // another end of a line
			lines[i] = strings.TrimRight(lines[i], "\r\n") + [...]string{"\n", "\r", "\r\r\n", "\r\n ", "\x00\r\n"}[random.IntN(5)]
			text = strings.Join(lines, "")
		case 6: // another case
			lines[i] = [...]func(string) string{strings.ToLower, strings.ToUpper}[random.IntN(2)](lines[i])
			text = strings.Join(lines, "")
		default: // what another one says
			other := others[random.IntN(len(others))]
			text = text[:at] + other[random.IntN(len(other)+1):]
		}
	}
	return text
}

// cut returns a text in pieces, most of them whole requests.
func cut(random *rand.Rand, text string) (pieces []string) {
	for _, p := range strings.SplitAfter(text, "\r\n\r\n") {
		for p != "" && random.IntN(10) == 0 {
			n := 1 + random.IntN(len(p))
			pieces = append(pieces, p[:n])
			p = p[n:]
		}
		if len(pieces) > 0 && random.IntN(8) == 0 {
			pieces[len(pieces)-1] += p
			continue
		}
		pieces = append(pieces, p)
	}
	return pieces
}

// TestFrameAgreesOnShapes is [TestFrameAgreesWithNetHTTP] for these requests and for random
// mutations of them.
func TestFrameAgreesOnShapes(t *testing.T) {
	all := append(bodyShapes(), headShapes()...)
	for seed := range uint64(3) {
		random := rand.New(rand.NewPCG(seed, 17))
		accepted := 0
		for range 6_000 {
			if agrees(t, []byte(mutate(random, all[random.IntN(len(all))], all))) {
				accepted++
			}
		}
		if accepted < 100 {
			t.Errorf("seed %d: only %d were accepted: the test shows little", seed, accepted)
		}
	}
	for _, text := range all {
		agrees(t, []byte(text))
	}
}

// answersAlike fails if a client can tell by the answers whether requests are rejected
// early. It returns how many were.
func answersAlike(t *testing.T, pieces []string, eager bool) (early int) {
	t.Helper()
	if strings.Contains(strings.Join(pieces, ""), "HEAD ") {
		return 0 // unify expects answers with bodies
	}
	synctest.Test(t, func(t *testing.T) {
		config := busy
		config.Rand = func() float64 { return 0.5 }
		atAGlance := mustHandler(t, echo, config, HandlerConfig{HealthPaths: []string{"/healthz"}})
		atAGlance.looks.Store(1 << 40)
		for name, h := range map[string]*Handler{"classified": half(t, echo), "at a glance": atAGlance} {
			got, want, some, all := both(t, h, pieces, eager)
			early += all - some
			if got != want || some > all {
				t.Errorf("%s, %q: net/http saw %d requests, without early rejection %d; answers\n%swant\n%s", name, pieces, some, all, got, want)
			}
			nothingLeft(t, h)
		}
	})
	return early
}

// both returns the answers with early rejection and without, and how many requests
// net/http saw. To less than four bytes at the end net/http says nothing, unless they are the
// first that it sees: then both get the pieces without them.
func both(t *testing.T, h *Handler, pieces []string, eager bool) (got, want string, some, all int) {
	t.Helper()
	const garbage = "400 Content-Type: text/plain; charset=utf-8 \"400 Bad Request\"\n"
	got, some = answers(t, h, pieces, eager, true)
	want, all = answers(t, h, pieces, eager, false)
	for n := 1; n < 4 && got == want+garbage; n++ {
		got, _ = answers(t, h, withoutLast(n, pieces), eager, true)
		want, _ = answers(t, h, withoutLast(n, pieces), eager, false)
	}
	return got, want, some, all
}

// answers returns the answers to a client, and how many requests net/http saw.
func answers(t *testing.T, h *Handler, pieces []string, eager, early bool) (string, int) {
	t.Helper()
	s := newSender(pieces...)
	s.eager = eager
	got, seen := play(t, s, h, early)
	return unify(t, got), seen
}

// withoutLast returns pieces without their last n bytes.
func withoutLast(n int, pieces []string) []string {
	pieces = slices.Clone(pieces)
	for i, p := range slices.Backward(pieces) {
		pieces[i] = p[:max(len(p)-n, 0)]
		n -= len(p) - len(pieces[i])
	}
	return pieces
}

// usual are requests that both read, one with a body that is a request by itself.
var usual = []string{
	plainRequest, "GET /vip HTTP/1.1\r\nHost: a\r\n\r\n", sheddable, "POST / HTTP/1.1\r\nHost: a\r\nX-Request-Criticality: SHEDDABLE\r\nContent-Length: 5\r\n\r\nhello",
	fmt.Sprintf("POST /vip HTTP/1.1\r\nHost: a\r\nContent-Length: %d\r\n\r\n%s", len(sheddable), sheddable),
}

const sheddable = "GET / HTTP/1.1\r\nHost: a\r\nX-Request-Criticality: SHEDDABLE\r\n\r\n"

// TestStreamsOfRequests: whatever a client sends, and in whatever pieces, it gets the same
// answers with early rejection and without.
func TestStreamsOfRequests(t *testing.T) {
	all := append(bodyShapes(), headShapes()...)
	rejected := 0
	for seed := range uint64(800) {
		random := rand.New(rand.NewPCG(seed, 18))
		var text strings.Builder
		for range 1 + random.IntN(8) {
			switch shape := all[random.IntN(len(all))]; random.IntN(8) {
			case 0:
				text.WriteString(shape)
			case 1:
				text.WriteString(mutate(random, shape, all))
			default:
				text.WriteString(usual[random.IntN(len(usual))])
			}
		}
		rejected += answersAlike(t, cut(random, text.String()), random.IntN(3) == 0)
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
	all := append(bodyShapes(), headShapes()...)
	for i := 0; i < len(all); i += 97 { // the rest is tested without fuzzing
		f.Add(all[i]+plainRequest, uint64(i), i%2 == 0)
	}
	f.Add("HMAD / HTTP/1.1\r\nHost: a\r\n\r\n"+plainRequest+"\r\n", uint64(4338), true) // two bytes at the end
	f.Fuzz(func(t *testing.T, text string, seed uint64, eager bool) {
		answersAlike(t, cut(rand.New(rand.NewPCG(seed, 19)), text), eager)
	})
}
