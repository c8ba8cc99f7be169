package spillhttp

import (
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/seed90641741/spillway"
	"github.com/seed90641741/spillway/inflight"
)

// TestRetries plays calls whose attempts end as the script says.
func TestRetries(t *testing.T) {
	type steps = []func(*http.Request) (*http.Response, error)
	broken := errors.New("broken pipe")
	for _, row := range []struct {
		name, method string
		steps        steps
		status       int // 0: an error that matches err
		err          error
	}{
		{"success", "GET", steps{status(200)}, 200, nil},
		{"an answer that is the caller's business", "GET", steps{status(404)}, 404, nil},
		{"failure, then success", "GET", steps{status(503), status(502), status(200)}, 200, nil},
		{"the last failure is returned", "GET", steps{status(503), status(503), status(500)}, 500, nil},
		{"no connection, then success", "GET", steps{fails(broken), status(200)}, 200, nil},
		{"no connection at last", "GET", steps{status(503), status(503), fails(broken)}, 0, broken},
		{"a failure that is final", "GET", steps{status(501)}, 501, nil},
		{"a write that may have been processed", "POST", steps{status(503)}, 503, nil},
		{"a write that was not", "POST", steps{status(503, "x-envoy-overloaded", "true"), status(201)}, 201, nil},
		{"a write that says it is safe", "POST", steps{status(500, "x-should-retry", "true"), status(201)}, 201, nil},
		{"don't retry", "GET", steps{status(503, "x-should-retry", "false")}, 503, nil},
		{"over quota", "GET", steps{status(429)}, 429, nil},
		{"over quota, with a hint", "POST", steps{status(429, "retry-after-ms", "1"), status(200)}, 200, nil},
		{"a hint beyond all patience", "GET", steps{status(503, "retry-after", "86400")}, 503, nil},
	} {
		t.Run(row.name, func(t *testing.T) {
			inBubble(t, func(t *testing.T) {
				rt := mustTransport(t, TransportConfig{Base: script(row.steps...), Egress: eager})
				resp, err := rt.RoundTrip(newRequest(t, t.Context(), row.method, nil))
				if row.status == 0 {
					if !errors.Is(err, row.err) {
						t.Fatalf("error %v, want %v", err, row.err)
					}
					return
				}
				if err != nil || resp.StatusCode != row.status {
					t.Fatalf("%v, %v; want %d", resp, err, row.status)
				}
				if got := readAll(t, resp); got != http.StatusText(row.status) {
					t.Errorf("body %q", got)
				}
				if n := inFlight(rt); n != 0 {
					t.Errorf("%d left in flight", n)
				}
			})
		})
	}
}

// TestReplay: a body goes out again only by GetBody, and is never buffered.
func TestReplay(t *testing.T) {
	for _, row := range []struct {
		name     string
		body     func() io.Reader
		attempts int
	}{
		{"none", func() io.Reader { return nil }, 2},
		{"NoBody", func() io.Reader { return http.NoBody }, 2},
		{"with GetBody", func() io.Reader { return strings.NewReader("payload") }, 2},
		{"a stream", func() io.Reader { return io.MultiReader(strings.NewReader("payload")) }, 1},
	} {
		for name, first := range map[string]func(*http.Request) (*http.Response, error){
			"answer": status(503, "x-should-retry", "true"), "error": fails(errors.New("broken")),
		} {
			t.Run(row.name+"/"+name, func(t *testing.T) {
				var bodies []string
				var requests []*http.Request
				base := baseFunc(func(req *http.Request) (*http.Response, error) {
					requests = append(requests, req)
					if req.Body != nil {
						b, _ := io.ReadAll(req.Body)
						bodies = append(bodies, string(b))
					}
					if len(requests) == 1 {
						return first(req)
					}
					return answer(req, 200, "done"), nil
				})
				rt := mustTransport(t, TransportConfig{Base: base, Egress: eager})
				req := newRequest(t, t.Context(), http.MethodPut, row.body())
				resp, err := rt.RoundTrip(req)
				if len(requests) != row.attempts {
					t.Fatalf("%d attempts, want %d", len(requests), row.attempts)
				}
				if row.attempts == 1 {
					if (err == nil) != (name == "answer") {
						t.Errorf("error %v, want the first attempt's end as it was", err)
					}
					return
				}
				if err != nil || resp.Request != req || requests[0] == requests[1] {
					t.Errorf("%v, answer to the caller's own request: %v, attempts with requests of their own: %v",
						err, resp.Request == req, requests[0] != requests[1])
				}
				for _, b := range bodies {
					if want := "payload"; row.name == "with GetBody" && b != want {
						t.Errorf("an attempt had the body %q, want %q", b, want)
					}
				}
			})
		}
	}
}

// TestGetBodyFails: if the first answer is still there, it is returned.
func TestGetBodyFails(t *testing.T) {
	gone := errors.New("file is gone")
	request := func(t *testing.T) *http.Request {
		req := newRequest(t, t.Context(), http.MethodPut, strings.NewReader("payload"))
		req.GetBody = func() (io.ReadCloser, error) { return nil, gone }
		return req
	}
	t.Run("at once", func(t *testing.T) {
		rt := mustTransport(t, TransportConfig{Base: script(status(503)), Egress: eager})
		resp, err := rt.RoundTrip(request(t))
		if err != nil || resp.StatusCode != 503 || readAll(t, resp) != "Service Unavailable" {
			t.Errorf("%v, %v; want the 503", resp, err)
		}
	})
	t.Run("after a wait", func(t *testing.T) {
		inBubble(t, func(t *testing.T) {
			rt := mustTransport(t, TransportConfig{Base: script(status(503, "retry-after", "10")), Egress: eager})
			_, err := rt.RoundTrip(request(t))
			lost(t, err, gone)
		})
	})
}

// tracked is the body of a request that reports whether it was closed.
type tracked struct {
	io.Reader
	closed bool
}

func (b *tracked) Close() error { b.closed = true; return nil }

// TestLostAnswer: the retry was decided on, so the answer is gone, and then the
// caller leaves, or another call takes the place in flight.
func TestLostAnswer(t *testing.T) {
	later := status(503, "retry-after", "10")
	t.Run("caller leaves", func(t *testing.T) {
		inBubble(t, func(t *testing.T) {
			ctx, cancel := context.WithCancel(t.Context())
			time.AfterFunc(time.Second, cancel)
			rt := mustTransport(t, TransportConfig{Base: script(later), Egress: eager})
			_, err := rt.RoundTrip(newRequest(t, ctx, "GET", nil))
			lost(t, err, context.Canceled)
		})
	})
	t.Run("rejected here", func(t *testing.T) {
		inBubble(t, func(t *testing.T) {
			config := eager
			config.MaxInFlight = 1
			rt := mustTransport(t, TransportConfig{Base: script(later, status(200)), Egress: config})
			time.AfterFunc(time.Second, func() { // while the first call waits
				resp, err := rt.RoundTrip(newRequest(t, t.Context(), "GET", nil))
				if err != nil {
					t.Error(err)
					return
				}
				time.AfterFunc(time.Minute, func() { resp.Body.Close() })
			})
			_, err := rt.RoundTrip(newRequest(t, t.Context(), "GET", nil))
			lost(t, err, spillway.ErrRejected)
			time.Sleep(2 * time.Minute)
			if n := inFlight(rt); n != 0 {
				t.Errorf("%d left in flight", n)
			}
		})
	})
}

// TestKeptAnswer: a retry that would be made at once and is rejected here leaves
// the answer that it was to replace.
func TestKeptAnswer(t *testing.T) {
	config := eager
	config.InFlight = must(inflight.New(inflight.Config{}))
	closing := func(req *http.Request) (*http.Response, error) {
		config.InFlight.SetMaxInFlight(0)
		return status(503)(req)
	}
	rt := mustTransport(t, TransportConfig{Base: script(closing), Egress: config})
	resp, err := rt.RoundTrip(newRequest(t, t.Context(), "GET", nil))
	if err != nil || resp.StatusCode != 503 || readAll(t, resp) != "Service Unavailable" {
		t.Errorf("%v, %v; want the 503, whole", resp, err)
	}
	if s := config.InFlight.Stats(now); s.InFlight != 0 || s.SurplusTotal != 0 || s.RejectedTotal != 1 {
		t.Errorf("%+v, want one drop, and every place given back once", s)
	}
}

// TestMakesRoom: a failed answer does not hold the place that its retry needs.
func TestMakesRoom(t *testing.T) {
	config := eager
	config.MaxInFlight = 1
	rt := mustTransport(t, TransportConfig{Base: script(status(503), status(200)), Egress: config})
	resp, err := rt.RoundTrip(newRequest(t, t.Context(), "GET", nil))
	if err != nil || resp.StatusCode != 200 || inFlight(rt) != 1 {
		t.Fatalf("%v, %v; want the 200, alone in flight", resp, err)
	}
	_ = resp.Body.Close()
}

func lost(t *testing.T, err, want error) {
	t.Helper()
	if e, ok := errors.AsType[*StatusError](err); !errors.Is(err, want) || !ok || e.StatusCode != 503 || e.Header.Get("Retry-After") != "10" {
		t.Errorf("error %v, want one that tells of %v and of the 503", err, want)
	}
}
