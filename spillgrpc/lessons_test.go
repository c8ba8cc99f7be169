package spillgrpc

import (
	"context"
	"net"
	"os"
	"syscall"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	pb "google.golang.org/grpc/interop/grpc_testing"
	"google.golang.org/grpc/status"

	"github.com/seed90641741/spillway/egress"
	"github.com/seed90641741/spillway/spilltest"
)

// nobody is an address where nobody listens.
const nobody = "passthrough:///127.0.0.1:1"

// dialWith returns a channel to nobody, with a dialer that fails with err if that is not nil.
func dialWith(t *testing.T, c *Client, err error) *grpc.ClientConn {
	t.Helper()
	options := append(c.DialOptions(), grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		options = append(options, grpc.WithContextDialer(func(context.Context, string) (net.Conn, error) { return nil, err }))
	}
	cc, failed := grpc.NewClient(nobody, options...)
	if failed != nil {
		t.Fatal(failed)
	}
	t.Cleanup(func() { _ = cc.Close() })
	return cc
}

// TestLessons: what each end of a call teaches, with the texts of this version of grpc.
func TestLessons(t *testing.T) {
	never, gone, ok := spilltest.NeverSent, spilltest.Unanswered, spilltest.Answered
	dialError := func(op string, errno error) error {
		return &net.OpError{Op: "dial", Net: "tcp", Err: os.NewSyscallError(op, errno)}
	}
	spilltest.TestLessons(t, func(t *testing.T, config egress.Config) (all []spilltest.Lesson) {
		add := func(name string, want spilltest.Evidence, attempts int, call func(context.Context) error) {
			all = append(all, spilltest.Lesson{Name: name, Want: want, Attempts: attempts, Call: call})
		}
		client := func() *Client { return mustClient(t, ClientConfig{Egress: config, Classify: idempotent}) }
		limited := func(cc *grpc.ClientConn, opts ...grpc.CallOption) func(context.Context) error {
			return func(ctx context.Context) error {
				ctx, cancel := context.WithTimeout(ctx, 50*time.Millisecond)
				defer cancel()
				return call(ctx, cc, opts...)
			}
		}
		to := func(cc *grpc.ClientConn, opts ...grpc.CallOption) func(context.Context) error {
			return func(ctx context.Context) error { return call(ctx, cc, opts...) }
		}
		answers := func(err error) *grpc.ClientConn {
			s := open(t, &service{unary: func(ctx context.Context) error {
				if err == nil {
					<-ctx.Done() // which either end may notice first
					return ctx.Err()
				}
				return err
			}})
			return s.dial(client().DialOptions()...)
		}
		add("rejected", gone, 3, to(dialWith(t, client(), nil)))
		add("rejected, WaitForReady", never, 1, limited(dialWith(t, client(), nil), grpc.WaitForReady(true)))
		add("no descriptor", never, 3, to(dialWith(t, client(), dialError("socket", syscall.EMFILE))))
		add("no port", never, 3, to(dialWith(t, client(), dialError("connect", syscall.EADDRNOTAVAIL))))
		add("no name", never, 3, to(dialWith(t, client(), &net.OpError{Op: "dial", Net: "tcp", Err: &net.DNSError{Err: "no such host", Name: "x", IsNotFound: true}})))
		closed := dialWith(t, client(), nil)
		_ = closed.Close()
		add("closed channel", never, 1, to(closed))
		add("unavailable", ok, 3, to(answers(status.Error(codes.Unavailable, "busy"))))
		add("internal", ok, 3, to(answers(status.Error(codes.Internal, "broken"))))
		add("timeout", gone, 1, limited(answers(nil)))
		add("exhausted", spilltest.OverQuota, 1, to(answers(status.Error(codes.ResourceExhausted, "quota"))))
		add("large message", never, 1, func(ctx context.Context) error {
			large := &pb.SimpleRequest{Payload: &pb.Payload{Body: make([]byte, 100)}}
			return answers(status.Error(codes.Internal, "sent")).Invoke(ctx, methodUnary, large, new(pb.SimpleResponse), grpc.MaxCallSendMsgSize(10))
		})
		add("no codec", never, 1, func(ctx context.Context) error {
			return answers(status.Error(codes.Internal, "sent")).Invoke(ctx, methodUnary, "no message", new(pb.SimpleResponse))
		})
		add("no compressor", never, 1, to(answers(status.Error(codes.Internal, "sent")), grpc.UseCompressor("none such")))
		return all
	})
}
