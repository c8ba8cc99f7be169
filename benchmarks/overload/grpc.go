package main

import (
	"context"
	"net"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/emptypb"

	"github.com/seed90641741/spillway"
	"github.com/seed90641741/spillway/spillgrpc"
)

// grpcMethod is the one method of the server.
const grpcMethod = "/overload.Server/Work"

// grpcWork does the work of a call. It returns false if the client left before the work began.
type grpcWork func(context.Context) bool

// answer is a unary method without a generated stub.
func (w grpcWork) answer(
	_ any, ctx context.Context, decode func(any) error, intercept grpc.UnaryServerInterceptor, //nolint:revive // the order of grpc
) (any, error) {
	request := new(emptypb.Empty)
	if err := decode(request); err != nil {
		return nil, err
	}
	work := func(ctx context.Context, _ any) (any, error) {
		if !w(ctx) {
			return nil, status.FromContextError(ctx.Err()).Err()
		}
		return new(emptypb.Empty), nil
	}
	if intercept == nil {
		return work(ctx, request)
	}
	return intercept(ctx, request, &grpc.UnaryServerInfo{FullMethod: grpcMethod}, work)
}

// serveGRPC serves the work from ln, behind the front. If reject is set, every call is rejected.
func (f *front) serveGRPC(ln net.Listener, work grpcWork, reject bool) error {
	var options []grpc.ServerOption
	switch {
	case f.spillway:
		config, err := protection(reject)
		if err != nil {
			return err
		}
		protected, err := spillgrpc.NewServer(spillgrpc.ServerConfig{Ingress: config})
		if err != nil {
			return err
		}
		options = protected.Options()
	case reject:
		work = nil
		options = append(options, grpc.UnaryInterceptor(
			func(context.Context, any, *grpc.UnaryServerInfo, grpc.UnaryHandler) (any, error) {
				return nil, status.Error(codes.ResourceExhausted, "rejected")
			}))
	}
	s := grpc.NewServer(options...)
	s.RegisterService(&grpc.ServiceDesc{
		ServiceName: "overload.Server", HandlerType: (*any)(nil),
		Methods: []grpc.MethodDesc{{MethodName: "Work", Handler: work.answer}},
	}, nil)
	return s.Serve(ln)
}

// A grpcCaller makes calls over one channel.
type grpcCaller struct{ channel *grpc.ClientConn }

// dialGRPC returns a caller of the server at addr, which uses Spillway if protect is set.
func dialGRPC(addr string, protect bool) (caller, error) {
	options := []grpc.DialOption{grpc.WithTransportCredentials(insecure.NewCredentials())}
	if protect {
		client, err := spillgrpc.NewClient(spillgrpc.ClientConfig{})
		if err != nil {
			return nil, err
		}
		options = append(options, client.DialOptions()...)
	}
	channel, err := grpc.NewClient("passthrough:///"+addr, options...)
	if err != nil {
		return nil, err
	}
	return &grpcCaller{channel}, nil
}

func (c *grpcCaller) call(ctx context.Context, class spillway.Criticality) (outcome, error) {
	ctx = metadata.AppendToOutgoingContext(ctx, "x-request-criticality", class.String())
	err := c.channel.Invoke(ctx, grpcMethod, new(emptypb.Empty), new(emptypb.Empty))
	return outcomeOfGRPC(err), err
}

func (c *grpcCaller) close() { _ = c.channel.Close() }

// outcomeOfGRPC returns how a call ended. A channel that has lost its connection says UNAVAILABLE, as
// a server in overload does, but gives no details.
func outcomeOfGRPC(err error) outcome {
	s := status.Convert(err)
	switch s.Code() {
	case codes.OK:
		return good
	case codes.DeadlineExceeded, codes.Canceled:
		return lost
	case codes.ResourceExhausted:
		return rejected
	case codes.Unavailable:
		if rejectedHere(err) || len(s.Details()) > 0 {
			return rejected
		}
		return reset
	default:
		return failed
	}
}
