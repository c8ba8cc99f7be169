package comingfrom

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"os"
	"regexp"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seed90641741/spillway"
	"github.com/seed90641741/spillway/spillhttp"
)

// Each program on a page is one that this package compiles.
func TestPages(t *testing.T) {
	pages := map[string]string{
		"x-time-rate": "rate.go", "semaphore": "semaphore.go", "retry-go": "retrygo.go", "gobreaker": "gobreaker.go", "failsafe-go": "failsafe.go",
	}
	block := regexp.MustCompile("(?s)```go\n(.*?)```")
	for page, file := range pages {
		text, err := os.ReadFile("../../docs/coming-from/" + page + ".md")
		if err != nil {
			t.Fatal(err)
		}
		code, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		programs := block.FindAllStringSubmatch(string(text), -1)
		if len(programs) != 2 {
			t.Errorf("%s has %d programs, want 2", page, len(programs))
		}
		for _, p := range programs {
			if !strings.Contains(string(code), p[1]) {
				t.Errorf("%s.md has a program that is not in %s:\n%s", page, file, p[1])
			}
		}
	}
}

func TestRate(t *testing.T) {
	for name, run := range map[string]func(context.Context, []func()) error{"before": beforeRate, "after": afterRate} {
		synctest.Test(t, func(t *testing.T) {
			start, jobs, n := time.Now(), make([]func(), 60), 0
			for i := range jobs {
				jobs[i] = func() { n++ }
			}
			if err := run(t.Context(), jobs); err != nil || n != 60 {
				t.Errorf("%s: %d jobs, %v", name, n, err)
			}
			if took := time.Since(start).Round(time.Millisecond); took != 100*time.Millisecond {
				t.Errorf("%s: 60 jobs at 100 per second after a burst of 50 took %v, want 100ms", name, took)
			}
			ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
			defer cancel()
			n = 0
			if err := run(ctx, jobs); err == nil || n < 50 || n == 60 {
				t.Errorf("%s: with a deadline: %d jobs, %v", name, n, err)
			}
		})
	}
}

func TestSemaphore(t *testing.T) {
	after, err := afterSemaphore()
	if err != nil {
		t.Fatal(err)
	}
	for name, run := range map[string]func(context.Context, func()) error{"before": beforeSemaphore(), "after": after} {
		synctest.Test(t, func(t *testing.T) {
			start := time.Now()
			var all sync.WaitGroup
			var running, most atomic.Int32
			for range 10 {
				all.Go(func() {
					if err := run(t.Context(), func() {
						most.Store(max(most.Load(), running.Add(1)))
						time.Sleep(time.Second)
						running.Add(-1)
					}); err != nil {
						t.Errorf("%s: %v", name, err)
					}
				})
			}
			all.Wait()
			if took := time.Since(start); took != 5*time.Second || most.Load() != 2 {
				t.Errorf("%s: 10 jobs of 1s, 2 at once, took %v with %d at once", name, took, most.Load())
			}
		})
	}
}

// backend answers as many requests as fail says with 503, and all others with 200.
func backend(t *testing.T, fail int32) (url string, requests *atomic.Int32) {
	t.Helper()
	requests = new(atomic.Int32)
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		if requests.Add(1) <= fail {
			w.WriteHeader(http.StatusServiceUnavailable)
			return
		}
		_, _ = w.Write([]byte("hello"))
	}))
	t.Cleanup(s.Close)
	return s.URL, requests
}

func TestRetry(t *testing.T) {
	for name, run := range map[string]func(context.Context, string) ([]byte, error){"before": beforeRetry, "after": afterRetry} {
		url, requests := backend(t, 1)
		if body, err := run(t.Context(), url); err != nil || string(body) != "hello" || requests.Load() != 2 {
			t.Errorf("%s: %q, %v after %d requests, want success after 2", name, body, err, requests.Load())
		}
	}
	missing := httptest.NewServer(http.NotFoundHandler())
	defer missing.Close()
	if _, err := afterRetry(t.Context(), missing.URL); err == nil || strings.Contains(err.Error(), "gave up") {
		t.Errorf("404 is not retried: %v", err)
	}
}

func TestBreaker(t *testing.T) {
	for name, program := range map[string]func(func(string)) (func(string) (*http.Response, error), error){
		"before": func(log func(string)) (func(string) (*http.Response, error), error) { return beforeBreaker(log), nil },
		"after":  afterBreaker,
	} {
		var log []string
		get, err := program(func(s string) { log = append(log, s) })
		if err != nil {
			t.Fatal(err)
		}
		url, requests := backend(t, 1<<30)
		const calls = 300
		rejected := 0
		for range calls {
			resp, err := get(url)
			if err != nil {
				rejected++
				continue
			}
			resp.Body.Close()
		}
		if n := requests.Load(); n > calls/2 || rejected == 0 {
			t.Errorf("%s: %d calls sent %d requests to a backend that fails, and %d failed here", name, calls, n, rejected)
		}
		if len(log) == 0 || !strings.Contains(log[0], "closed to ") {
			t.Errorf("%s: changes of state %q", name, log)
		}
	}
}

func TestFailsafe(t *testing.T) {
	for name, program := range map[string]func() (*http.Client, error){
		"before": func() (*http.Client, error) { return beforeFailsafe(), nil }, "after": afterFailsafe,
	} {
		client, err := program()
		if err != nil {
			t.Fatal(err)
		}
		url, requests := backend(t, 1)
		resp, err := client.Get(url)
		if err != nil || resp.StatusCode != http.StatusOK || requests.Load() != 2 {
			t.Fatalf("%s: %v after %d requests, want success after 2", name, err, requests.Load())
		}
		resp.Body.Close()
	}
	client, err := afterFailsafe()
	if err != nil {
		t.Fatal(err)
	}
	url, requests := backend(t, 1<<30)
	for range 300 {
		resp, err := client.Get(url)
		if errors.Is(err, spillway.ErrRejected) {
			return
		}
		if err == nil {
			resp.Body.Close()
		}
	}
	t.Errorf("no call was rejected here: %d requests", requests.Load())
}

// TestOthers: the programs of the pages whose other half is not Go, or is shown only, serve and call.
func TestOthers(t *testing.T) {
	hello := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte("hello")) })
	client, err := afterResilience4j()
	if err != nil {
		t.Fatal(err)
	}
	defer client.CloseIdleConnections()
	for name, make := range map[string]func(http.Handler) (*spillhttp.Handler, error){"sentinel": afterSentinel, "concurrency-limits": afterConcurrencyLimits} {
		handler, err := make(hello)
		if err != nil {
			t.Fatal(err)
		}
		server := httptest.NewServer(handler)
		resp, err := client.Get(server.URL)
		if err != nil || resp.StatusCode != http.StatusOK {
			t.Errorf("%s: %v %v", name, resp, err)
		} else {
			_ = resp.Body.Close()
		}
		client.CloseIdleConnections()
		server.Close()
		if err := handler.Close(); err != nil {
			t.Error(err)
		}
	}
}
