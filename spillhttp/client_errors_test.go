package spillhttp

import (
	"bufio"
	"context"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/seed90641741/spillway/fault"
)

// HTTP/2 error codes, RFC 9113, section 7.
const (
	refusedStream   = 0x7
	enhanceYourCalm = 0xb
)

// TestTransportErrors lets a real http.Transport fail in each way that is handled differently.
func TestTransportErrors(t *testing.T) {
	type f = fault.Failure
	const reject = "127.0.0.1:1"
	untrusted := httptest.NewUnstartedServer(http.NotFoundHandler())
	untrusted.Config.ErrorLog = quiet
	untrusted.StartTLS()
	defer untrusted.Close()
	never := &net.Resolver{PreferGo: true, Dial: func(context.Context, string, string) (net.Conn, error) {
		return nil, errors.New("no name server")
	}}
	canceled, cancel := context.WithCancelCause(t.Context())
	cancel(errors.New("a cause of the caller's"))
	expired, stop := context.WithDeadline(t.Context(), time.Now())
	defer stop()

	for _, row := range []struct {
		name string
		base *http.Transport
		ctx  context.Context
		url  string
		want f
	}{
		{"connection refused", &http.Transport{}, nil, "http://" + reject, f{Unprocessed: true, Unanswered: true}},
		{"proxy rejects", &http.Transport{Proxy: http.ProxyURL(must(http.NewRequest("GET", "http://"+reject, nil)).URL)}, nil,
			"http://backend.example", f{Unsent: true, Safety: fault.RetrySafe}},
		{"unknown host", &http.Transport{DialContext: (&net.Dialer{Resolver: never}).DialContext}, nil, "http://backend.example", f{Unsent: true, Safety: fault.RetrySafe}},
		{"dial takes too long", &http.Transport{DialContext: (&net.Dialer{Deadline: time.Unix(1, 0)}).DialContext}, nil, "http://127.0.0.1:1",
			f{Unprocessed: true, Timeout: true, Unanswered: true}},
		{"untrusted certificate", &http.Transport{}, nil, untrusted.URL, f{Unsent: true, Safety: fault.RetryUnsafe}},
		{"connection reset", &http.Transport{}, nil, "http://" + serve(t, reset).Addr().String(), f{Unanswered: true}},
		{"headers take too long", &http.Transport{ResponseHeaderTimeout: time.Millisecond}, nil, "http://" + serve(t, silent).Addr().String(),
			f{Timeout: true, Unanswered: true}},
		{"canceled", &http.Transport{}, canceled, untrusted.URL, f{Canceled: true}},
		{"deadline", &http.Transport{}, expired, untrusted.URL, f{Timeout: true, Unanswered: true}},
		{"HTTP/2 told to calm down", h2only(), nil, "http://" + serve(t, rst(enhanceYourCalm)).Addr().String(), f{Overload: true, Party: fault.Server}},
		{"HTTP/2 goes away to calm the client down", h2only(), nil, "http://" + serve(t, goAway(enhanceYourCalm)).Addr().String(),
			f{Overload: true, Party: fault.Server}},
		{"HTTP/2 goes away", h2only(), nil, "http://" + serve(t, goAway(1)).Addr().String(), f{Unanswered: true}},
		{"HTTP/2 stream broken", h2only(), nil, "http://" + serve(t, rst(2)).Addr().String(), f{}},
	} {
		t.Run(row.name, func(t *testing.T) {
			ctx := row.ctx
			if ctx == nil {
				ctx = t.Context()
			}
			defer row.base.CloseIdleConnections()
			// A body that cannot be replayed, so that net/http does not try again by itself.
			req := must(http.NewRequestWithContext(ctx, http.MethodPost, row.url, io.MultiReader(strings.NewReader("x"))))
			resp, err := row.base.RoundTrip(req)
			if err == nil {
				resp.Body.Close()
				t.Fatalf("answered %d, want an error", resp.StatusCode)
			}
			if got := ofError(ctx, err); got != row.want {
				t.Errorf("%T %v\nis   %+v\nwant %+v", err, err, got, row.want)
			}
		})
	}
}

// TestRefusedStream: net/http repeats by itself what HTTP/2 rejected, and gives up
// after a minute.
func TestRefusedStream(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		base := h2only()
		defer base.CloseIdleConnections()
		base.DialContext = func(context.Context, string, string) (net.Conn, error) {
			client, server := net.Pipe()
			go rst(refusedStream)(server)
			return client, nil
		}
		resp, err := base.RoundTrip(newRequest(t, t.Context(), http.MethodGet, nil))
		if err == nil {
			resp.Body.Close()
		}
		if got, want := ofError(t.Context(), err), (fault.Failure{Unprocessed: true}); err == nil || got != want {
			t.Errorf("%T %v\nis   %+v\nwant %+v", err, err, got, want)
		}
	})
}

// serve answers each connection to a loopback address with handle.
func serve(t *testing.T, handle func(net.Conn)) net.Listener {
	t.Helper()
	l := must(net.Listen("tcp", "127.0.0.1:0"))
	t.Cleanup(func() { l.Close() })
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go func() { defer c.Close(); handle(c) }()
		}
	}()
	return l
}

// reset waits for the request and breaks the connection.
func reset(c net.Conn) {
	_, _ = c.Read(make([]byte, 1))
	_ = c.(*net.TCPConn).SetLinger(0)
}

// silent takes the request and never answers.
func silent(c net.Conn) { _, _ = io.Copy(io.Discard, c) }

// rst speaks as much HTTP/2 as it takes to end each stream with a code.
func rst(code uint32) func(net.Conn) {
	const headers, rstStream, settings = 1, 3, 4
	return func(c net.Conn) {
		out := make(chan []byte, 100) // as both ends of a net.Pipe may be writing
		defer close(out)
		go func() {
			for frame := range out {
				_, _ = c.Write(frame)
			}
		}()
		in := bufio.NewReader(c)
		frame := make([]byte, 9)
		if _, err := in.Discard(len("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n")); err != nil {
			return
		}
		out <- []byte{0, 0, 0, settings, 0, 0, 0, 0, 0}
		for {
			if _, err := io.ReadFull(in, frame); err != nil {
				return
			}
			if _, err := in.Discard(int(frame[0])<<16 | int(frame[1])<<8 | int(frame[2])); err != nil {
				return
			}
			if frame[3] == headers {
				end := append([]byte{0, 0, 4, rstStream, 0}, frame[5:9]...)
				out <- binary.BigEndian.AppendUint32(end, code)
			}
		}
	}
}

// goAway speaks as much HTTP/2 as it takes to end the connection with a code once a request is there.
func goAway(code uint32) func(net.Conn) {
	const headers, goAway, settings = 1, 7, 4
	return func(c net.Conn) {
		in := bufio.NewReader(c)
		frame := make([]byte, 9)
		_, _ = in.Discard(len("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"))
		_, _ = c.Write([]byte{0, 0, 0, settings, 0, 0, 0, 0, 0})
		for frame[3] != headers {
			if _, err := io.ReadFull(in, frame); err != nil {
				return
			}
			_, _ = in.Discard(int(frame[0])<<16 | int(frame[1])<<8 | int(frame[2]))
		}
		end := append([]byte{0, 0, 8, goAway, 0, 0, 0, 0, 0}, frame[5:9]...)
		_, _ = c.Write(binary.BigEndian.AppendUint32(end, code))
		_ = c.SetReadDeadline(time.Now().Add(50 * time.Millisecond)) // for the rest of the request
		_, _ = io.Copy(io.Discard, in)
	}
}

// h2only speaks HTTP/2 without TLS.
func h2only() *http.Transport {
	t := &http.Transport{Protocols: new(http.Protocols)}
	t.Protocols.SetUnencryptedHTTP2(true)
	return t
}

func TestStatusError(t *testing.T) {
	var err error = &StatusError{StatusCode: 503, failure: fault.Failure{Overload: true}}
	if want := "spillhttp: the backend answered 503 Service Unavailable"; err.Error() != want {
		t.Errorf("reads %q, want %q", err, want)
	}
	if !fault.Of(err).Overload {
		t.Error("package fault does not see the failure")
	}
}
