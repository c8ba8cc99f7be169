package spillgrpc

import (
	"context"
	"flag"
	"net"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"google.golang.org/grpc"
	pb "google.golang.org/grpc/interop/grpc_testing"

	"github.com/seed90641741/spillway/ingress"
)

var measure = flag.Bool("measure", false, "assert times, too: for a quiet machine")

// TestWatchers opens many streams at once to an idle server, over a few connections or over one
// each, and makes quick calls beside them. All streams get in. On a machine that does nothing
// else no call is rejected, and it takes about as long as it does without protection.
func TestWatchers(t *testing.T) {
	count := 100
	if *measure {
		count = 1000
	}
	for name, conns := range map[string]int{"few connections": 4, "a connection each": count} {
		t.Run(name, func(t *testing.T) {
			alone := watch(t, count, conns)
			ours := watch(t, count, conns, mustServer(t, ingress.Config{}, ServerConfig{}).Options()...)
			t.Logf("%d open after %v, %v without protection; quick calls take %v, %v without protection; %d rejections",
				count, ours.open, alone.open, ours.quick, alone.quick, ours.rejected)
			if *measure && (ours.open > 250*time.Millisecond || ours.quick > 2*alone.quick || ours.rejected > 0) {
				t.Error("want 250 ms, twice as long without protection, and no rejection")
			}
		})
	}
}

// watched is what came of it.
type watched struct {
	open     time.Duration // until the last stream had its first message
	quick    time.Duration // median of the calls beside
	rejected int64
}

func watch(t *testing.T, count, conns int, options ...grpc.ServerOption) (w watched) {
	t.Helper()
	server := grpc.NewServer(options...)
	pb.RegisterTestServiceServer(server, &service{output: func(_ *outputRequest, ss outputServer) error {
		if err := ss.Send(&pb.StreamingOutputCallResponse{}); err != nil {
			return err
		}
		<-ss.Context().Done()
		return nil
	}})
	listener := must(net.Listen("tcp", "127.0.0.1:0"))
	var serving, clients sync.WaitGroup
	serving.Go(func() { _ = server.Serve(listener) })
	defer serving.Wait()
	defer server.Stop()
	ctx, cancel := context.WithCancel(t.Context())
	defer clients.Wait()
	defer cancel()

	channels := make([]pb.TestServiceClient, conns)
	for i := range channels {
		channels[i] = pb.NewTestServiceClient(dial(t, listener.Addr().String()))
	}
	beside := pb.NewTestServiceClient(dial(t, listener.Addr().String()))
	var open, rejected atomic.Int64
	all := make(chan struct{})
	begin := time.Now()
	for i := range count {
		clients.Go(func() {
			for ctx.Err() == nil && !watchOne(ctx, channels[i%conns], func() {
				if open.Add(1) == int64(count) {
					close(all)
				}
			}) {
				rejected.Add(1)
				<-time.After(time.Second) // as a client does that is rejected
			}
		})
	}
	took := quick(ctx, beside, all, &rejected) // until all are open
	w.open = time.Since(begin)
	took = append(took, quick(ctx, beside, time.After(200*time.Millisecond), &rejected)...)
	slices.Sort(took)
	w.quick, w.rejected = took[len(took)/2], rejected.Load()
	return w
}

// watchOne is one stream, until it is ended, and reports whether it was open.
func watchOne(ctx context.Context, client pb.TestServiceClient, opened func()) bool {
	stream, err := client.StreamingOutputCall(ctx, &outputRequest{})
	if err != nil {
		return false
	}
	if _, err := stream.Recv(); err != nil {
		return false
	}
	opened()
	_, _ = stream.Recv()
	return true
}

// quick makes one call after the other until the end, and returns how long each took.
func quick[T any](ctx context.Context, client pb.TestServiceClient, end <-chan T, rejected *atomic.Int64) (took []time.Duration) {
	for {
		begin := time.Now()
		if _, err := client.EmptyCall(ctx, &pb.Empty{}); err != nil {
			rejected.Add(1)
		}
		took = append(took, time.Since(begin))
		select {
		case <-end:
			return took
		default:
		}
	}
}
