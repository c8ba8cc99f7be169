package spillconnect

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"
	"time"

	"connectrpc.com/connect"
	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/seed90641741/spillway"
	"github.com/seed90641741/spillway/egress"
	"github.com/seed90641741/spillway/fault"
	"github.com/seed90641741/spillway/ingress"
	"github.com/seed90641741/spillway/ratelimit"
)

type message = wrapperspb.StringValue

const procedure = "/test.v1.Echo/Say"

// protocols are the ones that connect-go speaks.
var protocols = map[string][]connect.ClientOption{
	"connect":  nil,
	"gRPC":     {connect.WithGRPC()},
	"gRPC-Web": {connect.WithGRPCWeb()},
}

// start serves handlers with HTTP/1 and HTTP/2 until the test ends.
func start(t *testing.T, handlers map[string]http.Handler) *httptest.Server {
	t.Helper()
	mux := http.NewServeMux()
	for path, h := range handlers {
		mux.Handle(path, h)
	}
	s := httptest.NewUnstartedServer(mux)
	s.EnableHTTP2 = true
	s.StartTLS()
	t.Cleanup(s.Close)
	return s
}

func newServer(t *testing.T, c ServerConfig, i ingress.Config) *Server {
	t.Helper()
	var err error
	if c.Ingress, err = ingress.New(i); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Ingress.Close() })
	s, err := NewServer(c)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func newClient(t *testing.T, c ClientConfig) *Client {
	t.Helper()
	client, err := NewClient(c)
	if err != nil {
		t.Fatal(err)
	}
	return client
}

func caller(s *httptest.Server, path string, options ...connect.ClientOption) func(context.Context) error {
	c := connect.NewClient[message, message](s.Client(), s.URL+path, options...)
	return func(ctx context.Context) error {
		_, err := c.CallUnary(ctx, connect.NewRequest(wrapperspb.String("hello")))
		return err
	}
}

func echo(_ context.Context, req *connect.Request[message]) (*connect.Response[message], error) {
	return connect.NewResponse(req.Msg), nil
}

// What a server says of a rejection is what a client understands, with each protocol.
func TestRejections(t *testing.T) {
	for _, row := range []struct {
		why  ingress.Rejection
		code connect.Code
		want fault.Failure
	}{
		{
			ingress.Rejection{Outcome: spillway.OutcomeOverloaded, RetryAfter: 1500 * time.Millisecond}, connect.CodeUnavailable,
			fault.Failure{Overload: true, Unprocessed: true, Party: fault.Server, Scope: fault.ScopeTask, Safety: fault.RetrySafe, RetryAfter: 1500 * time.Millisecond, HasRetryAfter: true},
		},
		{
			ingress.Rejection{Outcome: spillway.OutcomeOverloaded, DontRetry: true, RetryAfter: time.Second}, connect.CodeUnavailable,
			fault.Failure{Overload: true, DontRetry: true, Party: fault.Server, Scope: fault.ScopeService},
		},
		{
			ingress.Rejection{Outcome: spillway.OutcomeOverloaded, DontRetry: true, Err: &spillway.RejectedError{Reason: spillway.ReasonDeadline}}, connect.CodeUnavailable,
			fault.Failure{Overload: true, DontRetry: true, TooLate: true, Party: fault.Server, Scope: fault.ScopeService},
		},
		{
			ingress.Rejection{Outcome: spillway.OutcomeOverloaded, DontRetry: true, Err: &spillway.RejectedError{Reason: spillway.ReasonMaxWait}}, connect.CodeUnavailable,
			fault.Failure{Overload: true, DontRetry: true, Party: fault.Server, Scope: fault.ScopeService},
		},
		{
			ingress.Rejection{Outcome: spillway.OutcomeOverQuota, RetryAfter: 2 * time.Second}, connect.CodeResourceExhausted,
			fault.Failure{Overload: true, Party: fault.Client, Scope: fault.ScopeCustomer, Safety: fault.RetrySafe, RetryAfter: 2 * time.Second, HasRetryAfter: true},
		},
	} {
		s := start(t, map[string]http.Handler{procedure: connect.NewUnaryHandler(procedure, func(ctx context.Context, _ *connect.Request[message]) (*connect.Response[message], error) {
			return nil, reject(ctx, row.why, ingress.ReasonsFull)
		})})
		for name, options := range protocols {
			err := caller(s, procedure, options...)(t.Context())
			if connect.CodeOf(err) != row.code {
				t.Errorf("%s: %+v: code %v, want %v", name, row.why, err, row.code)
			}
			if f := fault.Of(failureOf(t.Context(), err)); f != row.want {
				t.Errorf("%s: %+v:\n%+v, want\n%+v", name, row.why, f, row.want)
			}
			e, _ := errors.AsType[*connect.Error](err)
			var info *errdetails.ErrorInfo
			for _, d := range e.Details() {
				if v, err := d.Value(); err == nil {
					if i, ok := v.(*errdetails.ErrorInfo); ok {
						info = i
					}
				}
			}
			if info.GetDomain() != "spillway" || info.GetMetadata()["x-overload-scope"] != row.want.Scope.String() {
				t.Errorf("%s: ErrorInfo %v", name, info)
			}
		}
	}
}

// Errors that are no rejections, and what a client makes of them.
func TestFailures(t *testing.T) {
	for _, row := range []struct {
		err           error
		failed        bool
		writes, reads bool // retried
	}{
		{connect.NewError(connect.CodeNotFound, errors.New("x")), false, false, false},
		{connect.NewError(connect.CodeInternal, errors.New("x")), true, false, true},
		{connect.NewError(connect.CodeUnavailable, errors.New("x")), true, false, true},
		{connect.NewError(connect.CodeResourceExhausted, errors.New("x")), true, false, false},
		{connect.NewError(connect.CodeResourceExhausted, errors.New("the rate exceeds 100 per second")), true, false, false},
		{connect.NewError(connect.CodeResourceExhausted, errors.New("the burst is larger than your quota")), true, false, false},
		{connect.NewError(connect.CodeResourceExhausted, errors.New("message size 5 is larger than configured max 4")), false, false, false},
		{connect.NewError(connect.CodeResourceExhausted, errors.New("message size 5 exceeds sendMaxBytes 4")), true, false, false},
		{connect.NewError(connect.CodeResourceExhausted, errors.New("compressed url size 5 exceeds getURLMaxBytes 4")), true, false, false},
		{connect.NewError(connect.CodeResourceExhausted, errors.New("read: exceeded 4 byte http.MaxBytesReader limit")), false, false, false},
		{connect.NewError(connect.CodeResourceExhausted, errors.New("grpc: received message larger than max (5 vs. 4)")), false, false, false},
		{connect.NewError(connect.CodeResourceExhausted, errors.New("gRPC message exceeds maximum size 4: 5")), false, false, false},
		{connect.NewError(connect.CodeDataLoss, errors.New("x")), true, false, false},
	} {
		err := failureOf(t.Context(), row.err)
		f := fault.Of(err)
		if (err != nil) != row.failed || row.failed && (f.Retryable(false) != row.writes || f.Retryable(true) != row.reads) {
			t.Errorf("%v: %v, %+v", row.err, err, f)
		}
	}
	s := start(t, nil)
	s.Close()
	if f := fault.Of(failureOf(t.Context(), caller(s, procedure)(t.Context()))); !f.Unprocessed {
		t.Errorf("of a server that is gone: %+v, want Unprocessed", f)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if f := fault.Of(failureOf(ctx, caller(s, procedure)(ctx))); !f.Canceled {
		t.Errorf("canceled: %+v", f)
	}
}

// The class of a call reaches the handler inside, and only a lower one at an edge.
func TestCriticality(t *testing.T) {
	for boundary, want := range map[ingress.Boundary]spillway.Criticality{
		ingress.Internal: spillway.CriticalPlus, ingress.Edge: spillway.Critical,
	} {
		var got atomic.Int32
		var attempts atomic.Value
		server := newServer(t, ServerConfig{}, ingress.Config{Trust: ingress.Trust{Boundary: boundary, DefaultMax: spillway.CriticalPlus}})
		s := start(t, map[string]http.Handler{procedure: connect.NewUnaryHandler(procedure, func(ctx context.Context, req *connect.Request[message]) (*connect.Response[message], error) {
			got.Store(int32(spillway.CriticalityFrom(ctx)))
			attempts.Store(req.Header().Get("Grpc-Previous-Rpc-Attempts"))
			return echo(ctx, req)
		}, connect.WithInterceptors(server))})
		for name, options := range protocols {
			call := caller(s, procedure, append(options, connect.WithInterceptors(newClient(t, ClientConfig{})))...)
			for class, want := range map[spillway.Criticality]spillway.Criticality{spillway.CriticalPlus: want, spillway.Sheddable: spillway.Sheddable} {
				if err := call(spillway.WithCriticality(t.Context(), class)); err != nil {
					t.Fatal(err)
				}
				if c := spillway.Criticality(got.Load()); c != want || attempts.Load() != "" {
					t.Errorf("%v, %s: %v, attempts %q, want %v", boundary, name, c, attempts.Load(), want)
				}
			}
			external := caller(s, procedure, append(options, connect.WithInterceptors(newClient(t, ClientConfig{External: true})))...)
			if err := external(spillway.WithCriticality(t.Context(), spillway.Sheddable)); err != nil || spillway.Criticality(got.Load()) != spillway.Critical {
				t.Errorf("external: %v, %v", spillway.Criticality(got.Load()), err)
			}
		}
	}
}

// A rejection of one task is retried although the call is not idempotent, with the number
// of the attempt.
func TestRetry(t *testing.T) {
	for name, options := range protocols {
		var calls atomic.Int32
		s := start(t, map[string]http.Handler{procedure: connect.NewUnaryHandler(procedure, func(ctx context.Context, req *connect.Request[message]) (*connect.Response[message], error) {
			if calls.Add(1) == 1 {
				return nil, reject(ctx, ingress.Rejection{Outcome: spillway.OutcomeOverloaded, RetryAfter: time.Hour}, ingress.ReasonsCoarse)
			}
			if n := req.Header().Get("Grpc-Previous-Rpc-Attempts"); n != "1" {
				t.Errorf("%s: attempt %q", name, n)
			}
			return echo(ctx, req)
		})})
		client := newClient(t, ClientConfig{})
		if err := caller(s, procedure, append(options, connect.WithInterceptors(client))...)(t.Context()); err != nil || calls.Load() != 2 {
			t.Errorf("%s: %v after %d attempts, want success after 2", name, err, calls.Load())
		}
		for backend, stats := range client.Stats(time.Now()) {
			if stats.InFlight.InFlight != 0 {
				t.Errorf("%s: %s: %+v", name, backend, stats.InFlight)
			}
		}
	}
}

// A backend that always fails is retried by the service next to it only.
func TestOneLayerRetries(t *testing.T) {
	for name, options := range protocols {
		var back, front atomic.Int32
		backend := start(t, map[string]http.Handler{procedure: connect.NewUnaryHandler(procedure, func(ctx context.Context, _ *connect.Request[message]) (*connect.Response[message], error) {
			back.Add(1)
			return nil, reject(ctx, ingress.Rejection{Outcome: spillway.OutcomeOverloaded, RetryAfter: time.Millisecond}, ingress.ReasonsCoarse)
		})})
		call := caller(backend, procedure, append(options, connect.WithInterceptors(newClient(t, ClientConfig{})))...)
		server := newServer(t, ServerConfig{}, ingress.Config{})
		frontend := start(t, map[string]http.Handler{procedure: connect.NewUnaryHandler(procedure, func(ctx context.Context, req *connect.Request[message]) (*connect.Response[message], error) {
			front.Add(1)
			if err := call(ctx); err != nil {
				return nil, err
			}
			return echo(ctx, req)
		}, connect.WithInterceptors(server))})
		err := caller(frontend, procedure, append(options, connect.WithInterceptors(newClient(t, ClientConfig{})))...)(t.Context())
		if err == nil || front.Load() != 1 || back.Load() < 2 {
			t.Errorf("%s: %v; the frontend was called %d times, the backend %d times, want 1 and 2 or more", name, err, front.Load(), back.Load())
		}
		if f := fault.Of(failureOf(t.Context(), err)); !f.DontRetry {
			t.Errorf("%s: %+v, want DontRetry", name, f)
		}
	}
}

// The server rejects what exceeds its limits, passes health checks, and forgets nothing if a
// handler panics.
func TestServer(t *testing.T) {
	const health = "/grpc.health.v1.Health/Check"
	server := newServer(t, ServerConfig{HealthProcedures: []string{health}}, ingress.Config{RateLimit: ratelimit.Config{Rate: 1e-3, BurstSeconds: 2e3}})
	s := start(t, map[string]http.Handler{
		procedure: connect.NewUnaryHandler(procedure, func(context.Context, *connect.Request[message]) (*connect.Response[message], error) {
			panic(http.ErrAbortHandler)
		}, connect.WithInterceptors(server)),
		health: connect.NewUnaryHandler(health, echo, connect.WithInterceptors(server)),
	})
	call := caller(s, procedure, connect.WithGRPC())
	for i := range 4 {
		err := call(t.Context())
		_, hinted := errors.AsType[*connect.Error](err)
		if rejected := fault.Of(failureOf(t.Context(), err)).Scope == fault.ScopeTask; !hinted || rejected != (i >= 2) {
			t.Errorf("call %d: %v, want a rejection from the third on", i, err)
		}
	}
	if err := caller(s, health)(t.Context()); err != nil {
		t.Errorf("health check: %v", err)
	}
}

// A stream is admitted, counted and rejected as other calls are.
func TestStreams(t *testing.T) {
	server := newServer(t, ServerConfig{}, ingress.Config{RateLimit: ratelimit.Config{Rate: 1e-3, BurstSeconds: 1e3}})
	s := start(t, map[string]http.Handler{procedure: connect.NewServerStreamHandler(procedure, func(_ context.Context, req *connect.Request[message], out *connect.ServerStream[message]) error {
		for range 3 {
			if err := out.Send(req.Msg); err != nil {
				return err
			}
		}
		return nil
	}, connect.WithInterceptors(server))})
	client := newClient(t, ClientConfig{Egress: egress.Config{MaxInFlight: 1}})
	c := connect.NewClient[message, message](s.Client(), s.URL+procedure, connect.WithInterceptors(client))
	inFlight := func() (n int) {
		for _, stats := range client.Stats(time.Now()) {
			n += stats.InFlight.InFlight
		}
		return n
	}
	stream, err := c.CallServerStream(t.Context(), connect.NewRequest(wrapperspb.String("x")))
	if err != nil {
		t.Fatal(err)
	}
	if inFlight() != 1 {
		t.Errorf("%d in flight while a stream is open", inFlight())
	}
	if _, err := c.CallServerStream(t.Context(), connect.NewRequest(wrapperspb.String("x"))); !errors.Is(err, spillway.ErrRejected) || connect.CodeOf(err) != connect.CodeUnavailable {
		t.Errorf("a second stream: %v, want a rejection by the in-flight limit", err)
	}
	n := 0
	for stream.Receive() {
		n++
	}
	if err := errors.Join(stream.Err(), stream.Close()); err != nil || n != 3 {
		t.Errorf("%d messages, %v", n, err)
	}
	await(t, func() bool { return inFlight() == 0 })
	stream, err = c.CallServerStream(t.Context(), connect.NewRequest(wrapperspb.String("x")))
	if err != nil {
		t.Fatal(err)
	}
	if stream.Receive() || connect.CodeOf(stream.Err()) != connect.CodeUnavailable {
		t.Errorf("a stream beyond the rate limit of the server: %v", stream.Err())
	}
	_ = stream.Close()
	await(t, func() bool { return inFlight() == 0 })
}

// An Observer that panics about a stream does so in the goroutine of the caller, who can recover: when the stream begins, as it is
// rejected, and when it ends.
func TestStreamPanics(t *testing.T) {
	s := start(t, map[string]http.Handler{procedure: connect.NewServerStreamHandler(procedure,
		func(context.Context, *connect.Request[message], *connect.ServerStream[message]) error { return nil })})
	for _, rejects := range []bool{false, true} {
		config := ClientConfig{Egress: egress.Config{Observer: spillway.ObserverFunc(func(e spillway.Event) {
			if e.Rejected == rejects {
				panic("mine")
			}
		})}}
		config.Egress.MaxInFlight = 1
		client := newClient(t, config)
		c := connect.NewClient[message, message](s.Client(), s.URL+procedure, connect.WithInterceptors(client))
		if rejects {
			open, err := c.CallServerStream(t.Context(), connect.NewRequest(wrapperspb.String("x")))
			if err != nil {
				t.Fatal(err)
			}
			defer open.Close()
		}
		func() {
			defer func() {
				if got := recover(); got != "mine" {
					t.Errorf("rejects %v: recovered %v", rejects, got)
				}
			}()
			stream, err := c.CallServerStream(t.Context(), connect.NewRequest(wrapperspb.String("x")))
			if err != nil {
				t.Error(err)
				return
			}
			defer stream.Close()
			for stream.Receive() {
				t.Error("received a message")
			}
		}()
		if rejects {
			continue // one is open
		}
		for _, stats := range client.Stats(time.Now()) {
			if n := stats.InFlight.InFlight; n != 0 {
				t.Errorf("%d in flight", n)
			}
		}
	}
}

// await waits until a goroutine has done something.
func await(t *testing.T, done func() bool) {
	t.Helper()
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for deadline := time.Now().Add(time.Minute); !done(); <-tick.C {
		if time.Now().After(deadline) {
			t.Fatal("not done after a minute")
		}
	}
}

// Configuration that is wrong is an error that names the field.
func TestConfig(t *testing.T) {
	if _, err := NewClient(ClientConfig{MaxBackends: -1}); err == nil || errorPath(err) != "MaxBackends" {
		t.Errorf("%v", err)
	}
	if _, err := NewClient(ClientConfig{Egress: egress.Config{MaxInFlight: 1 << 40}}); err == nil || errorPath(err) != "Egress.MaxInFlight" {
		t.Errorf("%v", err)
	}
	s, err := NewServer(ServerConfig{})
	if err != nil || s.Close() != nil {
		t.Error(err)
	}
}

func errorPath(err error) string {
	e, _ := errors.AsType[*spillway.FieldError](err)
	if e == nil {
		return ""
	}
	return e.Path
}
