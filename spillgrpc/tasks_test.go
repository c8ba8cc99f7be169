package spillgrpc

import (
	"context"
	"io"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	pb "google.golang.org/grpc/interop/grpc_testing"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/grpc/tap"

	"github.com/seed90641741/spillway"
	"github.com/seed90641741/spillway/ingress"
	"github.com/seed90641741/spillway/internal/race"
	"github.com/seed90641741/spillway/shed"
)

const trace = "00-0af7651916cd43dd8448eb211c803105-b7ad6b7169203331-01"

// inTask returns a context of a task, and the task.
func inTask(ctx context.Context, l spillway.Level, p spillway.Progress) (context.Context, *spillway.Task) {
	task := new(spillway.Task)
	task.Begin(l, p)
	return spillway.WithTask(ctx, task), task
}

// The task of a call has the level and progress that are believed, and handlers that pass on all metadata pass on no other.
func TestTaskOfACall(t *testing.T) {
	user := ServerConfig{Classify: func(context.Context, string) spillway.Call { return spillway.Call{Level: 50} }}
	for _, row := range []struct {
		name     string
		trust    ingress.Trust
		config   ServerConfig
		pairs    []string
		level    spillway.Level
		progress spillway.Progress
		passes   string
	}{
		{"edge", ingress.Trust{}, ServerConfig{}, []string{keyLevel, "128", keyProgress, "9"}, 7, 0, "[] [] []"},
		{"edge, in the baggage", ingress.Trust{}, ServerConfig{}, []string{keyBaggage, "level=128,progress=9,a=1"}, 7, 0, "[] [] [a=1]"},
		{"edge, a trace", ingress.Trust{}, ServerConfig{}, []string{keyTrace, trace}, 7, 0, "[] [] []"},
		{"edge, a user", ingress.Trust{}, user, []string{keyLevel, "128"}, 50, 0, "[] [] []"},
		{"internal", internal.Trust, ServerConfig{}, []string{keyLevel, "128", keyProgress, "9"}, 128, 9, "[128] [9] []"},
		{"internal, in the baggage", internal.Trust, ServerConfig{}, []string{keyBaggage, "level=9,progress=2"}, 9, 2, "[] [] [level=9,progress=2]"},
		{"internal, no level", internal.Trust, ServerConfig{}, []string{keyLevel, "129", keyProgress, "9"}, 7, 0, "[] [] []"},
		{"internal, no level but a trace", internal.Trust, ServerConfig{}, []string{keyLevel, "129", keyTrace, trace}, 6, 0, "[] [] []"},
		{"internal, a trace", internal.Trust, ServerConfig{}, []string{keyTrace, trace}, 6, 0, "[] [] []"},
		{"internal, a user", internal.Trust, user, []string{keyTrace, trace}, 50, 0, "[] [] []"},
	} {
		inBubble(t, func(t *testing.T) {
			var task *spillway.Task
			var got string
			gates := ingress.Config{Trust: row.trust, Rand: func() float64 { return 6.5 / spillway.Levels }}
			s := open(t, &service{unary: func(ctx context.Context) error {
				md, _ := metadata.FromIncomingContext(ctx)
				task, got = spillway.TaskFrom(ctx), join(md[keyLevel], md[keyProgress], md[keyBaggage])
				return nil
			}}, mustServer(t, gates, row.config).Options()...)
			if err := call(metadata.AppendToOutgoingContext(t.Context(), row.pairs...), s.dial()); err != nil {
				t.Fatal(err)
			}
			if task.Level() != row.level || task.Progress() != row.progress || got != row.passes {
				t.Errorf("%s: level %d, progress %d, passes on %s; want %d, %d, %s", row.name, task.Level(), task.Progress(), got, row.level, row.progress, row.passes)
			}
		})
	}
}

// While half of a class is rejected, its lowest levels are. Strangers who invent a level and progress are rejected as all others.
func TestStrangersInventNoLevel(t *testing.T) {
	half := shed.DefaultThresholds[spillway.Critical.Index()] + 0.025 // of the class CRITICAL is rejected
	for _, row := range []struct {
		trust ingress.Trust
		said  []string
		code  codes.Code
	}{
		{ingress.Trust{}, nil, codes.Unavailable}, {ingress.Trust{}, []string{keyLevel, "128", keyProgress, "9"}, codes.Unavailable},
		{ingress.Trust{}, []string{keyBaggage, "level=128,progress=9"}, codes.Unavailable}, {internal.Trust, []string{keyLevel, "128"}, codes.OK},
		{internal.Trust, []string{keyLevel, "1", keyProgress, "9"}, codes.OK}, {internal.Trust, []string{keyLevel, "1"}, codes.Unavailable},
	} {
		inBubble(t, func(t *testing.T) {
			gates := ingress.Config{Load: utilization(half), Trust: row.trust, Rand: func() float64 { return 6.5 / spillway.Levels }}
			s := open(t, &service{unary: func(context.Context) error { return nil }}, mustServer(t, gates, ServerConfig{}).Options()...)
			err := call(metadata.AppendToOutgoingContext(t.Context(), row.said...), s.dial())
			if got := status.Code(err); got != row.code {
				t.Errorf("%v, %q: %v, want %v", row.trust.Boundary, row.said, got, row.code)
			}
		})
	}
}

// Each call says the level of the task and how many were served before it, and counts once when it was served.
func TestTaskOfCalls(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		var got []string
		var fails []codes.Code
		record := func(ctx context.Context) error {
			md, _ := metadata.FromIncomingContext(ctx)
			got = append(got, join(md[keyLevel], md[keyProgress], md[keyBaggage]))
			code := codes.OK
			if len(fails) > 0 {
				code, fails = fails[0], fails[1:]
			}
			return status.Error(code, "")
		}
		s := open(t, &service{
			unary: record,
			output: func(_ *pb.StreamingOutputCallRequest, ss pb.TestService_StreamingOutputCallServer) error {
				return record(ss.Context())
			},
		})
		cc := s.dial(mustClient(t, ClientConfig{Egress: eager, Classify: idempotent}).DialOptions()...)
		external := s.dial(mustClient(t, ClientConfig{External: true}).DialOptions()...)
		ctx, task := inTask(t.Context(), 7, 0)
		expect := func(name string, want string, progress spillway.Progress) {
			t.Helper()
			if last := got[len(got)-1]; last != want || task.Progress() != progress {
				t.Errorf("%s: says %s, progress %d afterwards; want %s and %d", name, last, task.Progress(), want, progress)
			}
		}
		_ = call(ctx, cc)
		expect("the first", "[7] [] []", 1)
		fails = []codes.Code{codes.Unavailable}
		_ = call(ctx, cc)
		expect("a retry", "[7] [1] []", 2)
		fails = []codes.Code{codes.NotFound}
		_ = call(ctx, cc)
		expect("an answer that is no failure", "[7] [2] []", 3)
		fails = []codes.Code{codes.Unavailable, codes.Unavailable, codes.Unavailable}
		_ = call(ctx, cc)
		expect("a failure", "[7] [3] []", 3)
		_ = call(spillway.WithCriticality(ctx, spillway.Sheddable), cc)
		expect("with a class", "[7] [3] [criticality=SHEDDABLE,level=7]", 4)
		_ = call(metadata.AppendToOutgoingContext(ctx, keyLevel, "99", keyProgress, "1", "other", "x"), cc)
		expect("with metadata of the caller", "[7] [4] []", 5)
		_ = call(metadata.AppendToOutgoingContext(ctx, keyLevel, "99", keyProgress, "1"), external)
		expect("to others", "[] [] []", 6)
		stream, err := pb.NewTestServiceClient(cc).StreamingOutputCall(ctx, &pb.StreamingOutputCallRequest{})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := stream.Recv(); err != io.EOF {
			t.Fatal(err)
		}
		expect("a stream", "[7] [6] []", 7)
	})
}

// A hedge and the attempt that it doubles are one call.
func TestHedgeCountsOnce(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		said := make(chan string, 2)
		s := open(t, &service{unary: func(ctx context.Context) error {
			if level := metadata.ValueFromIncomingContext(ctx, keyLevel); level != nil {
				said <- join(level)
				time.Sleep(time.Second)
			}
			return nil
		}})
		cc := s.dial(mustClient(t, ClientConfig{Egress: hedges(), Classify: idempotent}).DialOptions()...)
		for range 100 { // which pay for the hedge
			_ = call(t.Context(), cc)
		}
		ctx, task := inTask(t.Context(), 7, 0)
		if err := call(ctx, cc); err != nil || task.Progress() != 1 {
			t.Errorf("%v, progress %d, want 1", err, task.Progress())
		}
		if len(said) != 2 || <-said != "[7]" || <-said != "[7]" {
			t.Error("not both attempts have said the level")
		}
		time.Sleep(time.Second) // until the hedge has ended, too
	})
}

// A call that the tap lets pass is served with the level that it passed with.
func TestTapDrawsOnce(t *testing.T) {
	draws := 0
	s := mustServer(t, ingress.Config{Load: utilization(0), Rand: func() float64 { draws++; return float64(draws) / spillway.Levels }}, ServerConfig{})
	s.looks.Store(lookOn)
	ctx, err := s.Tap(incoming(t), &tap.Info{FullMethodName: methodUnary})
	if err != nil {
		t.Fatal(err)
	}
	var level spillway.Level
	_, _ = s.UnaryInterceptor(ctx, nil, &grpc.UnaryServerInfo{FullMethod: methodUnary}, func(ctx context.Context, _ any) (any, error) {
		level = spillway.TaskFrom(ctx).Level()
		return nil, nil
	})
	if want := ctx.Value(drawn{}); level != want {
		t.Errorf("served with level %d, passed with %v", level, want)
	}
}

// The metadata of a task cost what those of a class cost, as long as its progress is small.
func TestTaskAllocations(t *testing.T) {
	if race.Enabled {
		t.Skip("the race detector allocates")
	}
	ctx, task := inTask(t.Context(), 7, sharedProgress-1)
	labelled := spillway.WithCriticality(t.Context(), spillway.Sheddable)
	class := testing.AllocsPerRun(100, func() { dress(labelled, nil, 0, false) })
	if n := testing.AllocsPerRun(100, func() { dress(ctx, task, 0, false) }); n > class {
		t.Errorf("%v allocations, of a class %v", n, class)
	}
	task.Served()
	md, _ := metadata.FromOutgoingContext(dress(ctx, task, 0, false))
	if got := join(md[keyLevel], md[keyProgress]); got != "[7] [16]" {
		t.Errorf("says %s", got)
	}
}
