package earlytest

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
)

// BodyShapes returns requests that say twice where the body ends (CL.TE, TE.CL and TE.TE).
// Sometimes the second one is hidden from one of two servers: what is the body for one is a request
// for the other.
func BodyShapes() (all []string) {
	lengths := []string{
		"", "Content-Length: 0", "Content-Length: 4", "Content-Length: 6", "Content-Length: 48", "Content-Length: 00",
		"Content-Length: 4\r\nContent-Length: 4", "Content-Length: 0\r\nContent-Length: 48",
		"Content-Length: 4, 4", "Content-Length: +4", "Content-Length:\t4", "Content-Length : 4",
		"content-length: 0\r\nX: y\r\nCONTENT-LENGTH: 48", "Content-Length: 4\x00", "Content-Length: 18446744073709551620", "Content_Length: 48",
		"X-Content-Length: 48",
	}
	codings := []string{
		"", "Transfer-Encoding: chunked", "Transfer-Encoding : chunked", "Transfer-Encoding:chunked", "Transfer-Encoding: xchunked",
		"Transfer-Encoding: chunked, identity", "Transfer-Encoding: x\r\nTransfer-Encoding: chunked",
		"Transfer-Encoding:\r\n chunked", "X: y\r\n\tTransfer-Encoding: chunked", "X: y\rTransfer-Encoding: chunked",
		"X: y\nTransfer-Encoding: chunked", "Transfer-Encoding: chunked\x0b", "\x00Transfer-Encoding: chunked", "Transfer-encoding: \"chunked\"",
		"TE: chunked", "Transfer\xe2\x80\x91Encoding: chunked",
	}
	bodies := []string{
		"", "0\r\n\r\n", "0\r\n\r\nGET /vip/inner HTTP/1.1\r\nHost: a\r\n\r\n",
		"30\r\nGET /vip/inner HTTP/1.1\r\nHost: a\r\nX: 6789012345\r\n0\r\n\r\n", "4\r\nGET \r\n0\r\nX: y\r\n\r\n",
	}
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

// join returns fields as the lines of a head.
func join(fields ...string) (text string) {
	for _, f := range fields {
		if f != "" {
			text += f + "\r\n"
		}
	}
	return text
}

// HeadShapes returns requests whose lines, names, values or line ends violate RFC 9112. Parsers
// read them in different ways.
func HeadShapes() (all []string) {
	for _, line := range []string{
		"GET /vip HTTP/1.1", "GET / HTTP/1.1", "get / HTTP/1.1", "GET\t/\tHTTP/1.1", " GET / HTTP/1.1", "\r\nGET / HTTP/1.1", "\nGET / HTTP/1.1",
		"GET / HTTP/1.0", "GET / HTTP/0.9", "GET /", "GET / HTTP/1.1\x00", "GET / HTTP/01.1", "GET / HTTP/1.1 x", "GET / HTTP/1,1",
		"GET /  HTTP/1.1",
		"GET /vip/ HTTP/1.1", "GET /v%69p HTTP/1.1", "GET /%2fvip HTTP/1.1", "GET //vip HTTP/1.1", "GET /./vip HTTP/1.1", "GET /vip;x HTTP/1.1",
		"GET /vip#x HTTP/1.1", "GET /#/../vip HTTP/1.1", "GET /?/vip HTTP/1.1", "GET ?/vip HTTP/1.1", "GET * HTTP/1.1", "GET vip HTTP/1.1",
		"GET http://a/vip HTTP/1.1", "GET HTTP://b/vip HTTP/1.1", "GET file:///vip HTTP/1.1",
		"GET /healthz HTTP/1.1", "GET /healthz? HTTP/1.1", "GET /healthz/ HTTP/1.1", "GET /health%7a HTTP/1.1", "GET /vip\\..\\x HTTP/1.1",
		"GET /\xc3\xa9 HTTP/1.1", "GET /%c3%a9 HTTP/1.1", "GET /%zz HTTP/1.1", "GET /a%00b HTTP/1.1", "GET /vip%20HTTP/1.1 HTTP/1.1",
		"CONNECT a:80 HTTP/1.1", "CONNECT /vip HTTP/1.1", "OPTIONS * HTTP/1.1", "PRI * HTTP/2.0", "TRACE /vip HTTP/1.1", "M-SEARCH /vip HTTP/1.1",
		"HEAD /vip HTTP/1.1", "HEAD / HTTP/1.1",
	} {
		for _, fields := range []string{
			"Host: a\r\n", "Host: a\r\nHost: a\r\n", "Host: a\r\nHost: b\r\n", "", "Host:\r\n", "Host: a/b\r\n", "Host: a@b\r\n", "Host: a b\r\n",
			"Host: a:80:80\r\n", "Host: [::1]\r\n", "Host: a\x00\r\n", "Host : a\r\n", " Host: a\r\n", "HOST: a\r\n",
			"Host: a\r\nX-Request-Criticality: SHEDDABLE\r\n",
			"Host: a\r\nX-Request-Criticality: CRITICAL_PLUS\r\nx-request-criticality:SHEDDABLE\r\n",
			"Host: a\r\nX-Request-Level: 129\r\nTraceparent: 00-0af7651916cd43dd8448eb211c803105-b7ad6b7169203331-01\r\n",
			"Host: a\r\nX_Request_Criticality: SHEDDABLE\r\n", "Host: a\r\nX-Request-Criticality : SHEDDABLE\r\n",
			"Host: a\r\nX-Request-Criticality: \x0bSHEDDABLE\r\n",
			"Host: a\r\nX-Request-Criticality:\r\n SHEDDABLE\r\n", "Host: a\r\nBaggage: criticality=SHEDDABLE\r\nbaggage: criticality=CRITICAL\r\n",
			"Host: a\r\nX: y\rX-Request-Criticality: SHEDDABLE\r\n", "Host: a\r\nX-Request-Criticality: SHEDDABLE\n",
			"Host: a\nX-Request-Criticality: SHEDDABLE\r\n",
			"Host: a\r\n: x\r\n", "Host: a\r\nx\r\n", "Host: a\r\nX:\r\n", "Host: a\r\nX: \x01\r\n", "Host: a\r\nX\x80: y\r\n",
			"Host: a\r\nX: \x80\r\n", "Host: a\r\nConnection: close\r\n", "Host: a\r\nConnection: keep-alive, close\r\n",
			"Host: a\r\nConnection: Host\r\n", "Host: a\r\nExpect: 100-continue\r\n", "Host: a\r\nUpgrade: h2c\r\nConnection: Upgrade\r\n",
		} {
			all = append(all, line+"\r\n"+fields+"\r\n")
		}
	}
	return all
}

// Mutate changes a text in one to three places.
func Mutate(random *rand.Rand, text string, others []string) string {
	const bytes = "\r\n\t \x00\x0b\x0c\x7f\x80\xff:,;=/%?#+-0x\"\\"
	for range 1 + random.IntN(3) {
		lines := strings.SplitAfter(text, "\n")
		i, at := random.IntN(len(lines)), random.IntN(len(text)+1)
		switch random.IntN(8) {
		case 0: // insert a byte
			text = text[:at] + bytes[random.IntN(len(bytes)):][:1] + text[at:]
		case 1: // remove a byte
			text = text[:max(0, at-1)] + text[at:]
		case 2: // change a byte
			text = text[:max(0, at-1)] + bytes[random.IntN(len(bytes)):][:1] + text[at:]
		case 3: // repeat a line
			text = strings.Join(slices.Insert(lines, i, lines[random.IntN(len(lines))]), "")
		case 4: // remove a line
			text = strings.Join(slices.Delete(lines, i, i+1), "")
		case 5: // change the end of a line
			lines[i] = strings.TrimRight(lines[i], "\r\n") + [...]string{"\n", "\r", "\r\r\n", "\r\n ", "\x00\r\n"}[random.IntN(5)]
			text = strings.Join(lines, "")
		case 6: // change upper to lower case, or back
			lines[i] = [...]func(string) string{strings.ToLower, strings.ToUpper}[random.IntN(2)](lines[i])
			text = strings.Join(lines, "")
		default: // take a part of another text
			other := others[random.IntN(len(others))]
			text = text[:at] + other[random.IntN(len(other)+1):]
		}
	}
	return text
}

// Cut divides a text into pieces, most of which are whole requests.
func Cut(random *rand.Rand, text string) (pieces []string) {
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

// usual are requests that both servers read. One has a body that is itself a request.
var usual = []string{
	plain, "GET /vip HTTP/1.1\r\nHost: a\r\n\r\n", sheddable, "POST / HTTP/1.1\r\nHost: a\r\nX-Request-Criticality: SHEDDABLE\r\nContent-Length: 5\r\n\r\nhello",
	fmt.Sprintf("POST /vip HTTP/1.1\r\nHost: a\r\nContent-Length: %d\r\n\r\n%s", len(sheddable), sheddable),
}

const sheddable = "GET / HTTP/1.1\r\nHost: a\r\nX-Request-Criticality: SHEDDABLE\r\n\r\n"

const plain = "GET /search?q=go HTTP/1.1\r\nHost: example.com\r\n\r\n"

// shapes are the requests of BodyShapes and HeadShapes.
var shapes = append(BodyShapes(), HeadShapes()...)

// Stream returns a stream of up to eight requests in pieces. Most of the requests are usual.
func Stream(random *rand.Rand) (pieces []string) {
	var text strings.Builder
	for range 1 + random.IntN(8) {
		switch shape := shapes[random.IntN(len(shapes))]; random.IntN(8) {
		case 0:
			text.WriteString(shape)
		case 1:
			text.WriteString(Mutate(random, shape, shapes))
		default:
			text.WriteString(usual[random.IntN(len(usual))])
		}
	}
	return Cut(random, text.String())
}

// Corpus combines parts of requests that servers have read in different ways: request lines, fields
// that say where the body ends, and line ends.
func Corpus() (all []string) {
	lines := []string{
		"GET / HTTP/1.1", "POST /a?b=c HTTP/1.1", "GET  / HTTP/1.1", "GET /\t HTTP/1.1", "GET / HTTP/1.1 ", "GET / http/1.1", "GET / HTTP/1.10",
		"GET / HTTP/2.0",
		"GET /%00 HTTP/1.1", "GET /a\x80 HTTP/1.1", "GET http://b/ HTTP/1.1", "GET //b/c HTTP/1.1", "G\x00T / HTTP/1.1", "OPTIONS * HTTP/1.1",
		"GET /../a HTTP/1.1", "GET /a#b HTTP/1.1",
	}
	fields := []string{
		"", "Content-Length: 0", "Content-Length: 5", "Content-Length: 05", "Content-Length: +5", "Content-Length: -1", "Content-Length: 5,5",
		"Content-Length: 5\r\nContent-Length: 5",
		"Content-Length: 5\r\ncontent-length: 6", "Content-Length : 5", "Content-Length\t: 5", " Content-Length: 5", "Content-Length: 5 ",
		"Content-Length:\x0b5", "Content-Length: 0x5", "Content-Length: 5_0",
		"Transfer-Encoding: chunked", "Transfer-Encoding : chunked", "Transfer-Encoding: identity", "Transfer-Encoding: chunked, gzip",
		"Transfer-Encoding:\tchunked", "transfer-encoding: CHUNKED",
		"Transfer-Encoding: chunked\r\nContent-Length: 5", "X: y\r\n z: w", "X: y\rZ: w", "X: y\nZ: w", "X\x00: y", "X: \x00", "X: \x7f", ": y",
		"X", "X: \xff", "Host: b", "Host : b", "Connection: close",
		"Connection: keep-alive", "Connection: content-length", "Expect: 100-continue", "Upgrade: h2c", "Trailer: Content-Length",
		"Pragma: no-cache", "X_Y: z", "X-Request-Criticality: SHEDDABLE",
		"X-REQUEST-CRITICALITY:\tsheddable ", "x-request-criticality: CRITICAL\r\nX-Request-Criticality: SHEDDABLE", "X-Request-Criticality:",
		"baggage: a=b\r\nX-Envoy-Expected-Rq-Timeout-Ms: 250", "Grpc-Timeout: 5S\r\ngrpc-previous-rpc-attempts: 1",
		"Amz-Sdk-Request: attempt=2\r\nx-envoy-attempt-count: 3",
	}
	for _, line := range lines {
		for _, field := range fields {
			for _, end := range []string{"\r\n", "\n", "\r"} {
				text := line + end + "Host: a" + end
				if field != "" {
					text += field + end
				}
				all = append(all, text+end, text+end+"12345", text+end+"0\r\n\r\nGET /inner HTTP/1.1\r\nHost: a\r\n\r\n")
			}
		}
	}
	return all
}
