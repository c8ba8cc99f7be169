package spillgrpc

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	pb "google.golang.org/grpc/interop/grpc_testing"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"github.com/seed90641741/spillway/egress"
)

type (
	outputRequest = pb.StreamingOutputCallRequest
	outputServer  = pb.TestService_StreamingOutputCallServer
	duplexServer  = pb.TestService_FullDuplexCallServer
)

// receive makes a server-streaming call and reads it to its end.
func receive(ctx context.Context, cc grpc.ClientConnInterface) (messages int, err error) {
	s, err := pb.NewTestServiceClient(cc).StreamingOutputCall(ctx, &outputRequest{})
	for err == nil {
		if _, err = s.Recv(); err == nil {
			messages++
		}
	}
	if errors.Is(err, io.EOF) {
		err = nil
	}
	return messages, err
}

// TestStreamRetries plays the calls of TestRetries as streams.
func TestStreamRetries(t *testing.T) {
	for _, row := range retries {
		t.Run(row.name, func(t *testing.T) {
			inBubble(t, func(t *testing.T) {
				answer, attempts := script(row.steps...)
				client := mustClient(t, ClientConfig{Egress: eager, Classify: classify(row.idempotent)})
				cc := open(t, &service{output: func(_ *outputRequest, ss outputServer) error { return answer(ss.Context()) }}).dial(client.DialOptions()...)
				start := time.Now()
				_, err := receive(t.Context(), cc)
				if status.Code(err) != row.code || attempts.Load() != row.attempts {
					t.Errorf("%v after %d attempts, want %v after %d", err, attempts.Load(), row.code, row.attempts)
				}
				if took := time.Since(start); took < row.took || took > row.took+row.took/10 {
					t.Errorf("took %v, want %v", took, row.took)
				}
				synctest.Wait()
				if n := inFlight(client); n != 0 {
					t.Errorf("%d left in flight", n)
				}
			})
		})
	}
}

// TestStreamCommitted expects no retry once something was received: a message, or
// the header that comes before it.
func TestStreamCommitted(t *testing.T) {
	for _, row := range []struct {
		name   string
		begin  func(outputServer) error
		wanted int
	}{
		{"a message", func(ss outputServer) error { return ss.Send(&pb.StreamingOutputCallResponse{}) }, 1},
		{"a header", func(ss outputServer) error { return ss.SendHeader(metadata.Pairs("a", "b")) }, 0},
	} {
		t.Run(row.name, func(t *testing.T) {
			inBubble(t, func(t *testing.T) {
				var attempts atomic.Int32
				cc := open(t, &service{output: func(_ *outputRequest, ss outputServer) error {
					attempts.Add(1)
					if err := row.begin(ss); err != nil {
						return err
					}
					return says(codes.Unavailable, keyPushback, "1")(ss.Context())
				}}).dial(mustClient(t, ClientConfig{Egress: eager, Classify: idempotent}).DialOptions()...)
				n, err := receive(t.Context(), cc)
				if n != row.wanted || status.Code(err) != codes.Unavailable || attempts.Load() != 1 {
					t.Errorf("%d messages, %v, %d attempts; want %d, Unavailable, 1", n, err, attempts.Load(), row.wanted)
				}
			})
		})
	}
}

// TestStreamReplay has a backend reject a stream after some messages, and expects the next one
// to receive all of them, and the following ones, in order.
func TestStreamReplay(t *testing.T) {
	for _, rejectAfter := range []int{0, 1, 3, 5} {
		inBubble(t, func(t *testing.T) {
			var attempts atomic.Int32
			var got []int32
			cc := open(t, &service{duplex: func(ss duplexServer) error {
				n := attempts.Add(1)
				got = nil
				for {
					if n == 1 && len(got) == rejectAfter {
						return says(codes.Unavailable, keyPushback, "1")(ss.Context())
					}
					m, err := ss.Recv()
					if err != nil {
						return ss.Send(&pb.StreamingOutputCallResponse{})
					}
					got = append(got, m.GetResponseStatus().GetCode())
				}
			}}).dial(mustClient(t, ClientConfig{Egress: eager}).DialOptions()...)
			s, err := pb.NewTestServiceClient(cc).FullDuplexCall(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			m := &pb.StreamingOutputCallRequest{ResponseStatus: &pb.EchoStatus{}}
			for i := range int32(5) {
				m.ResponseStatus.Code = i // the same message again and again
				if err := s.Send(m); err != nil {
					t.Fatal(err)
				}
				synctest.Wait()
			}
			_ = s.CloseSend()
			if _, err := s.Recv(); err != nil {
				t.Fatal(err)
			}
			if _, err := s.Recv(); !errors.Is(err, io.EOF) {
				t.Error(err)
			}
			if attempts.Load() != 2 || fmt.Sprint(got) != "[0 1 2 3 4]" {
				t.Errorf("rejected after %d: %d attempts, the last saw %v", rejectAfter, attempts.Load(), got)
			}
		})
	}
}

// TestStreamTooMuch expects a stream that has sent more than is kept to be final.
func TestStreamTooMuch(t *testing.T) {
	for _, row := range []struct {
		name     string
		messages int
		size     int
		want     int32
	}{
		{"all kept", maxReplayMessages, 1000, 2},
		{"too many", maxReplayMessages + 1, 0, 1},
		{"too large", 3, maxReplayBytes / 2, 1},
	} {
		t.Run(row.name, func(t *testing.T) {
			inBubble(t, func(t *testing.T) {
				var attempts atomic.Int32
				cc := open(t, &service{input: func(ss pb.TestService_StreamingInputCallServer) error {
					n := attempts.Add(1)
					for range row.messages {
						if _, err := ss.Recv(); err != nil {
							return err
						}
					}
					if n == 1 {
						return says(codes.Unavailable, keyPushback, "1")(ss.Context())
					}
					return ss.SendAndClose(&pb.StreamingInputCallResponse{AggregatedPayloadSize: n})
				}}).dial(mustClient(t, ClientConfig{Egress: eager}).DialOptions()...)
				s, err := pb.NewTestServiceClient(cc).StreamingInputCall(t.Context())
				if err != nil {
					t.Fatal(err)
				}
				for range row.messages {
					if err := s.Send(&pb.StreamingInputCallRequest{Payload: &pb.Payload{Body: make([]byte, row.size)}}); err != nil {
						t.Fatal(err)
					}
				}
				_, err = s.CloseAndRecv()
				if (err == nil) != (row.want == 2) || attempts.Load() != row.want {
					t.Errorf("%v after %d attempts, want %d", err, attempts.Load(), row.want)
				}
			})
		})
	}
}

// TestStreamMethods asks a stream for what it knows, before and after the answer.
func TestStreamMethods(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		var attempts atomic.Int32
		cc := open(t, &service{duplex: func(ss duplexServer) error {
			ss.SetTrailer(metadata.Pairs("end", "yes"))
			if attempts.Add(1) == 1 {
				return says(codes.Unavailable, keyPushback, "1000")(ss.Context())
			}
			if err := ss.SendHeader(metadata.Pairs("begin", "yes")); err != nil {
				return err
			}
			<-ss.Context().Done()
			return nil
		}}).dial(mustClient(t, ClientConfig{Egress: eager}).DialOptions()...)
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		finished := make(chan error, 2)
		s, err := pb.NewTestServiceClient(cc).FullDuplexCall(ctx, grpc.OnFinish(func(err error) { finished <- err }))
		if err != nil {
			t.Fatal(err)
		}
		if s.Context() != ctx {
			t.Error("before it is committed the context of a stream is that of the call")
		}
		md, err := s.Header() // which waits for the second attempt
		if err != nil || md.Get("begin") == nil || attempts.Load() != 2 {
			t.Errorf("header %v, %v after %d attempts", md, err, attempts.Load())
		}
		if s.Context() == ctx {
			t.Error("once it is committed the context of a stream is its own")
		}
		cancel()
		if _, err := s.Recv(); status.Code(err) != codes.Canceled {
			t.Errorf("after the caller has left: %v", err)
		}
		if err := s.Send(&pb.StreamingOutputCallRequest{}); !errors.Is(err, io.EOF) {
			t.Errorf("sending on a stream that has ended: %v", err)
		}
		if err := s.CloseSend(); err != nil {
			t.Error(err)
		}
		_ = s.Trailer()
		synctest.Wait()
		if len(finished) != 1 {
			t.Errorf("finished %d times, want once", len(finished))
		}
	})
}

// TestStreamHeaderOfRejection expects Header to say nothing if absent, and
// RecvMsg to say why.
func TestStreamHeaderOfRejection(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		cc := open(t, &service{duplex: func(ss duplexServer) error {
			return says(codes.Unavailable, keyPushback, "-1", "end", "yes")(ss.Context())
		}}).
			dial(mustClient(t, ClientConfig{Egress: eager}).DialOptions()...)
		s, err := pb.NewTestServiceClient(cc).FullDuplexCall(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if md, err := s.Header(); md != nil || err != nil {
			t.Errorf("header %v, %v", md, err)
		}
		if _, err := s.Recv(); status.Code(err) != codes.Unavailable {
			t.Error(err)
		}
		if s.Trailer().Get("end") == nil {
			t.Errorf("trailer %v", s.Trailer())
		}
	})
}

// TestStreamInFlight expects a stream to count until it ends, however it ends.
func TestStreamInFlight(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		client := mustClient(t, ClientConfig{Egress: egress.Config{MaxInFlight: 3, ThrottleMode: eager.ThrottleMode}})
		site := open(t, &service{duplex: func(ss duplexServer) error {
			for {
				if _, err := ss.Recv(); err != nil {
					return nil //nolint:nilerr // the client sends no more
				}
				if err := ss.Send(&pb.StreamingOutputCallResponse{}); err != nil {
					return err
				}
			}
		}})
		cc := site.dial(client.DialOptions()...)
		ctx, cancel := context.WithCancel(t.Context())
		stub := pb.NewTestServiceClient(cc)
		closed, err1 := stub.FullDuplexCall(t.Context())
		left, err2 := stub.FullDuplexCall(ctx)
		dropped, err3 := stub.FullDuplexCall(t.Context())
		if err := errors.Join(err1, err2, err3); err != nil {
			t.Fatal(err)
		}
		if err := errors.Join(left.Send(&outputRequest{}), dropped.Send(&outputRequest{})); err != nil {
			t.Fatal(err)
		}
		if _, err := stub.FullDuplexCall(t.Context()); status.Code(err) != codes.Unavailable || inFlight(client) != 3 {
			t.Errorf("%v with %d in flight, want a rejection with 3", err, inFlight(client))
		}
		_ = closed.CloseSend()
		if _, err := closed.Recv(); !errors.Is(err, io.EOF) {
			t.Error(err)
		}
		cancel()
		synctest.Wait()
		if n := inFlight(client); n != 1 {
			t.Errorf("%d in flight, want 1", n)
		}
		_ = cc.Close() // the last one was never read to its end
		synctest.Wait()
		if n := inFlight(client); n != 0 {
			t.Errorf("%d in flight, want none", n)
		}
	})
}

// wrapped is a stream of an interceptor underneath, which ends it for the caller.
type wrapped struct{ grpc.ClientStream }

func (wrapped) RecvMsg(any) error { return status.Error(codes.Unavailable, "not by grpc") }

// TestStreamEndedBelow expects a stream that an interceptor underneath has ended for
// the caller, but not for the backend, to be given up.
func TestStreamEndedBelow(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		ended := make(chan struct{})
		site := open(t, &service{duplex: func(ss duplexServer) error {
			<-ss.Context().Done()
			close(ended)
			return nil
		}})
		client := mustClient(t, ClientConfig{Egress: eager, Classify: idempotent})
		opts := append(client.DialOptions(), grpc.WithChainStreamInterceptor(
			func(ctx context.Context, desc *grpc.StreamDesc, cc *grpc.ClientConn, method string, streamer grpc.Streamer, opts ...grpc.CallOption) (grpc.ClientStream, error) {
				s, err := streamer(ctx, desc, cc, method, opts...)
				return wrapped{s}, err
			}))
		s, err := pb.NewTestServiceClient(site.dial(opts...)).FullDuplexCall(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if _, err := s.Recv(); status.Convert(err).Message() != "not by grpc" {
			t.Error(err)
		}
		<-ended
		if n := inFlight(client); n != 0 {
			t.Errorf("%d in flight", n)
		}
	})
}

// TestStreamUntold expects the end of the context to end a stream about which grpc reports
// nothing, because an interceptor below has dropped the options.
func TestStreamUntold(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		client := mustClient(t, ClientConfig{Egress: eager, Classify: idempotent})
		opts := append(client.DialOptions(), grpc.WithChainStreamInterceptor(
			func(ctx context.Context, desc *grpc.StreamDesc, cc *grpc.ClientConn, method string, streamer grpc.Streamer, _ ...grpc.CallOption) (grpc.ClientStream, error) {
				return streamer(ctx, desc, cc, method)
			}))
		site := open(t, &service{duplex: func(ss duplexServer) error { <-ss.Context().Done(); return nil }})
		ctx, cancel := context.WithCancel(t.Context())
		if _, err := pb.NewTestServiceClient(site.dial(opts...)).FullDuplexCall(ctx); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		if n := inFlight(client); n != 1 {
			t.Errorf("%d in flight, want 1", n)
		}
		cancel()
		synctest.Wait()
		if n := inFlight(client); n != 0 {
			t.Errorf("%d in flight, want none", n)
		}
	})
}

// TestStreamUntoldOfOneAnswer expects the only answer of a call to end it, even where
// grpc can tell nothing.
func TestStreamUntoldOfOneAnswer(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		client := mustClient(t, ClientConfig{Egress: eager})
		opts := append(client.DialOptions(), grpc.WithChainStreamInterceptor(
			func(ctx context.Context, desc *grpc.StreamDesc, cc *grpc.ClientConn, method string, streamer grpc.Streamer, _ ...grpc.CallOption) (grpc.ClientStream, error) {
				return streamer(ctx, desc, cc, method)
			}))
		s, err := pb.NewTestServiceClient(open(t, &service{}).dial(opts...)).StreamingInputCall(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if _, err := s.CloseAndRecv(); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		if n := inFlight(client); n != 0 {
			t.Errorf("%d in flight, want none", n)
		}
	})
}
