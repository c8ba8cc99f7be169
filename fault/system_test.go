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

// What the errors of the standard library mean. The last two columns are whether a call is
// retried that is not idempotent, and one that is.
func TestSystemErrors(t *testing.T) {
	refused := &net.OpError{Op: "dial", Net: "tcp", Err: os.NewSyscallError("connect", syscall.ECONNREFUSED)}
	for _, row := range []struct {
		err                          error
		unprocessed, timeout         bool
		retriesWrite, retriesRepeats bool
	}{
		{refused, true, false, true, true},
		{fmt.Errorf("wrapped: %w", &url.Error{Op: "Get", URL: "http://x/", Err: refused}), true, false, true, true},
		{&net.OpError{Op: "dial", Err: os.ErrDeadlineExceeded}, true, true, true, true},
		{&net.OpError{Op: "proxyconnect", Err: io.EOF}, true, false, true, true},
		{&net.OpError{Op: "dial", Err: &net.DNSError{Err: "server misbehaving", IsTemporary: true}}, true, false, true, true},
		{&net.DNSError{Err: "no such host", IsNotFound: true}, true, false, true, true},
		{syscall.ECONNREFUSED, true, false, true, true},
		{&net.OpError{Op: "read", Err: os.NewSyscallError("read", syscall.ECONNRESET)}, false, false, false, true},
		{&net.OpError{Op: "write", Err: syscall.EPIPE}, false, false, false, true},
		{&net.OpError{Op: "read", Err: os.ErrDeadlineExceeded}, false, true, false, true},
		{&url.Error{Op: "Get", URL: "http://x/", Err: io.ErrUnexpectedEOF}, false, false, false, true},
		{io.EOF, false, false, false, true},
		{context.DeadlineExceeded, false, true, false, true},
		{errors.New("unknown"), false, false, false, true},
		{context.Canceled, false, false, false, false},
		{&url.Error{Op: "Get", URL: "http://x/", Err: context.Canceled}, false, false, false, false},
		{&url.Error{Op: "parse", URL: ":", Err: errors.New("missing protocol scheme")}, false, false, false, false},
		{&net.OpError{Op: "dial", Err: &net.AddrError{Err: "missing port in address", Addr: "x"}}, false, false, false, false},
		{&net.OpError{Op: "dial", Err: net.UnknownNetworkError("tcp9")}, false, false, false, false},
		{&net.ParseError{Type: "IP address", Text: "x"}, false, false, false, false},
		{yes{&net.AddrError{}}, false, false, true, true}, // the error knows better
	} {
		f := fault.Of(row.err)
		if f.Unprocessed != row.unprocessed || f.Timeout != row.timeout || f.Retryable(false) != row.retriesWrite || f.Retryable(true) != row.retriesRepeats {
			t.Errorf("%v (%T): %+v, want %+v", row.err, row.err, f, row)
		}
	}
}

// The same with real connections: one that is refused, and one that is cut after the request.
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
