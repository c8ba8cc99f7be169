package spillrueidis

import (
	"context"
	"crypto/tls"
	"io"
	"net"
	"os"
	"syscall"
	"testing"
	"time"

	"github.com/redis/rueidis"

	"github.com/seed90641741/spillway/egress"
	"github.com/seed90641741/spillway/spilltest"
)

// TestLessons: what each end of a command teaches. A rejected connection does: the server was asked. Redis has no answer
// to one customer.
func TestLessons(t *testing.T) {
	never, gone, ok := spilltest.NeverSent, spilltest.Unanswered, spilltest.Answered
	type dialer func(context.Context, string, *net.Dialer, *tls.Config) (net.Conn, error)
	fails := func(op string, errno error) dialer {
		return func(context.Context, string, *net.Dialer, *tls.Config) (net.Conn, error) {
			return nil, &net.OpError{Op: "dial", Net: "tcp", Err: os.NewSyscallError(op, errno)}
		}
	}
	answers := func(text string) dialer {
		s := &server{answer: func(string, []string) string { return text }, seen: make(map[string]int)}
		return s.dial
	}
	mute := func(context.Context, string, *net.Dialer, *tls.Config) (net.Conn, error) {
		ours, theirs := net.Pipe()
		go func() { _, _ = io.Copy(io.Discard, theirs) }()
		return ours, nil
	}
	over := make(chan struct{})
	defer close(over)
	hangs := &server{answer: func(string, []string) string { <-over; return "" }, seen: make(map[string]int)}
	spilltest.TestLessons(t, func(t *testing.T, config egress.Config) (all []spilltest.Lesson) {
		// against reads with a client that dials so.
		against := func(name string, want spilltest.Evidence, attempts int, dial dialer, limit time.Duration, change ...func(*Client)) {
			client, _ := NewClient(rueidis.ClientOption{ // it cannot connect yet
				InitAddress: []string{address}, ForceSingleClient: true, DialCtxFn: dial, RingScaleEachConn: 2,
				Dialer: net.Dialer{Timeout: 30 * time.Millisecond},
			}, config)
			if client == nil {
				t.Fatal("no client")
			}
			t.Cleanup(client.Close)
			for _, do := range change {
				do(client)
			}
			all = append(all, spilltest.Lesson{Name: name, Want: want, Attempts: attempts, Call: func(ctx context.Context) error {
				if limit > 0 {
					var cancel context.CancelFunc
					ctx, cancel = context.WithTimeout(ctx, limit)
					defer cancel()
				}
				_, err := client.get(ctx, "k")
				return err
			}})
		}
		against("no descriptor", never, 3, fails("socket", syscall.EMFILE), 0)
		against("no port", never, 3, fails("connect", syscall.EADDRNOTAVAIL), 0)
		against("no name", never, 3, func(context.Context, string, *net.Dialer, *tls.Config) (net.Conn, error) {
			return nil, &net.OpError{Op: "dial", Err: &net.DNSError{Err: "no such host", IsNotFound: true}}
		}, 0)
		against("closed", never, 1, answers("+OK\r\n"), 0, (*Client).Close)
		against("rejected", gone, 3, fails("connect", syscall.ECONNREFUSED), 0)
		against("reset", gone, 3, answers(""), 0)
		against("no answer to HELLO", gone, 3, mute, 0)
		against("deadline", gone, 1, hangs.dial, 20*time.Millisecond)
		against("busy", ok, 3, answers("-BUSY script\r\n"), 0)
		against("wrong type", ok, 1, answers("-WRONGTYPE x\r\n"), 0)
		return all
	})
}
