package fault_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"syscall"
	"testing"
	"time"

	"github.com/seed90641741/spillway/fault"
)

type yes struct{ error }

func (yes) RetrySafety() fault.Safety { return fault.RetrySafe }
func (y yes) Unwrap() error           { return y.error }

// Outcomes of TestSystemErrors.
var (
	unmade     = fault.Failure{Unsent: true, Safety: fault.RetrySafe}
	neverSent  = fault.Failure{Unsent: true, Safety: fault.RetryUnsafe}
	rejected   = fault.Failure{Unprocessed: true, Unanswered: true}
	unanswered = fault.Failure{Unanswered: true}
	timedOut   = fault.Failure{Timeout: true, Unanswered: true}
)

// What the errors of the standard library mean. The last two columns are whether a call is
// retried that is not idempotent, and one that is.
func TestSystemErrors(t *testing.T) {
	dial := func(op string, errno error) error {
		return &net.OpError{Op: "dial", Net: "tcp", Err: os.NewSyscallError(op, errno)}
	}
	get := func(err error) error { return &url.Error{Op: "Get", URL: "http://x/", Err: err} }
	late := rejected
	late.Timeout = true
	for _, row := range []struct {
		err                          error
		want                         fault.Failure
		retriesWrite, retriesRepeats bool
	}{
		// The backend was asked for a connection.
		{dial("connect", syscall.ECONNREFUSED), rejected, true, true},
		{fmt.Errorf("wrapped: %w", get(dial("connect", syscall.ECONNREFUSED))), rejected, true, true},
		{dial("connect", syscall.EHOSTUNREACH), rejected, true, true},
		{dial("connect", syscall.ENOENT), rejected, true, true}, // a Unix socket
		{&net.OpError{Op: "dial", Err: os.ErrDeadlineExceeded}, late, true, true},
		{syscall.ECONNREFUSED, rejected, true, true},
		// It was not.
		{dial("socket", syscall.EMFILE), unmade, true, true},
		{dial("socket", syscall.ENFILE), unmade, true, true},
		{dial("socket", syscall.ENOBUFS), unmade, true, true},
		{dial("socket", syscall.ENOMEM), unmade, true, true},
		{dial("bind", syscall.EADDRINUSE), unmade, true, true},
		{dial("connect", syscall.EADDRNOTAVAIL), unmade, true, true},
		{dial("connect", syscall.ENETUNREACH), unmade, true, true},
		{dial("connect", syscall.EPERM), unmade, true, true},
		{get(dial("socket", syscall.EMFILE)), unmade, true, true},
		{syscall.EMFILE, unmade, true, true}, // of the caller's own dialer
		{&net.OpError{Op: "proxyconnect", Err: io.EOF}, unmade, true, true},
		{&net.OpError{Op: "proxyconnect", Err: dial("connect", syscall.ECONNREFUSED)}, unmade, true, true},
		{&net.OpError{Op: "dial", Err: &net.DNSError{Err: "server misbehaving", IsTemporary: true}}, unmade, true, true},
		{&net.DNSError{Err: "no such host", IsNotFound: true}, unmade, true, true},
		// It was sent.
		{&net.OpError{Op: "read", Err: os.NewSyscallError("read", syscall.ECONNRESET)}, unanswered, false, true},
		{&net.OpError{Op: "read", Err: os.NewSyscallError("read", syscall.EACCES)}, unanswered, false, true},
		{&net.OpError{Op: "write", Err: syscall.EPIPE}, unanswered, false, true},
		{&net.OpError{Op: "read", Err: os.ErrDeadlineExceeded}, timedOut, false, true},
		{get(io.ErrUnexpectedEOF), unanswered, false, true},
		{io.EOF, unanswered, false, true},
		{context.DeadlineExceeded, timedOut, false, true},
		{errors.New("unknown"), fault.Failure{}, false, true},
		{context.Canceled, fault.Failure{Canceled: true}, false, false},
		{get(context.Canceled), fault.Failure{Canceled: true}, false, false},
		// It is not valid.
		{&url.Error{Op: "parse", URL: ":", Err: errors.New("missing protocol scheme")}, neverSent, false, false},
		{&net.OpError{Op: "dial", Err: &net.AddrError{Err: "missing port in address", Addr: "x"}}, neverSent, false, false},
		{&net.OpError{Op: "dial", Err: net.UnknownNetworkError("tcp9")}, neverSent, false, false},
		{&net.ParseError{Type: "IP address", Text: "x"}, neverSent, false, false},
		{yes{&net.AddrError{}}, fault.Failure{Safety: fault.RetrySafe}, true, true}, // the error knows better
	} {
		f := fault.Of(row.err)
		if f != row.want || f.Retryable(false) != row.retriesWrite || f.Retryable(true) != row.retriesRepeats {
			t.Errorf("%v (%T):\n%+v, want\n%+v", row.err, row.err, f, row.want)
		}
	}
}

// The same with real connections: one that is rejected, and one that is cut after the request.
func TestSystemErrorsOfConnections(t *testing.T) {
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}, Timeout: 10 * time.Second}
	_, err := client.Get("http://127.0.0.1:1") // where nobody listens
	if f := fault.Of(err); !f.Unprocessed || !f.Retryable(false) {
		t.Errorf("%v: %+v, want Unprocessed", err, f)
	}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		c, _, _ := w.(http.Hijacker).Hijack()
		c.Close()
	}))
	defer server.Close()
	_, err = client.Get(server.URL)
	if f := fault.Of(err); err == nil || f.Unprocessed || f.Retryable(false) || !f.Retryable(true) {
		t.Errorf("%v: %+v, want that nothing is known", err, f)
	}
}
