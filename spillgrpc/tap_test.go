package spillgrpc

import (
	"context"
	"regexp"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/grpc/tap"

	"github.com/seed90641741/spillway"
	"github.com/seed90641741/spillway/ingress"
)

// TestTap expects a call rejected before the interceptors once one was rejected by
// them, and left to them where the answer needs a trailer or the timer would be
// one too many.
func TestTap(t *testing.T) {
	for _, row := range []struct {
		name     string
		gates    ingress.Config
		timeout  time.Duration // 0: none
		early    bool
		push     bool
		rejected uint64 // of the second call alone
	}{
		{"without a deadline", swamped, 0, true, false, 1},
		{"with one", swamped, time.Minute, true, false, 1},
		{"with one too far away", swamped, 10 * time.Hour, false, true, 1},
		{"don't retry", angry, 0, false, true, 1},
	} {
		t.Run(row.name, func(t *testing.T) {
			inBubble(t, func(t *testing.T) {
				s := mustServer(t, row.gates, ServerConfig{})
				seen := 0
				count := grpc.ChainUnaryInterceptor(func(ctx context.Context, req any, _ *grpc.UnaryServerInfo, handler grpc.UnaryHandler) (any, error) {
					seen++
					return handler(ctx, req)
				})
				cc := open(t, &service{}, append([]grpc.ServerOption{count}, s.Options()...)...).dial()
				ctx := metadata.AppendToOutgoingContext(t.Context(), keyAttempts, "3")
				if row.timeout > 0 {
					var cancel context.CancelFunc
					ctx, cancel = context.WithTimeout(ctx, row.timeout)
					defer cancel()
				}
				_ = call(ctx, cc)
				before := rejectedOf(s)
				var trailer metadata.MD
				err := call(ctx, cc, grpc.Trailer(&trailer))
				if status.Code(err) != codes.Unavailable || (seen == 1) != row.early || (len(trailer[keyPushback]) == 1) != row.push {
					t.Errorf("%v with %v after %d calls of the interceptors, want early %v, pushback %v", err, trailer, seen, row.early, row.push)
				}
				want := "RetryInfo ErrorInfo spillway/OVERLOADED task" // whether or not there is a trailer
				if row.name == "don't retry" {
					want = "ErrorInfo spillway/OVERLOADED_DONT_RETRY service"
				}
				if got := regexp.MustCompile(`RetryInfo \S+`).ReplaceAllString(describe(status.Convert(err)), "RetryInfo"); got != want {
					t.Errorf("details %s, want %s", got, want)
				}
				if n := rejectedOf(s) - before; n != row.rejected {
					t.Errorf("counted as %d rejections, want %d", n, row.rejected)
				}
			})
		})
	}
}

func rejectedOf(s *Server) (n uint64) {
	for _, c := range s.ingress.Stats(time.Now()).Shed.Classes {
		n += c.RejectedTotal
	}
	return n
}

// TestTapLooks expects the tap to look at a thousand calls after the last rejection,
// and at none before.
func TestTapLooks(t *testing.T) {
	s := mustServer(t, busy, ServerConfig{Classify: func(ctx context.Context, _ string) spillway.Call {
		return spillway.Call{Criticality: spillway.CriticalPlus}
	}})
	ask := func(kv ...string) error {
		_, err := s.Tap(metadata.NewIncomingContext(t.Context(), metadata.Pairs(kv...)), &tap.Info{FullMethodName: methodUnary})
		return err
	}
	if err := ask(keyCriticality, "SHEDDABLE"); err != nil {
		t.Errorf("before the first rejection: %v", err)
	}
	s.looks.Store(lookOn)
	if err := ask(keyCriticality, "SHEDDABLE"); status.Code(err) != codes.Unavailable {
		t.Errorf("%v, want a rejection", err)
	}
	for range lookOn {
		if err := ask(); err != nil {
			t.Fatal(err)
		}
	}
	if n := s.looks.Load(); n != 0 {
		t.Errorf("%d looks are left", n)
	}
	if err := ask(keyCriticality, "SHEDDABLE"); err != nil {
		t.Errorf("a thousand calls after the last rejection: %v", err)
	}
}

// TestTimers has calls rejected at the maximum rate, with all kinds of deadlines, and expects
// the number of remaining timers to stay within its bound.
func TestTimers(t *testing.T) {
	for _, deadline := range []time.Duration{time.Millisecond, time.Second, 10 * time.Second, time.Hour} {
		inBubble(t, func(t *testing.T) {
			var all timers
			var left []time.Time
			most := 0
			for range 300 {
				now := time.Now()
				end := now.Add(deadline)
				ctx, cancel := context.WithDeadline(t.Context(), end)
				for range 1000 { // which takes no time
					if all.leave(ctx, now) {
						left = append(left, end)
					}
				}
				cancel()
				most = max(most, len(left))
				time.Sleep(10 * time.Millisecond)
				for len(left) > 0 && !left[0].After(time.Now()) {
					left = left[1:]
				}
			}
			if most == 0 || most > 2*maxTimers {
				t.Errorf("deadlines of %v leave %d timers behind, want some, and at most %d", deadline, most, 2*maxTimers)
			}
		})
	}
	var all timers
	if !all.leave(t.Context(), time.Now()) {
		t.Error("a call without a deadline has no timer")
	}
	ctx, cancel := context.WithTimeout(t.Context(), 1<<62)
	defer cancel()
	if all.leave(ctx, time.Now()) {
		t.Error("a timer that never fires was left behind")
	}
}

// TestTimersAfterAStepBack: a clock that is set back must not stop timers from being left
// behind until it is where it was.
func TestTimersAfterAStepBack(t *testing.T) {
	var all timers
	now := time.Now()
	ctx, cancel := context.WithDeadline(t.Context(), now.Add(time.Hour))
	defer cancel()
	left := 0
	for all.leave(ctx, now) {
		left++
	}
	if left == 0 {
		t.Fatal("none was left behind")
	}
	if !all.leave(ctx, now.Add(-time.Hour)) {
		t.Error("none is left behind after a step back")
	}
}

// What code of the user panics with in the tap goes on in the interceptors of the same call, where another one can recover, also if the
// call is exempt by then.
func TestPanicInTheTap(t *testing.T) {
	for _, exempt := range []bool{false, true} {
		inBubble(t, func(t *testing.T) {
			asked := 0
			s := mustServer(t, ingress.Config{}, ServerConfig{Exempt: func(string) bool {
				if asked++; asked == 1 {
					panic("user")
				}
				return exempt
			}})
			s.looks.Store(lookOn)
			var recovered any
			guard := grpc.ChainUnaryInterceptor(func(ctx context.Context, req any, _ *grpc.UnaryServerInfo, next grpc.UnaryHandler) (resp any, err error) {
				defer func() {
					if recovered = recover(); recovered != nil {
						err = status.Error(codes.Internal, "recovered")
					}
				}()
				return next(ctx, req)
			})
			cc := open(t, &service{}, append([]grpc.ServerOption{guard}, s.Options()...)...).dial()
			if err := call(t.Context(), cc); status.Code(err) != codes.Internal || recovered != "user" {
				t.Errorf("%v, recovered %v", err, recovered)
			}
			if err := call(t.Context(), cc); err != nil {
				t.Errorf("the next call: %v", err)
			}
		})
	}
}
