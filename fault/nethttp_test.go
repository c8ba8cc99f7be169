package fault_test

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/seed90641741/spillway/fault"
)

// nothing is a base that breaks its contract.
type nothing struct{}

func (nothing) RoundTrip(*http.Request) (*http.Response, error) { return nil, nil }

// TestHTTPTexts has the net/http of this version of Go fail in each way that has no type, so that a change
// of its texts is seen here.
func TestHTTPTexts(t *testing.T) {
	quiet := func(s *httptest.Server) *httptest.Server {
		s.Config.ErrorLog = nil
		t.Cleanup(s.Close)
		return s
	}
	plain := quiet(httptest.NewServer(http.NotFoundHandler()))
	secure := quiet(httptest.NewTLSServer(http.NotFoundHandler()))
	h2 := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { _, _ = io.Copy(io.Discard, r.Body) }))
	h2.EnableHTTP2 = true
	h2.StartTLS()
	t.Cleanup(h2.Close)
	silent := must(net.Listen("tcp", "127.0.0.1:0"))
	t.Cleanup(func() { silent.Close() })
	canceled := make(chan struct{})
	close(canceled)
	canceledTLS := fault.Failure{Unprocessed: true, Unanswered: true, Timeout: true}
	closing := &http.Transport{TLSHandshakeTimeout: time.Millisecond}

	for name, row := range map[string]struct {
		base   http.RoundTripper // nil: one of net/http
		url    string
		body   io.Reader
		change func(*http.Request)
		want   fault.Failure
	}{
		"scheme":         {url: "gopher://x/", want: neverSent},
		"no scheme":      {url: "/path", want: neverSent},
		"no host":        {url: "http:///path", want: neverSent},
		"header name":    {url: plain.URL, change: func(r *http.Request) { r.Header["a b"] = []string{""} }, want: neverSent},
		"header value":   {url: plain.URL, change: func(r *http.Request) { r.Header.Set("A", "abc\n") }, want: neverSent},
		"trailer":        {url: plain.URL, change: func(r *http.Request) { r.Trailer = http.Header{"A": {"abc\n"}} }, want: neverSent},
		"trailer key":    {url: plain.URL, body: onlyReader{strings.NewReader("x")}, change: trailer, want: neverSent},
		"method":         {url: plain.URL, change: func(r *http.Request) { r.Method = "GE T" }, want: neverSent},
		"URI":            {url: plain.URL, change: func(r *http.Request) { r.RequestURI = "/" }, want: neverSent},
		"nil URL":        {url: plain.URL, change: func(r *http.Request) { r.URL = nil }, want: neverSent},
		"nil body":       {url: plain.URL, change: func(r *http.Request) { r.ContentLength = 5 }, want: neverSent},
		"short body":     {url: plain.URL, body: strings.NewReader("x"), change: func(r *http.Request) { r.ContentLength = 5 }, want: neverSent},
		"long body":      {url: plain.URL, body: strings.NewReader("0123456789"), change: func(r *http.Request) { r.ContentLength = 5 }, want: neverSent},
		"long body, h2":  {base: h2.Client().Transport, url: h2.URL, body: strings.NewReader("0123456789"), change: func(r *http.Request) { r.ContentLength = 5 }, want: neverSent},
		"upgrade, h2":    {base: h2.Client().Transport, url: h2.URL, change: func(r *http.Request) { r.Header.Set("Transfer-Encoding", "x") }, want: neverSent},
		"path, h2":       {base: h2.Client().Transport, url: h2.URL, change: func(r *http.Request) { r.URL.Opaque = "x y" }, want: neverSent},
		"nil, nil":       {base: nothing{}, url: plain.URL, want: neverSent},
		"nil connection": {base: &http.Transport{DialContext: noConn}, url: plain.URL, want: neverSent},
		"not TLS":        {url: strings.Replace(plain.URL, "http:", "https:", 1), want: neverSent},
		"certificate":    {url: secure.URL, want: neverSent},
		"Cancel":         {url: plain.URL, change: func(r *http.Request) { r.Cancel = canceled }, want: fault.Failure{Canceled: true}}, //nolint:staticcheck // callers still use it
		"TLS handshake":  {base: closing, url: "https://" + silent.Addr().String(), want: canceledTLS},
		"headers":        {base: &http.Transport{ResponseHeaderTimeout: time.Millisecond}, url: "http://" + silent.Addr().String(), want: timedOut},
	} {
		t.Run(name, func(t *testing.T) {
			if row.base == nil {
				row.base = &http.Transport{DisableKeepAlives: true}
			}
			req := must(http.NewRequestWithContext(t.Context(), http.MethodPost, row.url, row.body))
			if row.change != nil {
				row.change(req)
			}
			resp, err := (&http.Client{Transport: row.base}).Do(req)
			if err == nil {
				resp.Body.Close()
				t.Fatalf("answered %d, want an error", resp.StatusCode)
			}
			if got := fault.Of(err); got != row.want {
				t.Errorf("%v:\n%+v, want\n%+v", err, got, row.want)
			}
		})
	}
}

func trailer(r *http.Request) { r.Trailer = http.Header{"Content-Length": nil} }

// onlyReader hides the type of a reader.
type onlyReader struct{ io.Reader }

func noConn(context.Context, string, string) (net.Conn, error) { return nil, nil }

// TestClientTimeout: the error of an http.Client whose Timeout has passed is a timeout, whichever of its
// timers was first.
func TestClientTimeout(t *testing.T) {
	for _, text := range []string{"net/http: request canceled", "net/http: request canceled while waiting for connection", "context deadline exceeded"} {
		client := &http.Client{Timeout: time.Millisecond, Transport: late(text)}
		resp, err := client.Get("http://x/")
		if err == nil {
			_ = resp.Body.Close()
		}
		if got := fault.Of(err); err == nil || !strings.Contains(err.Error(), "Client.Timeout exceeded") || got != timedOut {
			t.Errorf("%v: %+v", err, got)
		}
	}
}

// late ends a request with a text when its time is over.
type late string

func (l late) RoundTrip(r *http.Request) (*http.Response, error) {
	<-r.Cancel //nolint:staticcheck // closed by the timer of the client
	return nil, errors.New(string(l))
}

// TestHTTP2Texts has the texts of HTTP/2 that a server of net/http does not cause; package spillhttp has real ones.
func TestHTTP2Texts(t *testing.T) {
	calm := fault.Failure{Overload: true, Party: fault.Server}
	for text, want := range map[string]fault.Failure{
		"stream error: stream ID 1; REFUSED_STREAM; received from peer":                                                    {Unprocessed: true},
		"stream error: stream ID 1; ENHANCE_YOUR_CALM; received from peer":                                                 calm,
		"stream error: stream ID 1; INTERNAL_ERROR; received from peer":                                                    {},
		`http2: server sent GOAWAY and closed the connection; LastStreamID=1, ErrCode=ENHANCE_YOUR_CALM, debug="too many"`: calm,
		`http2: server sent GOAWAY and closed the connection; LastStreamID=1, ErrCode=NO_ERROR, debug=""`:                  unanswered,
		"http2: Transport received GOAWAY from server ErrCode:ENHANCE_YOUR_CALM":                                           calm,
		"http2: Transport received GOAWAY from server ErrCode:PROTOCOL_ERROR":                                              unanswered,
		"http2: Transport received Server's graceful shutdown GOAWAY":                                                      {Safety: fault.RetrySafe},
	} {
		if got := fault.Of(&url.Error{Op: "Get", URL: "https://x/", Err: errors.New(text)}); got != want {
			t.Errorf("%s: %+v, want %+v", text, got, want)
		}
	}
}

// must returns v, which had to be made without an error.
func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}
