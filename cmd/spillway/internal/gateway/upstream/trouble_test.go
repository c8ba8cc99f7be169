package upstream

import (
	"bufio"
	"context"
	"crypto/tls"
	"fmt"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/seed90641741/spillway/retry"
)

// answering returns the address of a server that answers each connection with a text and closes it.
func answering(t *testing.T, text string) string {
	t.Helper()
	l, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			_, _ = http.ReadRequest(bufio.NewReader(c))
			_, _ = fmt.Fprint(c, text)
			_ = c.Close()
		}
	}()
	return l.Addr().String()
}

// TestFailuresHaveNoSecrets: whatever an endpoint sends in place of an answer, what is said of the
// failure names the kind, and has nothing of what was sent.
func TestFailuresHaveNoSecrets(t *testing.T) {
	const secret = "hunter2"
	for text, want := range map[string]string{
		"":              "EOF",
		secret + "\r\n": "malformed HTTP",
		"HTTP/1.1 200 OK\r\nSet-Cookie " + secret + "\r\n\r\n":                        "malformed",
		"HTTP/1.1 " + secret + " OK\r\n\r\n":                                          "malformed HTTP status code",
		secret + "/1.1 200 OK\r\n\r\n":                                                "malformed HTTP version",
		"HTTP/1.1 200 OK\r\nContent-Length: " + secret + "\r\n\r\n":                   "bad Content-Length",
		"HTTP/1.1 200 OK\r\nTransfer-Encoding: " + secret + "\r\n\r\n":                "unsupported transfer encoding",
		"HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 2" + secret + "\r\n": "",
		"HTTP/1.1 200 OK\r\n " + secret + ": 1\r\n\r\n":                               "malformed",
		"HTTP/1.1 200 OK\r\nA\x00: " + secret + "\r\n\r\n":                            "malformed",
	} {
		transport := new(http.Transport)
		r, _ := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+answering(t, text), http.NoBody)
		resp, err := transport.RoundTrip(r)
		if err == nil {
			_ = resp.Body.Close()
			t.Errorf("%q is an answer", text)
			continue
		}
		for _, e := range []error{err, &retry.Error{Err: err, Why: &retry.NotRetriedError{Reason: retry.ReasonDontRetry}, Attempts: 1}} {
			if got := FailureOf(e); strings.Contains(got, secret) || !strings.Contains(got, want) || got == "" || len(got) > 300 {
				t.Errorf("%q: %q, want %q and no secret, of %v", text, got, want, e)
			}
		}
		transport.CloseIdleConnections()
	}
}

// TestFailures: the kinds of failures that have no answer at all.
func TestFailures(t *testing.T) {
	rejected := &net.OpError{Op: "dial", Net: "tcp", Err: fmt.Errorf("connect: connection refused")}
	short, cancel := context.WithDeadline(t.Context(), time.Now().Add(-time.Second))
	defer cancel()
	for _, row := range []struct {
		err  error
		want string
	}{
		{rejected, "dial tcp: connect: connection refused"},
		{short.Err(), "no answer before the deadline"},
		{&tls.CertificateVerificationError{Err: fmt.Errorf("x509: certificate is valid for a.test, not b.test")}, "its certificate is not trusted"},
		{
			&retry.Error{Err: rejected, Why: &retry.NotRetriedError{Reason: retry.ReasonBudget, Capacity: 100, Cost: 1}, Attempts: 2},
			"dial tcp: connect: connection refused; not retried: retry budget exhausted: 0 of 100 tokens left, a retry costs 1 (it refills with later calls)",
		},
	} {
		if got := FailureOf(row.err); got != row.want {
			t.Errorf("%q, want %q", got, row.want)
		}
	}
}
