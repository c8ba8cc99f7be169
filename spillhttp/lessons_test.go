package spillhttp_test

import (
	"context"
	"errors"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/seed90641741/spillway/egress"
	"github.com/seed90641741/spillway/spillhttp"
	"github.com/seed90641741/spillway/spilltest"
)

// A try is one request of [TestTransportLessons].
type try struct {
	name     string
	want     spilltest.Evidence
	attempts int
	base     http.RoundTripper // nil: one of net/http
	method   string            // GET if empty
	url      string
	body     func() io.Reader
	timeout  time.Duration // of the http.Client
	change   func(*http.Request)
}

func (x *try) call(client *http.Client) func(context.Context) error {
	return func(ctx context.Context) error {
		var body io.Reader
		if x.body != nil {
			body = x.body()
		}
		req, err := http.NewRequestWithContext(ctx, x.method, x.url, body)
		if err != nil {
			return err
		}
		if x.body != nil {
			req.GetBody = func() (io.ReadCloser, error) { return io.NopCloser(x.body()), nil }
		}
		if x.change != nil {
			x.change(req)
		}
		resp, err := client.Do(req)
		if err != nil {
			return err
		}
		_ = resp.Body.Close()
		if resp.StatusCode >= 400 {
			return errors.New(resp.Status)
		}
		return nil
	}
}

type brokenReader struct{}

func (brokenReader) Read([]byte) (int, error) { return 0, errors.New("the caller's disk has failed") }

// fails is a base whose dials fail.
func fails(err error) http.RoundTripper {
	return &http.Transport{DialContext: func(context.Context, string, string) (net.Conn, error) { return nil, err }}
}

// proxied is a base with a proxy that answers CONNECT with a status.
func proxied(t *testing.T, status int) http.RoundTripper {
	t.Helper()
	proxy := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(status) }))
	t.Cleanup(proxy.Close)
	u, err := url.Parse(proxy.URL)
	if err != nil {
		t.Fatal(err)
	}
	return &http.Transport{Proxy: http.ProxyURL(u)}
}

type nobody struct{}

func (nobody) RoundTrip(*http.Request) (*http.Response, error) { return nil, nil }

// TestTransportLessons: what each end of a request teaches.
func TestTransportLessons(t *testing.T) {
	silent, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { silent.Close() })
	mux := http.NewServeMux()
	for path, status := range map[string]int{"/500": 500, "/503": 503, "/429": 429, "/504": 504} {
		mux.HandleFunc(path, func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(status) })
	}
	mux.HandleFunc("/reset", func(w http.ResponseWriter, _ *http.Request) {
		c, _, _ := w.(http.Hijacker).Hijack()
		_ = c.(*net.TCPConn).SetLinger(0)
		_ = c.Close()
	})
	mux.HandleFunc("/read", func(_ http.ResponseWriter, r *http.Request) { _, _ = io.Copy(io.Discard, r.Body) })
	mux.HandleFunc("/hang", func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() })
	server := httptest.NewServer(mux)
	t.Cleanup(server.Close)
	secure := httptest.NewUnstartedServer(mux)
	secure.Config.ErrorLog = log.New(io.Discard, "", 0)
	secure.StartTLS()
	t.Cleanup(secure.Close)

	canceled := make(chan struct{})
	close(canceled)
	emfile := &net.OpError{Op: "dial", Net: "tcp", Err: os.NewSyscallError("socket", syscall.EMFILE)}
	noPort := &net.OpError{Op: "dial", Net: "tcp", Err: os.NewSyscallError("connect", syscall.EADDRNOTAVAIL)}
	late := &http.Transport{TLSHandshakeTimeout: 10 * time.Millisecond}
	never, gone, ok := spilltest.NeverSent, spilltest.Unanswered, spilltest.Answered
	text := func() io.Reader { return strings.NewReader("text") }
	broken := func() io.Reader { return brokenReader{} }

	tries := []try{
		{name: "scheme", want: never, attempts: 1, url: "gopher://x/"},
		{name: "no host", want: never, attempts: 1, url: "http:///x"},
		{name: "header", want: never, attempts: 1, url: server.URL, change: func(r *http.Request) { r.Header.Set("A", "abc\n") }},
		{name: "method", want: never, attempts: 1, url: server.URL, change: func(r *http.Request) { r.Method = "GE T" }},
		{name: "body", want: never, attempts: 1, method: "PUT", url: server.URL + "/read", body: broken},
		{name: "body over TLS", want: never, attempts: 1, base: secure.Client().Transport, method: "PUT", url: secure.URL + "/read", body: broken},
		{name: "short body", want: never, attempts: 1, method: "PUT", url: server.URL + "/read", body: text, change: func(r *http.Request) { r.ContentLength = 9 }},
		{name: "Cancel", want: never, attempts: 1, url: server.URL + "/hang", change: func(r *http.Request) { r.Cancel = canceled }}, //nolint:staticcheck // callers still use it
		{name: "nil, nil", want: never, attempts: 1, base: nobody{}, url: server.URL},
		{name: "no descriptor", want: never, attempts: 3, base: fails(emfile), url: server.URL},
		{name: "no descriptor, POST", want: never, attempts: 3, base: fails(emfile), method: "POST", url: server.URL, body: text},
		{name: "no descriptor, TLS", want: never, attempts: 3, base: fails(emfile), url: secure.URL},
		{name: "no port", want: never, attempts: 3, base: fails(noPort), url: server.URL},
		{name: "no name", want: never, attempts: 3, base: fails(&net.DNSError{Err: "no such host", IsNotFound: true}), url: server.URL},
		{name: "certificate", want: never, attempts: 1, base: &http.Transport{}, url: secure.URL},
		{name: "proxy 503", want: never, attempts: 3, base: proxied(t, 503), url: "https://backend.example"},
		{name: "proxy 407", want: never, attempts: 1, base: proxied(t, 407), url: "https://backend.example"},
		{name: "rejected", want: gone, attempts: 3, url: "http://127.0.0.1:1"},
		{name: "rejected, POST", want: gone, attempts: 3, method: "POST", url: "http://127.0.0.1:1", body: text},
		{name: "TLS handshake", want: gone, attempts: 3, base: late, method: "POST", url: "https://" + silent.Addr().String(), body: text},
		{name: "reset", want: gone, attempts: 3, url: server.URL + "/reset"},
		{name: "reset, POST", want: gone, attempts: 1, method: "POST", url: server.URL + "/reset", body: text},
		{name: "timeout", want: gone, attempts: 1, url: server.URL + "/hang", timeout: 30 * time.Millisecond},
		{name: "500", want: ok, attempts: 3, url: server.URL + "/500"},
		{name: "503", want: ok, attempts: 3, url: server.URL + "/503"},
		{name: "504", want: ok, attempts: 3, url: server.URL + "/504"},
		{name: "429", want: spilltest.OverQuota, attempts: 1, url: server.URL + "/429"},
	}
	spilltest.TestLessons(t, func(t *testing.T, c egress.Config) (all []spilltest.Lesson) {
		for _, x := range tries {
			if x.base == nil {
				x.base = &http.Transport{DisableKeepAlives: true}
			}
			transport, err := spillhttp.NewTransport(spillhttp.TransportConfig{Base: x.base, Egress: c})
			if err != nil {
				t.Fatal(err)
			}
			client := &http.Client{Transport: transport, Timeout: x.timeout}
			all = append(all, spilltest.Lesson{Name: x.name, Call: x.call(client), Want: x.want, Attempts: x.attempts})
		}
		return all
	})
}
