package spillgrpc

import (
	"bytes"
	"context"
	"flag"
	"fmt"
	"net"
	"os"
	"os/exec"
	"slices"
	"strings"
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
// each, and meanwhile makes quick calls. All streams get in. On a machine that does nothing
// else no call is rejected, and the time is about that without protection: runs with
// and without it take turns.
func TestWatchers(t *testing.T) {
	count, rounds := 100, 1
	if *measure {
		count, rounds = 1000, 5
	}
	for name, conns := range map[string]int{"few connections": 4, "a connection each": count} {
		t.Run(name, func(t *testing.T) {
			var alone, ours []*watched
			for range rounds {
				bare := watch(t, count, conns, nil)
				s := mustServer(t, ingress.Config{}, ServerConfig{})
				w := watch(t, count, conns, s)
				t.Logf("%d open after %v, %v without protection; quick calls take %v, %v without protection; %d rejections %s",
					count, w.open, bare.open, w.quick, bare.quick, w.rejected, reasons(s))
				alone, ours = append(alone, bare), append(ours, w)
			}
			open, quick := typical(ours, (*watched).opened), typical(ours, (*watched).called)
			openRatio, quickRatio := ratioOf(open, typical(alone, (*watched).opened)), ratioOf(quick, typical(alone, (*watched).called))
			t.Logf("medians: open after %v, %.2f times that without protection; quick calls %.2f times", open, openRatio, quickRatio)
			if *measure && (open > 250*time.Millisecond && openRatio > 1.1 || quickRatio > 2) {
				t.Error("want 250 ms or 1.1 times that without protection, and 2 times for quick calls")
			}
			for _, w := range ours {
				if *measure && w.rejected > 0 {
					t.Errorf("%d rejections, want none", w.rejected)
				}
			}
		})
	}
}

// reasons says what has rejected calls.
func reasons(s *Server) string {
	all := s.ingress.Stats(time.Now())
	return fmt.Sprintf("(shed %+v, concurrency %+v)", all.Shed, all.Concurrency.Shared)
}

// watched is the result of one run.
type watched struct {
	open     time.Duration // until the last stream had its first message
	quick    time.Duration // median of the calls beside
	rejected int64
}

func (w *watched) opened() time.Duration { return w.open }
func (w *watched) called() time.Duration { return w.quick }

// typical is the median.
func typical(all []*watched, of func(*watched) time.Duration) time.Duration {
	var values []time.Duration
	for _, w := range all {
		values = append(values, of(w))
	}
	slices.Sort(values)
	return values[len(values)/2]
}

func ratioOf(a, b time.Duration) float64 { return float64(a) / float64(b) }

// watch serves watchers, with protection unless it is nil.
func watch(t *testing.T, count, conns int, protection *Server) *watched {
	t.Helper()
	w := new(watched)
	var options []grpc.ServerOption
	if protection != nil {
		options = protection.Options()
	}
	server := grpc.NewServer(options...)
	var open atomic.Int64
	all, news := make(chan struct{}), make(chan struct{})
	pb.RegisterTestServiceServer(server, &service{output: func(_ *outputRequest, ss outputServer) error {
		if err := ss.Send(&pb.StreamingOutputCallResponse{}); err != nil {
			return err
		}
		if open.Add(1) == int64(count) {
			close(all)
		}
		select {
		case <-news:
		case <-ss.Context().Done():
		}
		return nil
	}})
	listener := &noting{Listener: must(net.Listen("tcp", "127.0.0.1:0")), came: make(chan time.Time, 1)}
	var serving sync.WaitGroup
	serving.Go(func() { _ = server.Serve(listener) })
	defer serving.Wait()
	defer server.Stop()

	beside := pb.NewTestServiceClient(dial(t, listener.Addr().String()))
	var rejected atomic.Int64
	quick(t.Context(), beside, time.After(0), &rejected)
	<-listener.came
	clients := watchers(t, listener.Addr().String(), count, conns)
	begin := <-listener.came
	took := quick(t.Context(), beside, all, &rejected) // until all are open
	w.open = time.Since(begin)
	took = append(took, quick(t.Context(), beside, time.After(200*time.Millisecond), &rejected)...)
	slices.Sort(took)
	w.quick = took[len(took)/2]
	close(news)
	w.rejected = rejected.Load() + clients()
	return w
}

// noting is a listener that notes when a connection comes.
type noting struct {
	net.Listener

	came chan time.Time // the first that nobody has asked about yet
}

// Accept implements [net.Listener].
func (l *noting) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	select {
	case l.came <- time.Now():
	default:
	}
	return c, err
}

const watchersAsked = "SPILLGRPC_WATCHERS"

// watchers starts a process with clients, and returns what waits for them to end and returns how
// many calls were rejected. In this process they would compete with the server for processors,
// in one run queue.
func watchers(t *testing.T, address string, count, conns int) func() int64 {
	t.Helper()
	c := exec.CommandContext(t.Context(), must(os.Executable()), "-test.run=^TestWatchersThemselves$", "-test.v")
	c.Env = append(os.Environ(), fmt.Sprintf("%s=%s %d %d", watchersAsked, address, count, conns))
	var out bytes.Buffer
	c.Stdout, c.Stderr = &out, &out
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	return func() (rejected int64) {
		if err := c.Wait(); err != nil {
			t.Errorf("clients: %v\n%s", err, out.String())
		}
		_, report, _ := strings.Cut(out.String(), "REJECTED ")
		if _, err := fmt.Sscan(report, &rejected); err != nil {
			t.Error(err)
		}
		return rejected
	}
}

// TestWatchersThemselves are the clients of TestWatchers.
func TestWatchersThemselves(t *testing.T) {
	var address string
	var count, conns int
	if _, err := fmt.Sscan(os.Getenv(watchersAsked), &address, &count, &conns); err != nil {
		t.Skip("only if TestWatchers asks for it")
	}
	channels := make([]pb.TestServiceClient, conns)
	for i := range channels {
		channels[i] = pb.NewTestServiceClient(dial(t, address))
	}
	var rejected atomic.Int64
	var all sync.WaitGroup
	for i := range count {
		all.Go(func() {
			for !watchOne(t.Context(), channels[i%conns]) {
				rejected.Add(1)
				<-time.After(time.Second) // as a client does that is rejected
			}
		})
	}
	all.Wait()
	fmt.Fprintf(os.Stdout, "REJECTED %d\n", rejected.Load())
}

// watchOne is one stream, until the server ends it, and reports whether it was open.
func watchOne(ctx context.Context, client pb.TestServiceClient) bool {
	stream, err := client.StreamingOutputCall(ctx, &outputRequest{})
	if err != nil {
		return false
	}
	if _, err := stream.Recv(); err != nil {
		return false
	}
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
