package spillgrpc

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/seed90641741/spillway"
	"github.com/seed90641741/spillway/egress"
	"github.com/seed90641741/spillway/fault"
	"github.com/seed90641741/spillway/inflight"
	"github.com/seed90641741/spillway/internal/hints"
	"github.com/seed90641741/spillway/retry"
)

// step is how a backend answers one attempt.
type step func(context.Context) error

// script answers one attempt after the other, and counts them.
func script(steps ...step) (answer func(context.Context) error, attempts *atomic.Int32) {
	attempts = new(atomic.Int32)
	return func(ctx context.Context) error {
		i := int(attempts.Add(1)) - 1
		if i >= len(steps) {
			return status.Error(codes.FailedPrecondition, "more attempts than expected")
		}
		return steps[i](ctx)
	}, attempts
}

func served(context.Context) error { return nil }

// says is a step that fails, with trailers given as pairs.
func says(code codes.Code, trailers ...string) step {
	return func(ctx context.Context) error {
		_ = grpc.SetTrailer(ctx, metadata.Pairs(trailers...))
		return status.Error(code, "script")
	}
}

// details is a step that fails with details.
func details(code codes.Code, with ...interface {
	Reset()
	String() string
	ProtoMessage()
}) step {
	return func(context.Context) error {
		s := status.New(code, "script")
		for _, d := range with {
			s = must(s.WithDetails(d))
		}
		return s.Err()
	}
}

func after(d time.Duration) *errdetails.RetryInfo {
	return &errdetails.RetryInfo{RetryDelay: durationpb.New(d)}
}

func TestClientConfig(t *testing.T) {
	for _, row := range []struct {
		config ClientConfig
		want   string
	}{
		{ClientConfig{}, ""},
		{ClientConfig{MaxBackends: -1}, "MaxBackends is -1, must be 0 or more"},
		{ClientConfig{Egress: egress.Config{ThrottleMode: 7}}, "spillgrpc: Egress.ThrottleMode is Mode(7)"},
		{ClientConfig{Egress: eager, Imported: must(ImportServiceConfig("{}"))}, "Egress.Retry is set, must be nil, or a strategy around Imported.Strategy, where Imported is given"},
	} {
		_, err := NewClient(row.config)
		if (err == nil) != (row.want == "") || err != nil && !strings.Contains(err.Error(), row.want) {
			t.Errorf("%+v: %v, want %q", row.config, err, row.want)
		}
	}
}

// retries are calls whose attempts end as the script says, at most three.
var retries = []struct {
	name       string
	idempotent bool
	steps      []step
	code       codes.Code
	attempts   int32
	took       time.Duration // at least, and at most a tenth more
}{
	{"success", false, []step{served}, codes.OK, 1, 0},
	{"an answer that is the caller's business", true, []step{says(codes.NotFound)}, codes.NotFound, 1, 0},
	{"and another", true, []step{says(codes.Aborted)}, codes.Aborted, 1, 0},
	{"failure, then success", true, []step{says(codes.Unavailable), says(codes.Internal), served}, codes.OK, 3, 0},
	{"the last failure is returned", true, []step{says(codes.Unavailable), says(codes.Unavailable), says(codes.Unknown)}, codes.Unknown, 3, 0},
	{"a call that may have been processed", false, []step{says(codes.Unavailable)}, codes.Unavailable, 1, 0},
	{"a failure that is final", true, []step{says(codes.DataLoss)}, codes.DataLoss, 1, 0},
	{"pushback", false, []step{says(codes.Unavailable, keyPushback, "30"), served}, codes.OK, 2, 30 * time.Millisecond},
	{"pushback, over quota", false, []step{says(codes.ResourceExhausted, keyPushback, "20"), served}, codes.OK, 2, 20 * time.Millisecond},
	{"over quota", true, []step{says(codes.ResourceExhausted)}, codes.ResourceExhausted, 1, 0},
	{"negative pushback", true, []step{says(codes.Unavailable, keyPushback, "-1")}, codes.Unavailable, 1, 0},
	{"pushback that is no number", true, []step{says(codes.Unavailable, keyPushback, "soon")}, codes.Unavailable, 1, 0},
	{"two pushbacks", true, []step{says(codes.Unavailable, keyPushback, "1", keyPushback, "2")}, codes.Unavailable, 1, 0},
	{"pushback beyond all patience", true, []step{says(codes.Unavailable, keyPushback, "86400000")}, codes.Unavailable, 1, 0},
	{"RetryInfo", false, []step{details(codes.Unavailable, after(50*time.Millisecond)), served}, codes.OK, 2, 50 * time.Millisecond},
	{"RetryInfo, negative", false, []step{details(codes.Unavailable, after(-time.Second))}, codes.Unavailable, 1, 0},
	{"don't retry", true, []step{details(codes.Unavailable, &errdetails.ErrorInfo{Domain: "spillway", Reason: "OVERLOADED_DONT_RETRY"})}, codes.Unavailable, 1, 0},
	{"don't retry, and a time", true, []step{details(codes.Unavailable, after(0), &errdetails.ErrorInfo{Domain: "spillway", Reason: "OVERLOADED_DONT_RETRY"})}, codes.Unavailable, 1, 0},
	{"another reason", true, []step{details(codes.Unavailable, &errdetails.ErrorInfo{Domain: "example.com", Reason: "OVERLOADED_DONT_RETRY"}), served}, codes.OK, 2, 0},
	{"deadline of the backend's own", true, []step{says(codes.DeadlineExceeded), served}, codes.OK, 2, 0},
}

func TestRetries(t *testing.T) {
	for _, row := range retries {
		t.Run(row.name, func(t *testing.T) {
			inBubble(t, func(t *testing.T) {
				answer, attempts := script(row.steps...)
				client := mustClient(t, ClientConfig{Egress: eager, Classify: classify(row.idempotent)})
				cc := open(t, &service{unary: answer}).dial(client.DialOptions()...)
				start := time.Now()
				err := call(t.Context(), cc)
				if status.Code(err) != row.code || attempts.Load() != row.attempts {
					t.Errorf("%v after %d attempts, want %v after %d", err, attempts.Load(), row.code, row.attempts)
				}
				if took := time.Since(start); took < row.took || took > row.took+row.took/10 {
					t.Errorf("took %v, want %v", took, row.took)
				}
				if n := inFlight(client); n != 0 {
					t.Errorf("%d left in flight", n)
				}
			})
		})
	}
}

// retryFive is a service config by which grpc itself makes five attempts.
const retryFive = `{"methodConfig":[{"name":[{}],"retryPolicy":{"maxAttempts":5,"initialBackoff":"0.001s","maxBackoff":"0.001s",
	"backoffMultiplier":1,"retryableStatusCodes":["UNAVAILABLE"]}}]}`

// TestRetriesDoNotMultiply expects three attempts of a channel that by itself would
// make five of each.
func TestRetriesDoNotMultiply(t *testing.T) {
	for _, row := range []struct {
		name string
		ours bool
		want int32
	}{{"grpc alone", false, 5}, {"with a Client", true, 3}} {
		t.Run(row.name, func(t *testing.T) {
			inBubble(t, func(t *testing.T) {
				var unary, output atomic.Int32
				site := open(t, &service{
					unary: func(context.Context) error { unary.Add(1); return status.Error(codes.Unavailable, "no") },
					output: func(*outputRequest, outputServer) error {
						output.Add(1)
						return status.Error(codes.Unavailable, "no")
					},
				})
				opts := []grpc.DialOption{grpc.WithDefaultServiceConfig(retryFive)}
				if row.ours {
					opts = append(opts, mustClient(t, ClientConfig{Egress: eager, Classify: idempotent}).DialOptions()...)
				}
				cc := site.dial(opts...)
				if err := call(t.Context(), cc); status.Code(err) != codes.Unavailable {
					t.Error(err)
				}
				if _, err := receive(t.Context(), cc); status.Code(err) != codes.Unavailable {
					t.Error(err)
				}
				if unary.Load() != row.want || output.Load() != row.want {
					t.Errorf("%d attempts of a call and %d of a stream, want %d", unary.Load(), output.Load(), row.want)
				}
			})
		})
	}
}

// TestErrors expects errors that both worlds understand.
func TestErrors(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		answer, _ := script(says(codes.Unavailable), says(codes.Unavailable), says(codes.Unavailable, keyPushback, "60000"), details(codes.NotFound, after(1)))
		client := mustClient(t, ClientConfig{Egress: eager, Classify: idempotent})
		cc := open(t, &service{unary: answer}).dial(client.DialOptions()...)

		err := call(t.Context(), cc)
		stopped, ok := errors.AsType[*retry.Error](err)
		if !ok || stopped.Attempts != 3 || stopped.Reason != retry.ReasonAttempts || !fault.Of(err).DontRetry {
			t.Errorf("%#v, want a retry.Error after three attempts", err)
		}
		if s := status.Convert(err); s.Code() != codes.Unavailable || !strings.Contains(s.Message(), "gave up after 3 attempts") {
			t.Errorf("status %v", s)
		}
		err = call(t.Context(), cc) // an answer, which is left as grpc made it
		if s := status.Convert(err); s.Code() != codes.NotFound || s.Message() != "script" || len(s.Details()) != 1 {
			t.Errorf("status %v, %v", s, s.Details())
		}
	})
}

// TestCallerLeaves expects the code of the context when the caller leaves, or its
// time ends, during an attempt or before a retry.
func TestCallerLeaves(t *testing.T) {
	blocks := func(ctx context.Context) error { <-ctx.Done(); return ctx.Err() }
	for _, row := range []struct {
		name   string
		answer step
		leave  func(context.Context) (context.Context, context.CancelFunc)
		want   codes.Code
	}{
		{"deadline, in an attempt", blocks, expires, codes.DeadlineExceeded},
		{"cancelled, in an attempt", blocks, cancels, codes.Canceled},
		{"cancelled, before a retry", says(codes.Unavailable, keyPushback, "20000"), cancels, codes.Canceled},
		{"deadline before a retry could be made", says(codes.Unavailable, keyPushback, "20000"), expires, codes.Unavailable},
	} {
		t.Run(row.name, func(t *testing.T) {
			inBubble(t, func(t *testing.T) {
				client := mustClient(t, ClientConfig{Egress: eager, Classify: idempotent})
				cc := open(t, &service{unary: row.answer}).dial(client.DialOptions()...)
				ctx, cancel := row.leave(t.Context())
				defer cancel()
				if err := call(ctx, cc); status.Code(err) != row.want {
					t.Errorf("%v, want %v", err, row.want)
				}
				if n := inFlight(client); n != 0 {
					t.Errorf("%d left in flight", n)
				}
			})
		})
	}
}

func expires(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeout(ctx, 10*time.Second)
}

func cancels(ctx context.Context) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancel(ctx)
	time.AfterFunc(10*time.Second, cancel)
	return ctx, cancel
}

// TestLocalRejection expects a rejection by a policy to be one in both worlds, and never
// sent nor retried.
func TestLocalRejection(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		l := must(inflight.New(inflight.Config{MaxInFlight: 1}))
		l.TryAcquire()
		c := eager
		c.InFlight = l
		answer, attempts := script()
		cc := open(t, &service{unary: answer}).dial(mustClient(t, ClientConfig{Egress: c, Classify: idempotent}).DialOptions()...)
		var finished []error
		err := call(t.Context(), cc, grpc.OnFinish(func(err error) { finished = append(finished, err) }))
		if status.Code(err) != codes.Unavailable || !errors.Is(err, spillway.ErrRejected) || attempts.Load() != 0 {
			t.Errorf("%v after %d attempts, want a local rejection", err, attempts.Load())
		}
		if _, err := receive(t.Context(), cc); status.Code(err) != codes.Unavailable || !errors.Is(err, spillway.ErrRejected) {
			t.Errorf("a stream: %v", err)
		}
		if len(finished) != 1 || !errors.Is(finished[0], spillway.ErrRejected) {
			t.Errorf("finished with %v, want the rejection, once", finished)
		}
		if d := l.Stats(time.Now()).RejectedTotal; d != 2 {
			t.Errorf("%d drops, want 2", d)
		}
	})
}

// TestOptions expects the options of the caller to see a call with retries as one.
func TestOptions(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		answer, _ := script(says(codes.Unavailable, "which", "first"), func(ctx context.Context) error {
			return grpc.SetTrailer(ctx, metadata.Pairs("which", "second"))
		})
		cc := open(t, &service{unary: answer}).dial(mustClient(t, ClientConfig{Egress: eager, Classify: idempotent}).DialOptions()...)
		var trailer metadata.MD
		finished := 0
		if err := call(t.Context(), cc, grpc.OnFinish(func(error) { finished++ }), grpc.Trailer(&trailer)); err != nil {
			t.Fatal(err)
		}
		if finished != 1 || len(trailer["which"]) != 1 || trailer["which"][0] != "second" {
			t.Errorf("finished %d times, trailer %v", finished, trailer)
		}
	})
}

// TestNoConnection expects a call without a connection to be known as unsent.
func TestNoConnection(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		site := open(t, &service{})
		client := mustClient(t, ClientConfig{Egress: eager})
		cc := site.dial(client.DialOptions()...)
		_ = site.listener.Close()
		err := call(t.Context(), cc)
		if f := fault.Of(errors.Unwrap(err)); status.Code(err) != codes.Unavailable || !f.Unprocessed && !fault.Of(err).Unprocessed {
			t.Errorf("%v: %+v, want Unavailable and not processed", err, f)
		}
	})
}

// TestOutgoing expects what each attempt says of itself.
func TestOutgoing(t *testing.T) {
	sheddable := spillway.WithCriticality(t.Context(), spillway.Sheddable)
	forwarded := metadata.AppendToOutgoingContext(t.Context(), keyCriticality, "critical_plus", keyAttempts, "7", "other", "stays")
	for _, row := range []struct {
		name     string
		ctx      context.Context
		external bool
		first    string // label, number and other of the first attempt
		second   string
	}{
		{"nothing to say", t.Context(), false, "[] [] []", "[] [1] []"},
		{"of the context", sheddable, false, "[SHEDDABLE] [] []", "[SHEDDABLE] [1] []"},
		{"of the caller", forwarded, false, "[critical_plus] [] [stays]", "[critical_plus] [1] [stays]"},
		{"the caller's before the context's", spillway.WithCriticality(forwarded, spillway.Sheddable), false, "[critical_plus] [] [stays]", "[critical_plus] [1] [stays]"},
		{"to others", sheddable, true, "[] [] []", "[] [] []"},
		{"to others, of the caller", forwarded, true, "[] [] [stays]", "[] [] [stays]"},
	} {
		for number, want := range []string{row.first, row.second} {
			md, _ := metadata.FromOutgoingContext(dress(row.ctx, nil, number, row.external))
			if got := join(md[keyCriticality], md[keyAttempts], md["other"]); got != want {
				t.Errorf("%s, attempt %d: %s, want %s", row.name, number, got, want)
			}
		}
	}
	for _, row := range []struct {
		ctx  context.Context
		want spillway.Criticality
	}{
		{forwarded, spillway.CriticalPlus},
		{sheddable, spillway.Sheddable},
		{metadata.AppendToOutgoingContext(sheddable, keyCriticality, "nonsense"), spillway.Sheddable},
	} {
		if got := spillway.CriticalityFrom(adopt(row.ctx)); got != row.want {
			t.Errorf("the class is %v, want %v", got, row.want)
		}
	}
}

func join(lists ...[]string) string {
	var all []string
	for _, l := range lists {
		all = append(all, "["+strings.Join(l, " ")+"]")
	}
	return strings.Join(all, " ")
}

// TestBackends expects each target to have separate policies.
func TestBackends(t *testing.T) {
	client := mustClient(t, ClientConfig{})
	for _, target := range []string{"passthrough:///a", "passthrough:///b", "passthrough:///a"} {
		cc := dial(t, target)
		if err := client.unary(t.Context(), methodUnary, nil, nil, cc, invoke); err != nil {
			t.Fatal(err)
		}
	}
	if n := len(client.Stats(time.Now())); n != 2 {
		t.Errorf("%d backends, want 2", n)
	}
}

func TestClassifyByProto(t *testing.T) {
	// No method of the services available here has an idempotency_level, so the test checks
	// that none is found.
	for _, method := range []string{methodUnary, "/no.such.Service/Method", "malformed", ""} {
		for range 2 {
			if c := ClassifyByProto(t.Context(), method); c.Key != method || c.Idempotent || c.Kind != spillway.KindUnknown {
				t.Errorf("%q: %+v", method, c)
			}
		}
	}
	if _, ok := methods.Load(methodUnary); !ok {
		t.Error("what was found is not kept")
	}
	if _, ok := methods.Load("/no.such.Service/Method"); ok {
		t.Error("what was not found is kept")
	}
}

// FuzzJudge expects any answer of a backend to be understood in a way that is safe.
func FuzzJudge(f *testing.F) {
	f.Add(uint32(14), "overloaded", "30", true, int64(1), int32(5), false)
	f.Add(uint32(14), "", "-1", true, int64(-1), int32(0), true)
	f.Add(uint32(8), "larger than max", "99999999999999999999", true, int64(1<<62), int32(-7), false)
	f.Add(uint32(8), "overloaded", "-0", true, int64(1), int32(0), false) // zero, with a sign that says no
	f.Fuzz(func(t *testing.T, code uint32, text, push string, pushed bool, seconds int64, nanos int32, dont bool) {
		s := status.New(codes.Code(code), text)
		infos := []interface {
			Reset()
			String() string
			ProtoMessage()
		}{&errdetails.RetryInfo{RetryDelay: &durationpb.Duration{Seconds: seconds, Nanos: nanos}}}
		if dont {
			infos = append(infos, &errdetails.ErrorInfo{Domain: errorDomain, Reason: reasonDontRetry})
		}
		for _, d := range infos {
			if with, err := s.WithDetails(d); err == nil {
				s = with
			}
		}
		trailer := metadata.MD{}
		if pushed {
			trailer[keyPushback] = []string{push}
		}
		if s.Err() == nil {
			return
		}
		failure := judge(context.Background(), s.Err(), trailer, nil)
		if failure == nil {
			return
		}
		got := fault.Of(failure)
		if got.RetryAfter < 0 || got.RetryAfter > hints.Max {
			t.Errorf("a hint of %v", got.RetryAfter)
		}
		if (dont || pushed && strings.HasPrefix(push, "-")) && got.Retryable(true) {
			t.Errorf("%v is retried, against the will of the backend", got)
		}
	})
}
