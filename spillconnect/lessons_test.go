package spillconnect

import (
	"context"
	"errors"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"syscall"
	"testing"
	"time"

	"connectrpc.com/connect"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/seed90641741/spillway"
	"github.com/seed90641741/spillway/egress"
	"github.com/seed90641741/spillway/spilltest"
)

// TestLessons: what each end of a call teaches, in each protocol.
func TestLessons(t *testing.T) {
	for name, protocol := range protocols {
		t.Run(name, func(t *testing.T) { testLessons(t, protocol) })
	}
}

func testLessons(t *testing.T, protocol []connect.ClientOption) {
	never, gone, ok := spilltest.NeverSent, spilltest.Unanswered, spilltest.Answered
	answers := map[string]error{
		"/unavailable/x": connect.NewError(connect.CodeUnavailable, errors.New("busy")),
		"/internal/x":    connect.NewError(connect.CodeInternal, errors.New("broken")),
		"/exhausted/x":   connect.NewError(connect.CodeResourceExhausted, errors.New("quota")),
	}
	handlers := map[string]http.Handler{"/reset/x": http.HandlerFunc(func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) })}
	for path, err := range answers {
		handlers[path] = connect.NewUnaryHandler(path, func(context.Context, *connect.Request[message]) (*connect.Response[message], error) { return nil, err })
	}
	handlers["/hang/x"] = http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { // does not know of the call's deadline
		_, _ = io.Copy(io.Discard, r.Body)
		<-r.Context().Done()
	})
	server := start(t, handlers)
	server.Config.ErrorLog = log.New(io.Discard, "", 0)
	dialing := func(errno error) *http.Client {
		err := &net.OpError{Op: "dial", Net: "tcp", Err: os.NewSyscallError("socket", errno)}
		return &http.Client{Transport: &http.Transport{DialContext: func(context.Context, string, string) (net.Conn, error) { return nil, err }}}
	}
	spilltest.TestLessons(t, func(t *testing.T, config egress.Config) (all []spilltest.Lesson) {
		add := func(name string, want spilltest.Evidence, attempts int, hc connect.HTTPClient, url string, limit time.Duration, options ...connect.ClientOption) {
			client := newClient(t, ClientConfig{Egress: config, Classify: func(_ context.Context, spec connect.Spec) spillway.Call {
				return spillway.Call{Key: spec.Procedure, Idempotent: true}
			}})
			options = append(append(options, protocol...), connect.WithInterceptors(client))
			c := connect.NewClient[message, message](hc, url, options...)
			all = append(all, spilltest.Lesson{Name: name, Want: want, Attempts: attempts, Call: func(ctx context.Context) error {
				if limit > 0 {
					var cancel context.CancelFunc
					ctx, cancel = context.WithTimeout(ctx, limit)
					defer cancel()
				}
				_, err := c.CallUnary(ctx, connect.NewRequest(wrapperspb.String("hello")))
				return err
			}})
		}
		closed := httptest.NewServer(nil)
		closed.Close()
		add("no descriptor", never, 3, dialing(syscall.EMFILE), server.URL+"/internal/x", 0)
		add("no port", never, 3, dialing(syscall.EADDRNOTAVAIL), server.URL+"/internal/x", 0)
		add("certificate", never, 1, &http.Client{Transport: &http.Transport{}}, server.URL+"/internal/x", 0)
		add("large message", never, 1, server.Client(), server.URL+"/internal/x", 0, connect.WithSendMaxBytes(1))
		add("rejected", gone, 3, closed.Client(), closed.URL+"/internal/x", 0)
		add("timeout", gone, 1, server.Client(), server.URL+"/hang/x", 50*time.Millisecond)
		add("unavailable", ok, 3, server.Client(), server.URL+"/unavailable/x", 0)
		add("internal", ok, 3, server.Client(), server.URL+"/internal/x", 0)
		add("exhausted", spilltest.OverQuota, 1, server.Client(), server.URL+"/exhausted/x", 0)
		return all
	})
}
