package spillhttp_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/seed90641741/spillway"
	"github.com/seed90641741/spillway/egress"
	"github.com/seed90641741/spillway/spillhttp"
)

func transport(t *testing.T, c spillhttp.TransportConfig) *spillhttp.Transport {
	t.Helper()
	x, err := spillhttp.NewTransport(c)
	if err != nil {
		t.Fatal(err)
	}
	return x
}

func inFlight(x *spillhttp.Transport) (n int) {
	for _, s := range x.Stats(time.Now()) {
		n += s.InFlight.InFlight
	}
	return n
}

// TestForgottenAnswers: a caller that returns early at a 404, without Close, does not keep its place when its
// context, or the Timeout of its http.Client, has ended.
func TestForgottenAnswers(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusNotFound)
		_, _ = io.WriteString(w, strings.Repeat("not here ", 1000))
	}))
	t.Cleanup(server.Close)
	for name, forget := range map[string]func(*spillhttp.Transport) error{
		"context": func(x *spillhttp.Transport) error {
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			req, err := http.NewRequestWithContext(ctx, http.MethodGet, server.URL, nil)
			if err != nil {
				return err
			}
			_, err = (&http.Client{Transport: x}).Do(req)
			return err
		},
		"timeout": func(x *spillhttp.Transport) error {
			_, err := (&http.Client{Transport: x, Timeout: 20 * time.Millisecond}).Get(server.URL)
			for end := time.Now().Add(5 * time.Second); inFlight(x) > 0 && time.Now().Before(end); {
				runtime.Gosched()
			}
			if e, ok := err.(interface{ Timeout() bool }); ok && e.Timeout() {
				return nil
			}
			return err
		},
	} {
		x := transport(t, spillhttp.TransportConfig{Base: &http.Transport{}, Egress: egress.Config{MaxInFlight: 5, ThrottleMode: spillway.ModeOff}})
		for i := range 20 {
			if err := forget(x); err != nil {
				t.Fatalf("%s: call %d: %v", name, i, err)
			}
		}
		if n := inFlight(x); n != 0 {
			t.Errorf("%s: %d in flight", name, n)
		}
	}
}

// TestObserverPanics: the answer that nobody gets is closed, and its place is given back.
func TestObserverPanics(t *testing.T) {
	var closed int
	base := baseFunc(func(*http.Request) (*http.Response, error) {
		return &http.Response{StatusCode: 200, Body: closer{strings.NewReader("x"), func() { closed++ }}}, nil
	})
	x := transport(t, spillhttp.TransportConfig{Base: base, Egress: egress.Config{Observer: spillway.ObserverFunc(func(spillway.Event) { panic("observer") })}})
	for range 10 {
		func() {
			defer func() { _ = recover() }()
			req, _ := http.NewRequest(http.MethodGet, "http://backend.example/", nil)
			_, _ = x.RoundTrip(req)
			t.Error("it does not panic")
		}()
	}
	if n := inFlight(x); n != 0 || closed != 10 {
		t.Errorf("%d in flight, %d bodies closed", n, closed)
	}
}

type baseFunc func(*http.Request) (*http.Response, error)

func (f baseFunc) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

type closer struct {
	io.Reader
	close func()
}

func (c closer) Close() error { c.close(); return nil }

// TestClientTimeoutIsATimeout: net/http has two timers for it, and either may be the first.
func TestClientTimeoutIsATimeout(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }))
	t.Cleanup(server.Close)
	var mu sync.Mutex
	outcomes := map[spillway.Outcome]int{}
	x := transport(t, spillhttp.TransportConfig{Base: &http.Transport{}, Egress: egress.Config{Observer: spillway.ObserverFunc(func(e spillway.Event) {
		if e.Policy == "inflight" && !e.Rejected {
			mu.Lock()
			defer mu.Unlock()
			outcomes[e.Outcome]++
		}
	}), ThrottleMode: spillway.ModeOff}})
	client := &http.Client{Transport: x, Timeout: 30 * time.Millisecond}
	var all sync.WaitGroup
	for range 400 {
		all.Go(func() {
			resp, err := client.Get(server.URL)
			if err == nil {
				resp.Body.Close()
			}
			if e, ok := err.(interface{ Timeout() bool }); !ok || !e.Timeout() {
				t.Errorf("%v is no timeout", err)
			}
		})
	}
	all.Wait()
	// On a busy machine the time of some is over before they get to the Transport: these are no attempts.
	timedOut, notStarted := outcomes[spillway.OutcomeTimedOut], outcomes[spillway.OutcomeNotStarted]
	delete(outcomes, spillway.OutcomeTimedOut)
	delete(outcomes, spillway.OutcomeNotStarted)
	if len(outcomes) > 0 || timedOut < 100 || timedOut+notStarted > 400 {
		t.Errorf("%d timed out, %d were not started, others: %v", timedOut, notStarted, outcomes)
	}
}

// TestExpiredRequest: the error is that of net/http, and the backend gets nothing.
func TestExpiredRequest(t *testing.T) {
	x := transport(t, spillhttp.TransportConfig{Base: baseFunc(func(*http.Request) (*http.Response, error) { panic("sent") })})
	cause := errors.New("a cause")
	canceled, cancel := context.WithCancelCause(t.Context())
	cancel(cause)
	expired, stop := context.WithDeadline(t.Context(), time.Now().Add(-time.Hour))
	defer stop()
	for ctx, want := range map[context.Context]error{canceled: cause, expired: context.DeadlineExceeded} {
		closed := false
		req, _ := http.NewRequestWithContext(ctx, http.MethodPut, "http://backend.example/", closer{strings.NewReader("x"), func() { closed = true }})
		if _, err := x.RoundTrip(req); err != want || !closed {
			t.Errorf("%v, closed %v, want %v", err, closed, want)
		}
	}
}

// TestWaitForAConnection: a request whose context ends while it waits for the connection of another one was never sent.
func TestWaitForAConnection(t *testing.T) {
	release, taken := make(chan struct{}), make(chan struct{})
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/slow" {
			close(taken)
			<-release
		}
	}))
	t.Cleanup(server.Close)
	x := transport(t, spillhttp.TransportConfig{Base: &http.Transport{MaxConnsPerHost: 1}})
	get := func(path string, limit time.Duration) error {
		ctx, cancel := context.WithTimeout(t.Context(), limit)
		defer cancel()
		req, _ := http.NewRequestWithContext(ctx, http.MethodGet, server.URL+path, nil)
		resp, err := x.RoundTrip(req)
		if err == nil {
			_, _ = io.Copy(io.Discard, resp.Body)
			resp.Body.Close()
		}
		return err
	}
	slow := make(chan error)
	go func() { slow <- get("/slow", time.Minute) }()
	<-taken
	var all sync.WaitGroup
	for range 200 {
		all.Go(func() {
			if err := get("/", 20*time.Millisecond); !errors.Is(err, context.DeadlineExceeded) {
				t.Error(err)
			}
		})
	}
	all.Wait()
	for host, s := range x.Stats(time.Now()) {
		if n := s.Throttle[spillway.Critical.Index()].Requests; n != 0 {
			t.Errorf("%s: the throttle learnt from %v calls that were not sent", host, n)
		}
	}
	close(release)
	if err := <-slow; err != nil {
		t.Error(err)
	}
}

// TestRetryAfterDate: a date in an answer is read by the clock that the answer was made by.
func TestRetryAfterDate(t *testing.T) {
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	for name, row := range map[string]struct {
		date, age string
		want      time.Duration
	}{
		"ahead":    {now.Add(10 * time.Minute).Format(http.TimeFormat), "", 2 * time.Second},
		"behind":   {now.Add(-10 * time.Minute).Format(http.TimeFormat), "", 2 * time.Second},
		"the same": {now.Format(http.TimeFormat), "", 2 * time.Second},
	} {
		sent, _ := http.ParseTime(row.date)
		h := http.Header{"Date": {row.date}, "Retry-After": {sent.Add(2 * time.Second).Format(http.TimeFormat)}}
		got := spillhttp.RetryAfterForTest(h, now)
		if got != row.want {
			t.Errorf("%s: %v, want %v", name, got, row.want)
		}
		h.Set("Age", "60")
		if got, want := spillhttp.RetryAfterForTest(h, now), max(sent.Add(2*time.Second).Sub(now), 0); got != want {
			t.Errorf("%s, from a cache: %v, want %v", name, got, want)
		}
	}
}
