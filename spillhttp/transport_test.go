package spillhttp

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/seed90641741/spillway"
	"github.com/seed90641741/spillway/egress"
	"github.com/seed90641741/spillway/inflight"
)

func TestTransportConfig(t *testing.T) {
	for _, row := range []struct {
		config TransportConfig
		want   string
	}{
		{TransportConfig{MaxHosts: -1}, "MaxHosts is -1, must not be negative"},
		{TransportConfig{Egress: egress.Config{ThrottleMode: 7}}, "ThrottleMode is 7"},
		{TransportConfig{}, ""},
	} {
		_, err := NewTransport(row.config)
		if (err == nil) != (row.want == "") || err != nil && !strings.Contains(err.Error(), row.want) {
			t.Errorf("%+v: %v, want %q", row.config, err, row.want)
		}
	}
}

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

// TestAsIs: where nothing was retried, the error is the base's very own.
func TestAsIs(t *testing.T) {
	broken := &url.Error{Op: "dial", Err: errors.New("broken")}
	rt := mustTransport(t, TransportConfig{Base: script(fails(broken)), Egress: eager})
	_, err := rt.RoundTrip(newRequest(t, t.Context(), "POST", nil))
	if err != broken {
		t.Errorf("error %#v, want the base's", err)
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

// tracked is the body of a request that tells whether it was closed.
type tracked struct {
	io.Reader
	closed bool
}

func (b *tracked) Close() error { b.closed = true; return nil }

func TestRefusedHere(t *testing.T) {
	rt := mustTransport(t, TransportConfig{Base: script(status(200)), Egress: egress.Config{MaxRequests: 1}})
	first, err := rt.RoundTrip(newRequest(t, t.Context(), "GET", nil))
	if err != nil {
		t.Fatal(err)
	}
	body := &tracked{Reader: strings.NewReader("payload")}
	_, err = rt.RoundTrip(newRequest(t, t.Context(), "POST", body))
	if !errors.Is(err, spillway.ErrRejected) {
		t.Errorf("error %v, want a local refusal", err)
	}
	if !body.closed {
		t.Error("the body of the refused request was not closed")
	}
	_ = first.Body.Close()
	if n := inFlight(rt); n != 0 {
		t.Errorf("%d left in flight", n)
	}
	if _, err := rt.RoundTrip(newRequest(t, t.Context(), "POST", nil)); errors.Is(err, spillway.ErrRejected) {
		t.Errorf("refused with nothing in flight: %v", err)
	}
}

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
	t.Run("refused here", func(t *testing.T) {
		inBubble(t, func(t *testing.T) {
			config := eager
			config.MaxRequests = 1
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

// TestKeptAnswer: a retry that would be made at once and is refused here leaves
// the answer that it was to replace.
func TestKeptAnswer(t *testing.T) {
	config := eager
	config.Inflight = must(inflight.New(inflight.Config{}))
	closing := func(req *http.Request) (*http.Response, error) {
		config.Inflight.SetMaxRequests(0)
		return status(503)(req)
	}
	rt := mustTransport(t, TransportConfig{Base: script(closing), Egress: config})
	resp, err := rt.RoundTrip(newRequest(t, t.Context(), "GET", nil))
	if err != nil || resp.StatusCode != 503 || readAll(t, resp) != "Service Unavailable" {
		t.Errorf("%v, %v; want the 503, whole", resp, err)
	}
	if s := config.Inflight.Stats(); s.InFlight != 0 || s.Surplus != 0 || s.Drops != 1 {
		t.Errorf("%+v, want one drop, and every place given back once", s)
	}
}

// TestMakesRoom: a failed answer does not hold the place that its retry needs.
func TestMakesRoom(t *testing.T) {
	config := eager
	config.MaxRequests = 1
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

// TestTimeoutIsSeen: net/url asks the error itself whether it was a timeout.
func TestTimeoutIsSeen(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second)
		defer cancel()
		hangs := func(req *http.Request) (*http.Response, error) {
			<-req.Context().Done()
			return nil, req.Context().Err()
		}
		client := &http.Client{Transport: mustTransport(t, TransportConfig{Base: script(fails(errors.New("broken")), hangs), Egress: eager})}
		_, err := client.Do(newRequest(t, ctx, "GET", nil))
		e, ok := errors.AsType[*url.Error](err)
		if !ok || !e.Timeout() || !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("%v: timeout %v", err, ok && e.Timeout())
		}
	})
}

// TestGivenUpBody: what makes way for a retry is read if small, and always
// closed, before the wait.
func TestGivenUpBody(t *testing.T) {
	for _, row := range []struct {
		name  string
		body  string
		known bool
		left  int // unread after a bounded drain
	}{
		{"small", "sorry", true, 0},
		{"small, of unknown length", "sorry", false, 0},
		{"large", strings.Repeat("x", 3*drainBytes), true, 3 * drainBytes},
		{"large, of unknown length", strings.Repeat("x", 3*drainBytes), false, 2 * drainBytes},
	} {
		t.Run(row.name, func(t *testing.T) {
			inBubble(t, func(t *testing.T) {
				source := strings.NewReader(row.body)
				body := &reply{Reader: source}
				first := func(req *http.Request) (*http.Response, error) {
					resp := answer(req, 503, row.body, "retry-after", "10")
					resp.Body = body
					if !row.known {
						resp.ContentLength = -1
					}
					return resp, nil
				}
				rt := mustTransport(t, TransportConfig{Base: script(first, status(200)), Egress: eager})
				time.AfterFunc(5*time.Second, func() { // in the middle of the wait
					if body.closed.Load() == 0 || source.Len() != row.left {
						t.Errorf("closed %d times, %d bytes unread, want closed and %d", body.closed.Load(), source.Len(), row.left)
					}
					if n := inFlight(rt); n != 0 {
						t.Errorf("%d in flight during the wait", n)
					}
				})
				start := time.Now()
				roundTrip(t, rt, newRequest(t, t.Context(), "GET", nil))
				if waited := time.Since(start); waited < 10*time.Second {
					t.Errorf("waited %v, the backend asked for 10 s", waited)
				}
			})
		})
	}
}

// TestSlowBody: an answer whose body does not come does not hold up the retry.
func TestSlowBody(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		pr, pw := io.Pipe()
		defer pw.Close()
		stuck := func(req *http.Request) (*http.Response, error) {
			resp := answer(req, 503, "")
			resp.Body, resp.ContentLength = pr, -1
			return resp, nil
		}
		rt := mustTransport(t, TransportConfig{Base: script(stuck, status(200)), Egress: eager})
		start := time.Now()
		roundTrip(t, rt, newRequest(t, t.Context(), "GET", nil))
		if took := time.Since(start); took != drainTime {
			t.Errorf("took %v, want %v", took, drainTime)
		}
	})
}

// TestPlaceInFlight follows the place of one request to its end.
func TestPlaceInFlight(t *testing.T) {
	piped := func(req *http.Request) (*http.Response, error) {
		pr, pw := io.Pipe() // which may be read and closed at once
		go func() {
			_, _ = pw.Write([]byte("hello"))
			pw.Close()
		}()
		resp := answer(req, 200, "")
		resp.Body = pr
		return resp, nil
	}
	for name, end := range map[string]func(io.ReadCloser){
		"read to the end": func(b io.ReadCloser) { _, _ = io.Copy(io.Discard, b) },
		"closed":          func(b io.ReadCloser) { b.Close() },
		"all of it":       func(b io.ReadCloser) { _, _ = io.ReadAll(b); b.Close(); b.Close(); _, _ = b.Read(make([]byte, 1)) },
		"racing": func(b io.ReadCloser) {
			var all sync.WaitGroup
			for range 4 {
				all.Go(func() { _, _ = io.ReadAll(b) })
				all.Go(func() { b.Close() })
			}
			all.Wait()
		},
	} {
		t.Run(name, func(t *testing.T) {
			rt := mustTransport(t, TransportConfig{Base: script(piped)})
			resp, err := rt.RoundTrip(newRequest(t, t.Context(), "GET", nil))
			if err != nil || inFlight(rt) != 1 {
				t.Fatalf("%v, %d in flight with an open body, want 1", err, inFlight(rt))
			}
			end(resp.Body)
			if s := rt.Stats()["backend.example"].Inflight; s.InFlight != 0 || s.Surplus != 0 {
				t.Errorf("%+v, want nothing in flight, released once", s)
			}
		})
	}
}

func TestNoBodyHoldsNothing(t *testing.T) {
	nothing := func(req *http.Request) (*http.Response, error) { return answer(req, 204, ""), nil }
	rt := mustTransport(t, TransportConfig{Base: script(nothing)})
	resp, err := rt.RoundTrip(newRequest(t, t.Context(), "GET", nil))
	if err != nil || resp.Body != http.NoBody {
		t.Errorf("%v, body %T, want http.NoBody as it came", err, resp.Body)
	}
	if n := inFlight(rt); n != 0 {
		t.Errorf("%d in flight although there is nothing to read", n)
	}
}

func TestPanicReleases(t *testing.T) {
	rt := mustTransport(t, TransportConfig{Base: baseFunc(func(*http.Request) (*http.Response, error) { panic("base") })})
	func() {
		defer func() {
			if recover() != "base" {
				t.Error("the panic did not get through")
			}
		}()
		_, _ = rt.RoundTrip(newRequest(t, t.Context(), "GET", nil))
	}()
	if n := inFlight(rt); n != 0 {
		t.Errorf("%d left in flight", n)
	}
}

// TestHosts: each host has its own limits, and they are bounded.
func TestHosts(t *testing.T) {
	base := baseFunc(func(req *http.Request) (*http.Response, error) { return answer(req, 200, ""), nil })
	rt := mustTransport(t, TransportConfig{Base: base, MaxHosts: 2})
	for _, u := range []string{"http://a/", "http://b:80/", "http://c/", "http://c/other"} {
		req := newRequest(t, t.Context(), "GET", nil)
		req.URL = must(url.Parse(u))
		roundTrip(t, rt, req)
	}
	if s := rt.Stats(); len(s) != 2 {
		t.Errorf("state of %d hosts kept, want 2", len(s))
	}
	keyed := mustTransport(t, TransportConfig{Base: base, Key: func(req *http.Request) string { return req.Method }})
	roundTrip(t, keyed, newRequest(t, t.Context(), "PUT", nil))
	if _, ok := keyed.Stats()["PUT"]; !ok {
		t.Errorf("backends %v, want the one named by Key", keyed.Stats())
	}
}

func TestMalformedRequest(t *testing.T) {
	rt := mustTransport(t, TransportConfig{})
	for name, req := range map[string]*http.Request{
		"no URL":    {Header: http.Header{}},
		"no header": {URL: &url.URL{Scheme: "http", Host: "backend.example"}},
	} {
		body := &tracked{Reader: strings.NewReader("x")}
		req.Body = body
		if _, err := rt.RoundTrip(req); err == nil || !body.closed {
			t.Errorf("%s: error %v, body closed %v", name, err, body.closed)
		}
	}
}

type idler struct {
	http.RoundTripper
	closed int
}

func (i *idler) CloseIdleConnections() { i.closed++ }

func TestCloseIdleConnections(t *testing.T) {
	base := &idler{}
	(&http.Client{Transport: mustTransport(t, TransportConfig{Base: base})}).CloseIdleConnections()
	mustTransport(t, TransportConfig{Base: script()}).CloseIdleConnections() // cannot; does nothing
	if base.closed != 1 {
		t.Errorf("passed on %d times, want 1", base.closed)
	}
}

// TestAnswersForgotten: nothing is kept of a call once it has ended.
func TestAnswersForgotten(t *testing.T) {
	rt := mustTransport(t, TransportConfig{Base: baseFunc(func(req *http.Request) (*http.Response, error) {
		return answer(req, 503, "busy"), nil
	})})
	for range 100 {
		if resp, err := rt.RoundTrip(newRequest(t, t.Context(), "GET", nil)); err == nil {
			_ = resp.Body.Close()
		}
	}
	rt.answers.Range(func(any, any) bool { t.Error("an answer is still waited for"); return false })
}

// TestTransportUpdate: new policies for all hosts, with what the old ones have learnt,
// while a call is under way.
func TestTransportUpdate(t *testing.T) {
	var rt *Transport
	busy := true
	rt = mustTransport(t, TransportConfig{Egress: eager, Base: baseFunc(func(req *http.Request) (*http.Response, error) {
		if !busy {
			return answer(req, 200, "done"), nil
		}
		busy = false
		if err := rt.Update(egress.Config{MaxRequests: 1}); err != nil { // between the first attempt and the second
			t.Error(err)
		}
		return answer(req, 503, "busy", "X-Should-Retry", "true"), nil
	})})
	resp := must(rt.RoundTrip(newRequest(t, t.Context(), "GET", nil)))
	if resp.StatusCode != 200 {
		t.Errorf("%d, want the answer to the retry by the strategy that the call began with", resp.StatusCode)
	}
	rt.answers.Range(func(any, any) bool { t.Error("an answer is still waited for"); return false })
	if err := rt.Update(egress.Config{MaxRequests: 9, ThrottleMode: 9}); err == nil || !strings.HasPrefix(err.Error(), "spillhttp: Egress: egress: ThrottleMode is 9") {
		t.Errorf("%v, want an error about ThrottleMode", err)
	}
	if _, err := rt.RoundTrip(newRequest(t, t.Context(), "GET", nil)); !errors.Is(err, spillway.ErrRejected) {
		t.Errorf("%v, want a refusal: the limit is 1, and the first answer is not read yet", err)
	}
	resp.Body.Close()
	roundTrip(t, rt, newRequest(t, t.Context(), "GET", nil))
	for host, s := range rt.Stats() {
		if s.Inflight.MaxRequests != 1 || s.Inflight.InFlight != 0 {
			t.Errorf("%s: %+v", host, s.Inflight)
		}
	}
}

// TestAllocations: three on top of the base's, whatever the headers.
func TestAllocations(t *testing.T) {
	if raceEnabled {
		t.Skip("the race detector allocates")
	}
	base := instant{"hello"}
	req := labelled(t)
	count := func(rt http.RoundTripper) float64 { return testing.AllocsPerRun(200, func() { roundTrip(t, rt, req) }) }
	bare := count(base)
	external := func(*http.Request) bool { return false }
	if n := count(mustTransport(t, TransportConfig{Base: base})) - bare; n > 3 {
		t.Errorf("%v allocations for a labelled request, want at most 3", n)
	}
	if n := count(mustTransport(t, TransportConfig{Base: base, Internal: external})) - bare; n > 1 {
		t.Errorf("%v allocations for one without headers, want at most 1", n)
	}
}
