package fault

import (
	"reflect"
	"strings"
)

// Most errors of net/http, and of golang.org/x/net/http2, have no type that other packages can name. This
// is the only file that reads their texts. A test makes net/http say each of them, so that it fails
// when another version of Go says it in other words.

// A httpText is how an error begins, what it contains after that, and what it means.
type httpText struct {
	begins, contains string
	means            Failure
}

var httpTexts = [...]httpText{
	// The request is wrong.
	{"unsupported protocol scheme ", "", neverSent},
	{"net/http: invalid header ", "", neverSent},
	{"net/http: invalid trailer ", "", neverSent},
	{"net/http: invalid method ", "", neverSent},
	{"http: no Host in request URL", "", neverSent},
	{"http: nil Request.", "", neverSent},
	{"http: invalid Host header", "", neverSent},
	{"http: Request.ContentLength=", "", neverSent},
	{"http: Request.RequestURI can't be set", "", neverSent},
	{"invalid Trailer key ", "", neverSent},
	{"invalid HTTP header ", "", neverSent},
	{"invalid HTTP trailer ", "", neverSent},
	{"invalid Host header", "", neverSent},
	{"invalid request :path ", "", neverSent},
	{"invalid ", " request header: ", neverSent},
	{"request header list larger than peer's advertised limit", "", neverSent},
	{"http2: unsupported scheme", "", neverSent},
	// Its body is shorter or longer than it says, which is noticed when the rest was sent.
	{"http: ContentLength=", " with Body length ", neverSent},
	{"http2: request body larger than specified content length", "", neverSent},
	// The configuration of this process is wrong, or the backend speaks another protocol.
	{"http: RoundTripper implementation (", "", neverSent},
	{"net/http: Transport.Dial", " hook returned (nil, nil)", neverSent},
	{"http: server gave HTTP response to HTTPS client", "", neverSent},
	{"tls: first record does not look like a TLS handshake", "", neverSent},
	{"x509: ", "", neverSent},
	{"tls: either ServerName or InsecureSkipVerify must be specified", "", neverSent},
	// The caller left: by Request.Cancel, which has no other error. An http.Client whose
	// Timeout has passed adds to the text, and its error is a timeout.
	{"net/http: request canceled", "", Failure{Canceled: true}},
	// The connection was not made, or the request was not taken.
	{"net/http: TLS handshake timeout", "", Failure{Unprocessed: true, Unanswered: true}},
	{"stream error: stream ID ", "; REFUSED_STREAM", Failure{Unprocessed: true}},
	{"http2: Transport received Server's graceful shutdown GOAWAY", "", Failure{Safety: RetrySafe}},
	// RFC 9113, section 7: the peer is generating excessive load.
	{"stream error: stream ID ", "; ENHANCE_YOUR_CALM", calm},
	{"http2: server sent GOAWAY and closed the connection; ", "ErrCode=ENHANCE_YOUR_CALM", calm},
	{"http2: Transport received GOAWAY from server ErrCode:ENHANCE_YOUR_CALM", "", calm},
	// What cannot be sent again, as its body is gone.
	{"net/http: cannot rewind body after connection loss", "", lost},
	{"http2: Transport: cannot retry err ", "", lost},
	// No answer came.
	{"net/http: timeout awaiting response headers", "", broken},
	{"http: server closed idle connection", "", broken},
	{"http2: server sent GOAWAY and closed the connection; ", "", broken},
	{"http2: Transport received GOAWAY from server ErrCode:", "", broken},
	{"http2: client connection lost", "", broken},
}

var (
	broken = Failure{Unanswered: true}
	lost   = Failure{Unanswered: true, Safety: RetryUnsafe}
	calm   = Failure{Overload: true, Party: Server}
)

// readHTTP returns what the text of err means, or of an error that it wraps. It reads errors that wrap no other, and
// whose type is of a package that makes such texts.
func readHTTP(err error) (f Failure, ok bool) {
	switch u := err.(type) {
	case interface{ Unwrap() error }:
		if err = u.Unwrap(); err != nil {
			return readHTTP(err)
		}
	case interface{ Unwrap() []error }:
		for _, e := range u.Unwrap() {
			if f, ok = readHTTP(e); ok {
				return f, true
			}
		}
	default:
		if err != nil && speaks(err) {
			return readText(err.Error())
		}
	}
	return f, false
}

// speaks reports whether the type of an error is one that those of net/http have.
func speaks(err error) bool {
	t := reflect.TypeOf(err)
	if t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	pkg := t.PkgPath()
	for _, of := range [...]string{"errors", "fmt", "net/http", "crypto/tls", "crypto/x509", "golang.org/x/net/http2"} {
		if strings.HasPrefix(pkg, of) {
			return true
		}
	}
	return false
}

func readText(text string) (f Failure, ok bool) {
	for i := range httpTexts {
		t := &httpTexts[i]
		if rest, begins := strings.CutPrefix(text, t.begins); begins && strings.Contains(rest, t.contains) {
			return t.means, true
		}
	}
	return f, false
}
