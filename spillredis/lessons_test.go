package spillredis

import (
	"context"
	"errors"
	"io"
	"net"
	"os"
	"syscall"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/seed90641741/spillway/egress"
	"github.com/seed90641741/spillway/spilltest"
)

// TestLessons: what each end of a command teaches. A rejected connection does: the server was asked. Redis has no answer
// to one customer.
func TestLessons(t *testing.T) {
	never, gone, ok := spilltest.NeverSent, spilltest.Unanswered, spilltest.Answered
	dial := func(op string, errno error) error {
		return &net.OpError{Op: "dial", Net: "tcp", Err: os.NewSyscallError(op, errno)}
	}
	spilltest.TestLessons(t, func(t *testing.T, config egress.Config) (all []spilltest.Lesson) {
		add := func(name string, want spilltest.Evidence, attempts int, call func(context.Context) error) {
			all = append(all, spilltest.Lesson{Name: name, Want: want, Attempts: attempts, Call: call})
		}
		// against makes a command with a client that dials so.
		against := func(dialer func(context.Context) (net.Conn, error), o redis.Options, limit time.Duration) func(context.Context) error {
			o.Addr, o.MaxRetries, o.DialerRetries = "127.0.0.1:1", -1, 1
			o.Dialer = func(ctx context.Context, _, _ string) (net.Conn, error) { return dialer(ctx) }
			client := redis.NewClient(&o)
			t.Cleanup(func() { _ = client.Close() })
			if _, err := Install(client, config); err != nil {
				t.Fatal(err)
			}
			return func(ctx context.Context) error {
				if limit > 0 {
					var cancel context.CancelFunc
					ctx, cancel = context.WithTimeout(ctx, limit)
					defer cancel()
				}
				return client.Get(ctx, "k").Err()
			}
		}
		fails := func(err error) func(context.Context) (net.Conn, error) {
			return func(context.Context) (net.Conn, error) { return nil, err }
		}
		answers := func(text string) func(context.Context) (net.Conn, error) {
			s := &server{answer: always(text), seen: make(map[string]int)}
			return func(ctx context.Context) (net.Conn, error) { return s.dial(ctx, "", "") }
		}
		closes := func(context.Context) (net.Conn, error) {
			ours, theirs := net.Pipe()
			go func() { _, _ = theirs.Read(make([]byte, 1)); theirs.Close() }()
			return ours, nil
		}
		hangs := func(context.Context) (net.Conn, error) {
			ours, theirs := net.Pipe()
			go func() { _, _ = io.Copy(io.Discard, theirs) }()
			return ours, nil
		}
		add("no descriptor", never, 3, against(fails(dial("socket", syscall.EMFILE)), redis.Options{}, 0))
		add("no port", never, 3, against(fails(dial("connect", syscall.EADDRNOTAVAIL)), redis.Options{}, 0))
		add("no name", never, 3, against(fails(&net.DNSError{Err: "no such host", IsNotFound: true}), redis.Options{}, 0))
		add("reset", gone, 3, against(closes, redis.Options{}, 0))
		add("read timeout", gone, 3, against(hangs, redis.Options{ReadTimeout: 20 * time.Millisecond}, 0))
		add("busy", ok, 3, against(answers("-BUSY script\r\n"), redis.Options{Protocol: 2, DisableIdentity: true}, 0))
		do, _ := through(t, config)
		add("pool timeout", never, 1, func(ctx context.Context) error {
			return do(ctx, func(context.Context) error { return redis.ErrPoolTimeout })
		})
		add("deadline in the pool", never, 1, func(ctx context.Context) error {
			ctx, cancel := context.WithTimeout(ctx, 50*time.Millisecond)
			defer cancel()
			return do(ctx, func(ctx context.Context) error { <-ctx.Done(); return ctx.Err() })
		})
		add("closed", never, 1, func(ctx context.Context) error {
			return do(ctx, func(context.Context) error { return redis.ErrClosed })
		})
		add("unknown", ok, 1, func(ctx context.Context) error {
			return do(ctx, func(context.Context) error { return errors.New("x") })
		})
		return all
	})
}
