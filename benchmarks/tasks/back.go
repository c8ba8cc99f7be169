package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/protobuf/types/known/emptypb"

	"github.com/seed90641741/spillway/ingress"
	"github.com/seed90641741/spillway/spillgrpc"
	"github.com/seed90641741/spillway/spillhttp"
)

// The protocols between the front and the back service over sockets.
const (
	overHTTP = "http"
	overGRPC = "grpc"
)

// backCommand is the first argument by which this program is asked to be a task of the back service.
const backCommand = "back"

// inside has all claims of callers believed, as between services of one's own.
var inside = ingress.Config{Trust: ingress.Trust{Boundary: ingress.Internal}}

// A back is a task of the back service: a call waits in one of few slots.
type back struct {
	slots chan struct{}
	mean  time.Duration
}

// serveBack serves calls until in ends, which it does when the parent has ended. It writes its address to out.
func serveBack(in io.Reader, out io.Writer, args []string) error {
	if len(args) != 2 {
		return errors.New("back needs a protocol and the mean time of a call")
	}
	mean, err := time.ParseDuration(args[1])
	if err != nil {
		return err
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	if _, err := fmt.Fprintln(out, l.Addr()); err != nil {
		return err
	}
	go func() {
		_, _ = io.Copy(io.Discard, in) // its end is what matters
		os.Exit(0)
	}()
	gates, err := ingress.New(inside)
	if err != nil {
		return err
	}
	b := &back{slots: make(chan struct{}, each), mean: mean}
	serve, _, err := b.server(args[0], gates)
	if err != nil {
		return err
	}
	return serve(l)
}

// server returns what serves b, and what ends that.
func (b *back) server(wire string, gates *ingress.Server) (serve func(net.Listener) error, stop func(), err error) {
	if wire == overGRPC {
		return b.overGRPC(gates)
	}
	h, err := spillhttp.NewHandler(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		_ = b.work(r.Context()) // who has left reads no answer
	}), spillhttp.HandlerConfig{Ingress: gates})
	if err != nil {
		return nil, nil, err
	}
	s := &http.Server{Handler: h, ReadHeaderTimeout: time.Minute}
	return func(l net.Listener) error { return h.Serve(s, l) }, func() { _ = s.Close() }, nil // its connections are done with
}

// work waits for a slot, and then in it, whether or not the caller has left.
func (b *back) work(ctx context.Context) error {
	select {
	case b.slots <- struct{}{}:
	case <-ctx.Done():
		return ctx.Err()
	}
	<-time.After(time.Duration(rand.ExpFloat64() * float64(b.mean)))
	<-b.slots
	return nil
}

const grpcService, grpcMethod = "tasks.Back", "Call"

func (b *back) overGRPC(gates *ingress.Server) (serve func(net.Listener) error, stop func(), err error) {
	protected, err := spillgrpc.NewServer(spillgrpc.ServerConfig{Ingress: gates})
	if err != nil {
		return nil, nil, err
	}
	s := grpc.NewServer(protected.Options()...)
	s.RegisterService(&grpc.ServiceDesc{
		ServiceName: grpcService, HandlerType: (*any)(nil),
		Methods: []grpc.MethodDesc{{MethodName: grpcMethod, Handler: b.answer}},
	}, nil)
	return s.Serve, s.Stop, nil
}

// answer is a unary method without a generated stub.
func (b *back) answer(
	_ any, ctx context.Context, decode func(any) error, intercept grpc.UnaryServerInterceptor, //nolint:revive // the order of grpc
) (any, error) {
	request := new(emptypb.Empty)
	if err := decode(request); err != nil {
		return nil, err
	}
	return intercept(ctx, request, &grpc.UnaryServerInfo{FullMethod: "/" + grpcService + "/" + grpcMethod}, func(ctx context.Context, _ any) (any, error) {
		return new(emptypb.Empty), b.work(ctx)
	})
}
