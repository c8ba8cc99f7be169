package spillgrpc

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/health"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"
	pb "google.golang.org/grpc/interop/grpc_testing"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/reflection"
	reflectionpb "google.golang.org/grpc/reflection/grpc_reflection_v1"
	"google.golang.org/grpc/status"

	"github.com/seed90641741/spillway"
	"github.com/seed90641741/spillway/attempts"
	"github.com/seed90641741/spillway/egress"
	"github.com/seed90641741/spillway/fault"
	"github.com/seed90641741/spillway/ingress"
	"github.com/seed90641741/spillway/ratelimit"
)

// angry is a server at which everything was tried before: rejections say "don't retry".
var angry = ingress.Config{
	Load: swamped.Load, Shed: patient,
	Trust:    ingress.Trust{Boundary: ingress.Internal, DefaultMax: spillway.CriticalPlus},
	Attempts: attempts.Config{MinRequests: -1, Share: 0.01},
}

// half is a Rand by which hints are exact.
func half() float64 { return 0.5 }

// TestRejections expects each rejection as the wire has it, for calls and for streams.
func TestRejections(t *testing.T) {
	quiet := swamped
	quiet.Rand, quiet.RetryAfter = half, 1234*time.Millisecond
	for _, row := range []struct {
		name     string
		gates    ingress.Config
		attempt  string
		code     codes.Code
		pushback string
		detail   string
	}{
		{"overloaded", quiet, "0", codes.Unavailable, "1240", "RetryInfo 1.24s ErrorInfo spillway/OVERLOADED task"},
		{"don't retry", angry, "3", codes.Unavailable, "-1", "ErrorInfo spillway/OVERLOADED_DONT_RETRY service"},
		{"over quota", ingress.Config{Quota: none(), Rand: half}, "0", codes.ResourceExhausted, "*", "QuotaFailure RetryInfo"},
		{"served", ingress.Config{}, "0", codes.OK, "", ""},
	} {
		t.Run(row.name, func(t *testing.T) {
			inBubble(t, func(t *testing.T) {
				s := mustServer(t, row.gates, ServerConfig{})
				cc := open(t, &service{}, grpc.ChainUnaryInterceptor(s.UnaryInterceptor), grpc.ChainStreamInterceptor(s.StreamInterceptor)).dial()
				ctx := metadata.AppendToOutgoingContext(t.Context(), keyAttempts, row.attempt)
				for range 2 { // the first teaches the histogram
					_ = call(ctx, cc)
				}
				var header, trailer metadata.MD
				check := func(what string, err error) {
					t.Helper()
					got := status.Convert(err)
					if got.Code() != row.code || header != nil && row.code != codes.OK {
						t.Errorf("%s: %v, header %v; want %v, without a header", what, got, header, row.code)
					}
					if push := trailer[keyPushback]; row.pushback != "*" && join(push) != join(fields(row.pushback)) || row.pushback == "*" && len(push) != 1 {
						t.Errorf("%s: pushback %v, want %s", what, push, row.pushback)
					}
					if d := describe(got); d != row.detail && row.pushback != "*" {
						t.Errorf("%s: details %s, want %s", what, d, row.detail)
					}
				}
				check("a call", call(ctx, cc, grpc.Header(&header), grpc.Trailer(&trailer)))
				stream, err := pb.NewTestServiceClient(cc).StreamingOutputCall(ctx, &outputRequest{})
				if err != nil {
					t.Fatal(err)
				}
				_, err = stream.Recv()
				header, _ = stream.Header()
				if trailer = nil; err != nil {
					trailer = stream.Trailer()
				}
				check("a stream", err)
				if _, err := stream.Recv(); err == nil {
					t.Error("no end")
				}
				nothingLeft(t, s)
			})
		})
	}
}

func fields(s string) []string {
	if s == "" {
		return nil
	}
	return []string{s}
}

// describe names the details of a status.
func describe(s *status.Status) (text string) {
	for _, d := range s.Details() {
		if text != "" {
			text += " "
		}
		switch d := d.(type) {
		case *errdetails.RetryInfo:
			text += "RetryInfo " + d.GetRetryDelay().AsDuration().String()
		case *errdetails.ErrorInfo:
			text += "ErrorInfo " + d.GetDomain() + "/" + d.GetReason()
			if s := d.GetMetadata()[keyScope]; s != "" {
				text += " " + s
			}
		case *errdetails.QuotaFailure:
			text += "QuotaFailure"
		default:
			text += fmt.Sprint(d)
		}
	}
	return text
}

// TestClientObeys expects a Client to read all of what a Server says.
func TestClientObeys(t *testing.T) {
	for _, row := range []struct {
		name  string
		gates ingress.Config
		want  fault.Failure // but for the time
	}{
		{"overloaded", swamped, fault.Failure{
			Overload: true, Party: fault.Server, Safety: fault.RetrySafe, HasRetryAfter: true, Scope: fault.ScopeTask, Unprocessed: true,
		}},
		{"over quota", ingress.Config{Quota: none()}, fault.Failure{
			Overload: true, Party: fault.Client, Safety: fault.RetrySafe, HasRetryAfter: true, Scope: fault.ScopeCustomer,
		}},
		{"don't retry", angry, fault.Failure{Overload: true, Party: fault.Server, DontRetry: true, Scope: fault.ScopeService}},
	} {
		inBubble(t, func(t *testing.T) {
			s := mustServer(t, row.gates, ServerConfig{})
			cc := open(t, &service{}, s.Options()...).dial()
			ctx := metadata.AppendToOutgoingContext(t.Context(), keyAttempts, "2")
			var trailer metadata.MD
			_ = call(ctx, cc)
			err := call(ctx, cc, grpc.Trailer(&trailer))
			failure := judge(ctx, err, trailer, nil)
			got := fault.Of(failure)
			if got.RetryAfter = 0; failure == nil || got != row.want {
				t.Errorf("%s: %+v, want %+v", row.name, got, row.want)
			}
		})
	}
}

// TestExempt expects health checks served that were named, whatever else is rejected, and
// reflection rejected.
func TestExempt(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		gates := swamped
		gates.RateLimit, gates.Quota = ratelimit.Config{Rate: 0.01}, none()
		s := mustServer(t, gates, ServerConfig{HealthMethods: []string{healthpb.Health_Check_FullMethodName, healthpb.Health_Watch_FullMethodName}})
		site := &site{tb: t, listener: newListener(), server: grpc.NewServer(s.Options()...)}
		pb.RegisterTestServiceServer(site.server, &service{})
		healthpb.RegisterHealthServer(site.server, health.NewServer())
		reflection.Register(site.server)
		site.start()
		cc := site.dial()
		for range 10 { // so that the tap looks
			if err := call(t.Context(), cc); err == nil {
				t.Fatal("a call was served")
			}
		}
		checker := healthpb.NewHealthClient(cc)
		if _, err := checker.Check(t.Context(), &healthpb.HealthCheckRequest{}); err != nil {
			t.Error(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		if w, err := checker.Watch(ctx, &healthpb.HealthCheckRequest{}); err != nil {
			t.Error(err)
		} else if _, err := w.Recv(); err != nil {
			t.Error(err)
		}
		r, err := reflectionpb.NewServerReflectionClient(cc).ServerReflectionInfo(ctx)
		if err != nil {
			t.Fatal(err)
		}
		_ = r.Send(&reflectionpb.ServerReflectionRequest{MessageRequest: &reflectionpb.ServerReflectionRequest_ListServices{}}) // the end comes by Recv
		if _, err := r.Recv(); err == nil {
			t.Error("reflection is exempt")
		}
	})
}

// TestStreamCountsWhileItWorks expects a stream to be reported once, and to count as in flight
// while its handler works on a message, not while it waits for the next one.
func TestStreamCountsWhileItWorks(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		events := &journal{}
		gates := ingress.Config{Observer: events, Shed: patient}
		s := mustServer(t, gates, ServerConfig{})
		cc := open(t, &service{duplex: func(ss duplexServer) error {
			for {
				m, err := ss.Recv()
				if err != nil {
					return nil //nolint:nilerr // the client sends no more
				}
				time.Sleep(2 * time.Millisecond)
				if err := ss.Send(&pb.StreamingOutputCallResponse{Payload: m.GetPayload()}); err != nil {
					return err
				}
			}
		}}, s.Options()...).dial()
		stream, err := pb.NewTestServiceClient(cc).FullDuplexCall(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		for range 10 {
			if err := stream.Send(&outputRequest{}); err != nil {
				t.Fatal(err)
			}
			time.Sleep(time.Millisecond)
			if n := s.ingress.Stats(time.Now()).Concurrency.Shared.InFlight; n != 1 {
				t.Fatalf("%d in flight while the handler works, want 1", n)
			}
			if _, err := stream.Recv(); err != nil {
				t.Fatal(err)
			}
			time.Sleep(time.Millisecond)
			if n := s.ingress.Stats(time.Now()).Concurrency.Shared.InFlight; n != 0 {
				t.Fatalf("%d in flight while the handler waits, want 0", n)
			}
		}
		_ = stream.CloseSend()
		if _, err := stream.Recv(); !errors.Is(err, io.EOF) {
			t.Error(err)
		}
		synctest.Wait()
		if all := events.take(); len(all) != 1 || all[0].Outcome != spillway.OutcomeServed || all[0].Latency < 10*time.Millisecond || all[0].Call.Key != methodDuplex {
			t.Errorf("%+v, want one event of the whole stream", all)
		}
		nothingLeft(t, s)
	})
}

// TestOutcomes expects the right outcome of each call to be reported.
func TestOutcomes(t *testing.T) {
	sleeps := func(context.Context) error { time.Sleep(20 * time.Second); return nil }
	for _, row := range []struct {
		name   string
		answer step
		leave  func(context.Context) (context.Context, context.CancelFunc)
		want   spillway.Outcome
	}{
		{"served", served, nil, spillway.OutcomeServed},
		{"not found", says(codes.NotFound), nil, spillway.OutcomeServed},
		{"failed", says(codes.Internal), nil, spillway.OutcomeFailed},
		{"a plain error", func(context.Context) error { return errors.New("plain") }, nil, spillway.OutcomeFailed},
		{"too late", sleeps, expires, spillway.OutcomeTimedOut},
		{"nobody waits", sleeps, cancels, spillway.OutcomeAbandoned},
	} {
		t.Run(row.name, func(t *testing.T) {
			inBubble(t, func(t *testing.T) {
				events := &journal{}
				s := mustServer(t, ingress.Config{Observer: events, Shed: patient}, ServerConfig{})
				cc := open(t, &service{unary: row.answer}, s.Options()...).dial()
				ctx := t.Context()
				if row.leave != nil {
					var cancel context.CancelFunc
					ctx, cancel = row.leave(ctx)
					defer cancel()
				}
				_ = call(ctx, cc)
				time.Sleep(time.Minute)
				if all := events.take(); len(all) != 1 || all[0].Outcome != row.want {
					t.Errorf("%+v, want one event %v", all, row.want)
				}
				nothingLeft(t, s)
			})
		})
	}
}

// TestPanicOfAStream expects a panic to pass through, and to end the stream for the gates.
func TestPanicOfAStream(t *testing.T) {
	s := mustServer(t, ingress.Config{Shed: patient}, ServerConfig{})
	defer nothingLeft(t, s)
	defer func() {
		if recover() == nil {
			t.Error("the panic was swallowed")
		}
	}()
	_ = s.StreamInterceptor(nil, &serverStream{ctx: t.Context()}, &grpc.StreamServerInfo{FullMethod: methodDuplex}, func(any, grpc.ServerStream) error { panic("on purpose") })
}

// TestLayers expects a failure that one layer has retried to be final for the layer
// above, as it says so on the wire.
func TestLayers(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		var bottom atomic.Int32
		third := open(t, &service{unary: func(context.Context) error { bottom.Add(1); return status.Error(codes.Unavailable, "no") }})
		toThird := third.dial(mustClient(t, ClientConfig{Egress: eager, Classify: idempotent}).DialOptions()...)
		var middle atomic.Int32
		second := open(t, &service{unary: func(ctx context.Context) error { middle.Add(1); return call(ctx, toThird) }},
			mustServer(t, ingress.Config{Shed: patient}, ServerConfig{}).Options()...)
		toSecond := second.dial(mustClient(t, ClientConfig{Egress: eager, Classify: idempotent}).DialOptions()...)
		if err := call(t.Context(), toSecond); status.Code(err) != codes.Unavailable {
			t.Error(err)
		}
		if middle.Load() != 1 || bottom.Load() != 3 {
			t.Errorf("%d attempts above, %d below; want 1 and 3", middle.Load(), bottom.Load())
		}
	})
}

// TestServerHoldsItsLimit has clients with a deadline of 2 ms call handlers that
// ignore their context: they wait for one of 20 places, and then work for 50 ms.
// The clients have next to nothing in flight; the server is to keep to its limit
// all the same.
func TestServerHoldsItsLimit(t *testing.T) {
	for _, protected := range []bool{false, true} {
		inBubble(t, func(t *testing.T) {
			var now, high, limit atomic.Int64
			var s *Server
			places := make(chan struct{}, 20)
			work := func(context.Context) error {
				if s != nil {
					raise(&limit, int64(math.Ceil(min(s.ingress.Stats(time.Now()).Concurrency.Tightest().Limit, 1e9))))
				}
				raise(&high, now.Add(1))
				defer now.Add(-1)
				places <- struct{}{}
				defer func() { <-places }()
				time.Sleep(50 * time.Millisecond)
				return nil
			}
			var opts []grpc.ServerOption
			if protected {
				s = mustServer(t, ingress.Config{}, ServerConfig{})
				opts = s.Options()
			}
			client := mustClient(t, ClientConfig{Egress: egress.Config{MaxInFlight: 100, ThrottleMode: spillway.ModeOff}})
			cc := open(t, &service{unary: work}, opts...).dial(client.DialOptions()...)
			most := 0
			var calls sync.WaitGroup
			for range 2000 { // 2,000 per second, of which 400 can be served
				time.Sleep(500 * time.Microsecond)
				calls.Go(func() {
					ctx, cancel := context.WithTimeout(t.Context(), 2*time.Millisecond)
					defer cancel()
					_ = call(ctx, cc)
				})
				most = max(most, inFlight(client))
			}
			calls.Wait()
			if n := inFlight(client); n != 0 || most > 10 {
				t.Errorf("the client has %d in flight, and had %d", n, most)
			}
			switch {
			case !protected && high.Load() < 1000:
				t.Errorf("without a gate up to %d at once: this is no test", high.Load())
			case protected && (high.Load() > limit.Load() || high.Load() > 200):
				t.Errorf("up to %d at once, want at most %d", high.Load(), limit.Load())
			}
			t.Logf("protected %v: up to %d at once, limit %d", protected, high.Load(), limit.Load())
			time.Sleep(time.Minute)
			if s != nil {
				nothingLeft(t, s)
			}
		})
	}
}

// raise makes most at least n.
func raise(most *atomic.Int64, n int64) {
	for {
		if m := most.Load(); n <= m || most.CompareAndSwap(m, n) {
			return
		}
	}
}

// TestLeft expects Canceled for a caller that leaves while its call waits.
func TestLeft(t *testing.T) {
	s := mustServer(t, ingress.Config{RateLimit: ratelimit.Config{Rate: 0.01, QueueDepth: 10}}, ServerConfig{})
	serve := func(ctx context.Context) error {
		_, err := s.UnaryInterceptor(ctx, nil, &grpc.UnaryServerInfo{FullMethod: methodUnary}, func(context.Context, any) (any, error) { return nil, nil })
		return err
	}
	if err := serve(t.Context()); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := serve(ctx); status.Code(err) != codes.Canceled {
		t.Errorf("%v, want Canceled", err)
	}
}

// TestMilliseconds expects three digits, never too few milliseconds.
func TestMilliseconds(t *testing.T) {
	for _, row := range []struct {
		d    time.Duration
		want int64
	}{
		{-time.Second, 0},
		{0, 0},
		{1, 1},
		{999 * time.Millisecond, 999},
		{1000 * time.Millisecond, 1000},
		{1001 * time.Millisecond, 1010},
		{9999 * time.Millisecond, 10000},
		{time.Hour, 3600000},
		{1 << 62, 86400000},
	} {
		if got := milliseconds(row.d); got != row.want {
			t.Errorf("%v: %d, want %d", row.d, got, row.want)
		}
	}
}

// journal is an Observer that remembers.
type journal struct {
	mu     sync.Mutex
	events []spillway.Event
}

func (j *journal) Observe(e spillway.Event) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.events = append(j.events, e)
}

// take returns what was observed of the shedder, and forgets it.
func (j *journal) take() (events []spillway.Event) {
	j.mu.Lock()
	defer j.mu.Unlock()
	for _, e := range j.events {
		if e.Policy == "shed" {
			events = append(events, e)
		}
	}
	j.events = nil
	return events
}
