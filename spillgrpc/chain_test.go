package spillgrpc

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	pb "google.golang.org/grpc/interop/grpc_testing"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"github.com/seed90641741/spillway"
	"github.com/seed90641741/spillway/egress"
	"github.com/seed90641741/spillway/fault"
	"github.com/seed90641741/spillway/ingress"
	"github.com/seed90641741/spillway/retry"
	"github.com/seed90641741/spillway/spillhttp"
)

// undaunted is a client of which only attempts bound what is sent.
func undaunted() egress.Config {
	return egress.Config{
		ThrottleMode: spillway.Off,
		Retry:        must(retry.NewBudgeted(retry.BudgetedConfig{Budget: retry.Unlimited{}})),
	}
}

// roundTripper sends requests to a handler of this process.
type roundTripper func(*http.Request) *http.Response

func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r), nil }

func to(h http.Handler) http.RoundTripper {
	return roundTripper(func(r *http.Request) *http.Response {
		w := httptest.NewRecorder()
		in := httptest.NewRequest(r.Method, "http://below/", nil)
		in.Header = r.Header.Clone()
		h.ServeHTTP(w, in)
		return w.Result()
	})
}

func get(ctx context.Context, client http.RoundTripper) (int, error) {
	r := must(http.NewRequestWithContext(ctx, http.MethodGet, "http://below/", nil))
	resp, err := client.RoundTrip(r)
	if err != nil {
		return 0, err
	}
	_, _ = io.Copy(io.Discard, resp.Body)
	resp.Body.Close()
	return resp.StatusCode, nil
}

// TestOneLayerRetries sends calls through HTTP, gRPC and HTTP, to a bottom that always
// fails: only the layer above it retries, whichever error the one in the middle returns.
func TestOneLayerRetries(t *testing.T) {
	for name, middle := range map[string]error{
		"its own error": errors.New("sorry"), "UNAVAILABLE": status.Error(codes.Unavailable, "sorry"), "INTERNAL": status.Error(codes.Internal, "sorry"),
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T) {
				var seen [3]atomic.Int64
				handler := func(place int, next http.HandlerFunc) http.Handler {
					gates := must(ingress.New(ingress.Config{Shed: patient}))
					t.Cleanup(func() { _ = gates.Close() })
					return must(spillhttp.NewHandler(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
						seen[place].Add(1)
						next(w, r)
					}), spillhttp.HandlerConfig{Ingress: gates}))
				}
				bottom := handler(2, func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusServiceUnavailable) })
				toBottom := must(spillhttp.NewTransport(spillhttp.TransportConfig{Base: to(bottom), Egress: undaunted()}))

				server := mustServer(t, ingress.Config{Shed: patient}, ServerConfig{})
				s := open(t, &service{unary: func(ctx context.Context) error {
					seen[1].Add(1)
					if code, err := get(ctx, toBottom); err != nil || code != http.StatusOK {
						return middle
					}
					return nil
				}}, server.Options()...)
				client := mustClient(t, ClientConfig{Egress: undaunted(), Classify: idempotent})
				cc := s.dial(client.DialOptions()...)

				top := handler(0, func(w http.ResponseWriter, r *http.Request) {
					if _, err := pb.NewTestServiceClient(cc).UnaryCall(r.Context(), &pb.SimpleRequest{}); err != nil {
						w.WriteHeader(http.StatusServiceUnavailable)
					}
				})
				caller := must(spillhttp.NewTransport(spillhttp.TransportConfig{Base: to(top), Egress: undaunted()}))
				if code, err := get(t.Context(), caller); code != http.StatusServiceUnavailable || err != nil {
					t.Errorf("%d, %v", code, err)
				}
				if a, b, c := seen[0].Load(), seen[1].Load(), seen[2].Load(); a != 1 || b != 1 || c != 3 {
					t.Errorf("%d, %d and %d calls from top to bottom", a, b, c)
				}
			})
		})
	}
}

// TestFinalAnswers: what a handler's error says to its caller, by whether a call for it was
// given up. What another server said of itself is not passed on.
func TestFinalAnswers(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		busy := mustServer(t, swamped, ServerConfig{})
		below := open(t, &service{}, busy.Options()...)
		for _, row := range []struct {
			name     string
			attempts int
			returns  func(error) error
			final    bool
		}{
			{"its error", 3, func(err error) error { return err }, true},
			{"its own", 3, func(error) error { return status.Error(codes.Internal, "sorry") }, true},
			{"an answer", 3, func(error) error { return status.Error(codes.NotFound, "no such thing") }, false},
			{"no error", 3, func(error) error { return nil }, false},
			{"its error, without retries", 1, func(err error) error { return err }, false},
		} {
			strategy := must(retry.NewBudgeted(retry.BudgetedConfig{Attempts: row.attempts, Budget: retry.Unlimited{}}))
			client := mustClient(t, ClientConfig{Egress: egress.Config{ThrottleMode: spillway.Off, Retry: strategy}, Classify: idempotent})
			cc := below.dial(client.DialOptions()...)
			_ = call(t.Context(), cc) // which may be let in
			server := mustServer(t, ingress.Config{Shed: patient}, ServerConfig{})
			front := open(t, &service{unary: func(ctx context.Context) error { return row.returns(call(ctx, cc)) }}, server.Options()...).dial()
			var trailer metadata.MD
			err := call(t.Context(), front, grpc.Trailer(&trailer))
			want := ""
			if row.final {
				want = "ErrorInfo spillway/OVERLOADED_DONT_RETRY"
			}
			if got := describe(status.Convert(err)); got != want || (len(trailer[keyPushback]) == 1) != row.final || len(trailer[keyScope]) > 0 {
				t.Errorf("%s: %v, details %q, trailer %v", row.name, err, got, trailer)
			}
			if f := fault.Of(judge(t.Context(), err, trailer, nil)); err != nil && f.DontRetry != row.final {
				t.Errorf("%s: a client takes it for %+v", row.name, f)
			}
		}
	})
}
