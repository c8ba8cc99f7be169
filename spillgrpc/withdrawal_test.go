package spillgrpc

import (
	"context"
	"net"
	"testing"
	"time"

	"google.golang.org/grpc"
	pb "google.golang.org/grpc/interop/grpc_testing"

	"github.com/seed90641741/spillway/ingress"
	"github.com/seed90641741/spillway/shed"
)

// When the client gives up a call that waits, the call leaves the queue at once, over real connections.
func TestWithdrawal(t *testing.T) {
	t.Parallel()
	entered, leave := make(chan struct{}), make(chan struct{})
	s := mustServer(t, ingress.Config{MaxInFlight: 1, Shed: shed.Config{MaxWait: 10 * time.Second}}, ServerConfig{})
	server := grpc.NewServer(s.Options()...)
	pb.RegisterTestServiceServer(server, &service{unary: func(context.Context) error {
		entered <- struct{}{}
		<-leave
		return nil
	}})
	l := must((&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0"))
	served := make(chan struct{})
	go func() {
		defer close(served)
		_ = server.Serve(l)
	}()
	defer func() {
		server.Stop()
		<-served
	}()
	cc := dial(t, l.Addr().String())
	first := make(chan error, 1)
	go func() { first <- call(t.Context(), cc) }()
	<-entered
	for name, ask := range map[string]func(context.Context){
		"unary": func(ctx context.Context) { _ = call(ctx, cc) },
		"stream": func(ctx context.Context) {
			if stream, err := pb.NewTestServiceClient(cc).FullDuplexCall(ctx); err == nil {
				_, _ = stream.Recv()
			}
		},
	} {
		ctx, cancel := context.WithCancel(t.Context())
		go ask(ctx)
		until(t, func() bool { return s.ingress.Waiting() == 1 })
		cancel()
		took := until(t, func() bool { return s.ingress.Waiting() == 0 })
		t.Logf("%s: left after %v", name, took)
		if took > time.Second { // mostly 0.1 to 1 ms; the processors may be busy, and the maximum wait is 10 s
			t.Errorf("%s: left after %v", name, took)
		}
	}
	close(leave)
	if err := <-first; err != nil {
		t.Error(err)
	}
}

// until waits until something is true, and returns how long that took.
func until(t *testing.T, is func() bool) time.Duration {
	t.Helper()
	began := time.Now()
	for !is() {
		if time.Since(began) > 15*time.Second {
			t.Fatal("not within 15 s")
		}
		time.Sleep(100 * time.Microsecond)
	}
	return time.Since(began)
}
