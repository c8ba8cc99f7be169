package benchmarks

import (
	"context"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/failsafe-go/failsafe-go/adaptivethrottler"
	failsafebudget "github.com/failsafe-go/failsafe-go/budget"
	"github.com/failsafe-go/failsafe-go/bulkhead"
	"github.com/failsafe-go/failsafe-go/failsafehttp"
	"github.com/hashicorp/go-retryablehttp"

	"github.com/seed90641741/spillway/spillhttp"
)

// An instant is a server that answers at once, with status 503 if fail says so
// of the request's number.
type instant struct {
	requests int
	fail     func(n int) bool
}

func (s *instant) RoundTrip(req *http.Request) (*http.Response, error) {
	s.requests++
	status := http.StatusOK
	if s.fail != nil && s.fail(s.requests) {
		status = http.StatusServiceUnavailable
	}
	return &http.Response{StatusCode: status, Header: http.Header{}, Body: io.NopCloser(strings.NewReader("hello")), Request: req}, nil
}

// A transportImpl puts policies in front of a server.
type transportImpl = impl[func(*instant) http.RoundTripper]

// stacked have retries, a throttle and a limit in flight.
var stacked = []transportImpl{
	{"spillway", func(tb testing.TB) func(*instant) http.RoundTripper {
		return func(s *instant) http.RoundTripper {
			return must(spillhttp.NewTransport(spillhttp.TransportConfig{Base: s}))(tb)
		}
	}},
	{"failsafe", func(testing.TB) func(*instant) http.RoundTripper { return failsafeTransport }},
}

// retrying have retries.
var retrying = append(stacked[:2:2], transportImpl{"retryablehttp", func(testing.TB) func(*instant) http.RoundTripper {
	return func(s *instant) http.RoundTripper {
		client := retryablehttp.NewClient()
		client.HTTPClient = &http.Client{Transport: s}
		client.Logger = nil
		client.RetryMax = 2
		client.RetryWaitMin = 0
		return &retryablehttp.RoundTripper{Client: client}
	}
}})

// transports are all, with none at the end.
var transports = append(retrying[:3:3], transportImpl{"bare", func(testing.TB) func(*instant) http.RoundTripper {
	return func(s *instant) http.RoundTripper { return s }
}})

// failsafeTransport has the policies of ours, with their numbers: three
// attempts, retries at most 10 %, K = 2, 1024 in flight, and no retry of what was
// rejected here.
func failsafeTransport(s *instant) http.RoundTripper {
	retries := failsafehttp.NewRetryPolicyBuilder().
		WithMaxAttempts(3).
		WithBudget(failsafebudget.NewBuilder().WithMaxRate(.1).Build()).
		AbortOnErrors(adaptivethrottler.ErrExceeded, bulkhead.ErrFull).
		Build()
	throttle := adaptivethrottler.NewBuilder[*http.Response]().
		HandleIf(func(r *http.Response, err error) bool {
			return err != nil || r.StatusCode == http.StatusTooManyRequests || r.StatusCode == http.StatusServiceUnavailable
		}).
		WithFailureRateThreshold(.5, 10, throttleWindow).
		Build()
	return failsafehttp.NewRoundTripper(s, retries, throttle, bulkhead.New[*http.Response](limit))
}

func BenchmarkHTTPSuccess(b *testing.B) {
	bench(b, transports, func(b *testing.B, front func(*instant) http.RoundTripper) {
		rt, req := front(&instant{}), newRequest(b, b.Context())
		for b.Loop() {
			if status, err := get(rt, req); status != http.StatusOK {
				b.Fatal(status, err)
			}
		}
	})
}

// TestTransports expects a failed request of an otherwise healthy server retried,
// and a server that is down spared by each transport with a throttle.
func TestTransports(t *testing.T) {
	each(t, "one failure", retrying, func(t *testing.T, front func(*instant) http.RoundTripper) {
		server := &instant{fail: func(n int) bool { return n == 100 }}
		rt, req := front(server), newRequest(t, t.Context())
		for range 100 {
			if status, err := get(rt, req); status != http.StatusOK {
				t.Fatalf("status %d, %v, want 200", status, err)
			}
		}
		if server.requests != 101 {
			t.Errorf("the server saw %d requests of 100 calls and a retry, want 101", server.requests)
		}
	})
	each(t, "down", stacked, func(t *testing.T, front func(*instant) http.RoundTripper) {
		server := &instant{fail: func(int) bool { return true }}
		rt, req := front(server), newRequest(t, t.Context())
		for range 1000 {
			get(rt, req)
		}
		if server.requests > 500 {
			t.Errorf("a server that is down saw %d requests of 1000 calls, want at most 500", server.requests)
		}
	})
}

func newRequest(tb testing.TB, ctx context.Context) *http.Request {
	tb.Helper()
	return must(http.NewRequestWithContext(ctx, http.MethodGet, "http://backend.example/", http.NoBody))(tb)
}

// get makes the request, reads the answer to its end, and returns its status.
func get(rt http.RoundTripper, req *http.Request) (status int, err error) {
	resp, err := rt.RoundTrip(req)
	if err != nil {
		return 0, err
	}
	defer resp.Body.Close()
	_, err = io.Copy(io.Discard, resp.Body)
	return resp.StatusCode, err
}
