package layers

import (
	"context"
	"errors"
	"io"
	"math/rand/v2"
	"net/http"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/seed90641741/spillway/ingress"
	"github.com/seed90641741/spillway/shed"
	"github.com/seed90641741/spillway/spillgrpc"
	"github.com/seed90641741/spillway/spillhttp"
)

// get sends a GET request and returns the status of the answer.
func get(ctx context.Context, client http.RoundTripper, address string) (int, error) {
	r := must(http.NewRequestWithContext(ctx, http.MethodGet, "http://"+address+"/", nil))
	resp, err := client.RoundTrip(r)
	if err != nil {
		return 0, err
	}
	defer resp.Body.Close()
	_, err = io.Copy(io.Discard, resp.Body)
	return resp.StatusCode, err
}

// A chain is a service of HTTP, which calls one of gRPC, which calls one of HTTP.
type chain struct {
	seen    [3]atomic.Int64 // calls that arrived, from top to bottom
	client  http.RoundTripper
	address string
}

// patient are servers that reject nothing because the machine that runs the test is busy.
var patient = ingress.Config{Shed: shed.Config{MaxWait: 10 * time.Second}}

// newChain returns a chain with this bottom. The service in the middle returns fails if the
// one below has not served its call.
func newChain(t *testing.T, bottom http.HandlerFunc, fails error) *chain {
	t.Helper()
	n, x := newNetwork(t, false), new(chain)
	handler := func(h http.HandlerFunc) http.Handler {
		return must(spillhttp.NewHandler(h, spillhttp.HandlerConfig{Ingress: newIngress(t, patient)}))
	}
	client := func() http.RoundTripper {
		return must(spillhttp.NewTransport(spillhttp.TransportConfig{Base: n.transport(), Egress: undaunted()}))
	}

	last := n.serve(handler(func(w http.ResponseWriter, r *http.Request) {
		x.seen[2].Add(1)
		bottom(w, r)
	}))
	toLast := client()

	middle := n.serveGRPC(&service{unary: func(ctx context.Context) error {
		x.seen[1].Add(1)
		if code, err := get(ctx, toLast, last); err != nil || code != http.StatusOK {
			return fails
		}
		return nil
	}}, spillgrpc.ServerConfig{Ingress: newIngress(t, patient)})
	calls := must(spillgrpc.NewClient(spillgrpc.ClientConfig{Egress: undaunted(), Classify: idempotent}))
	cc := n.channel("passthrough:///"+middle, calls.DialOptions()...)

	x.address = n.serve(handler(func(w http.ResponseWriter, r *http.Request) {
		x.seen[0].Add(1)
		if call(r.Context(), cc) != nil {
			w.WriteHeader(http.StatusServiceUnavailable)
		}
	}))
	x.client = client()
	return x
}

func (x *chain) call(t *testing.T) int {
	t.Helper()
	code, err := get(t.Context(), x.client, x.address)
	if err != nil {
		t.Fatal(err)
	}
	return code
}

// TestChainOneLayerRetries: where the bottom always fails, only the layer above it retries,
// whatever error the one in the middle returns.
func TestChainOneLayerRetries(t *testing.T) {
	for name, middle := range map[string]error{
		"its own error": errors.New("sorry"),
		"UNAVAILABLE":   status.Error(codes.Unavailable, "sorry"),
		"INTERNAL":      status.Error(codes.Internal, "sorry"),
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				x := newChain(t, func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusServiceUnavailable) }, middle)
				if code := x.call(t); code != http.StatusServiceUnavailable {
					t.Errorf("the answer is %d", code)
				}
				if a, b, c := x.seen[0].Load(), x.seen[1].Load(), x.seen[2].Load(); a != 1 || b != 1 || c != 3 {
					t.Errorf("%d, %d and %d calls from top to bottom", a, b, c)
				}
			})
		})
	}
}

// TestChainSucceeds: where the bottom fails half of the time, as many calls are served as
// with one layer that retries, and the other layers see one for each call.
func TestChainSucceeds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const calls = 2000
		random := rand.New(rand.NewPCG(7, 7))
		x := newChain(t, func(w http.ResponseWriter, _ *http.Request) {
			if random.Float64() < 0.5 {
				w.WriteHeader(http.StatusServiceUnavailable)
			}
		}, status.Error(codes.Unavailable, "sorry"))
		served := 0
		for range calls {
			if x.call(t) == http.StatusOK {
				served++
			}
		}
		// Three attempts: 7/8, with a standard deviation of 0.0074; and 1 + 1/2 + 1/4 attempts.
		if share := float64(served) / calls; share < .845 || share > .905 {
			t.Errorf("%.4f are served, want 0.875", share)
		}
		if a, b, c := x.seen[0].Load(), x.seen[1].Load(), float64(x.seen[2].Load())/calls; a != calls || b != calls || c < 1.67 || c > 1.83 {
			t.Errorf("%d, %d and %.3f times as many calls from top to bottom", a, b, c)
		}
	})
}
