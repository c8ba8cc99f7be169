package spillgrpc

import (
	"context"
	"errors"
	"io"
	"reflect"
	"testing"
	"time"

	"google.golang.org/grpc"
	pb "google.golang.org/grpc/interop/grpc_testing"
	"google.golang.org/grpc/metadata"

	"github.com/seed90641741/spillway/ingress"
	"github.com/seed90641741/spillway/internal/idle"
	"github.com/seed90641741/spillway/shed"
	"github.com/seed90641741/spillway/spilltest"
)

// Streams whose handlers wait for an event are no work: with as many of them as may be in flight, no call is rejected. A stream
// that sends again and again is work.
func TestIdleStreams(t *testing.T) {
	const most = 4
	wait := func(ss outputServer) error {
		<-ss.Context().Done()
		return nil
	}
	for name, row := range map[string]struct {
		handler func(outputServer) error
		works   bool
	}{
		"message": {func(ss outputServer) error {
			if err := ss.Send(&pb.StreamingOutputCallResponse{}); err != nil {
				return err
			}
			return wait(ss)
		}, false},
		"header": {func(ss outputServer) error {
			if err := ss.SendHeader(metadata.Pairs("a", "b")); err != nil {
				return err
			}
			return wait(ss)
		}, false},
		"works": {func(ss outputServer) error {
			for ss.Context().Err() == nil {
				if err := ss.Send(&pb.StreamingOutputCallResponse{}); err != nil {
					return err
				}
				time.Sleep(idle.After / 2)
			}
			return nil
		}, true},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T) {
				s := mustServer(t, ingress.Config{MaxInFlight: most, Shed: shed.Config{MaxWait: 2 * idle.After}}, ServerConfig{})
				cc := open(t, &service{output: func(_ *outputRequest, ss outputServer) error { return row.handler(ss) }}, s.Options()...).dial()
				ctx, cancel := context.WithCancel(t.Context())
				for range most {
					stream, err := pb.NewTestServiceClient(cc).StreamingOutputCall(ctx, &outputRequest{})
					if err != nil {
						t.Fatal(err)
					}
					if _, err := stream.Header(); err != nil {
						t.Fatal(err)
					}
				}
				served, calls := 0, 50
				if row.works {
					calls = 1 // each waits, and in the end the streams would be parked
				}
				for range calls {
					if call(t.Context(), cc) == nil {
						served++
					}
				}
				time.Sleep(2*idle.After + idle.After/4) // between two messages
				n := s.ingress.Stats(time.Now()).InFlight.InFlight
				if row.works && n != most || !row.works && (served != 50 || n != 0) {
					t.Errorf("%d of 50 calls served, %d streams in flight", served, n)
				}
				cancel()
				time.Sleep(time.Second) // the handlers return
				nothingLeft(t, s)
			})
		})
	}
}

// Where Check of the health service bypasses the gates, so does Watch: its clients ask the same.
func TestWatchIsHealthToo(t *testing.T) {
	const check, watch = "/grpc.health.v1.Health/Check", "/grpc.health.v1.Health/Watch"
	for _, row := range []struct {
		named        []string
		check, watch bool
	}{{nil, false, false}, {[]string{check}, true, true}, {[]string{watch}, false, true}, {[]string{methodUnary}, false, false}} {
		s := mustServer(t, ingress.Config{}, ServerConfig{HealthMethods: row.named})
		if s.exempt(check) != row.check || s.exempt(watch) != row.watch {
			t.Errorf("%v: Check %v, Watch %v", row.named, s.exempt(check), s.exempt(watch))
		}
	}
}

// The stream that a handler gets has each method of the one of grpc: programs look for methods beyond those of the interface.
func TestServerStreamHasAllMethods(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		var bare, ours reflect.Type
		note := func(of *reflect.Type) grpc.StreamServerInterceptor {
			return func(srv any, ss grpc.ServerStream, _ *grpc.StreamServerInfo, handler grpc.StreamHandler) error {
				*of = reflect.TypeOf(ss)
				return handler(srv, ss)
			}
		}
		s := mustServer(t, ingress.Config{}, ServerConfig{})
		x := open(t, &service{output: func(*pb.StreamingOutputCallRequest, outputServer) error { return nil }},
			grpc.ChainStreamInterceptor(note(&bare), s.StreamInterceptor, note(&ours)))
		stream := must(pb.NewTestServiceClient(x.dial()).StreamingOutputCall(t.Context(), &pb.StreamingOutputCallRequest{}))
		if _, err := stream.Recv(); !errors.Is(err, io.EOF) || bare == ours {
			t.Fatalf("%v, %v in place of %v", err, ours, bare)
		}
		for _, method := range spilltest.MissingMethods(bare, ours) {
			t.Errorf("%v has no %s", ours, method)
		}
	})
}
