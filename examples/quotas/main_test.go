package main

import (
	"context"
	"io"
	"net"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/seed90641741/spillway/internal/redistest"
)

// start starts a task, and returns its URL and a function that ends it.
func start(t *testing.T, redisAddress string) (url string, end func()) {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- serve(ctx, listener, redisAddress) }()
	return "http://" + listener.Addr().String(), func() {
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	}
}

// send sends requests of a customer to tasks in turn until some were rejected, and returns how many were
// admitted. Each rejection is a 429 that says whom it concerns.
func send(t *testing.T, customer string, rejections int, urls ...string) (admitted int) {
	t.Helper()
	for rejected := 0; rejected < rejections; {
		for _, url := range urls {
			r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
			if err != nil {
				t.Fatal(err)
			}
			r.Header.Set("X-Customer", customer)
			resp, err := http.DefaultClient.Do(r)
			if err != nil {
				t.Fatal(err)
			}
			text, _ := io.ReadAll(resp.Body)
			resp.Body.Close()
			switch h := resp.Header; {
			case resp.StatusCode == http.StatusOK:
				admitted++
			case resp.StatusCode != http.StatusTooManyRequests || h.Get("Retry-After") == "" || h.Get("X-Overload-Scope") != "customer" || !strings.Contains(string(text), "quota"):
				t.Fatalf("%d %v %q", resp.StatusCode, h, text)
			default:
				rejected++
			}
		}
	}
	return admitted
}

// TestOneTask: each customer has its limit, and the burst of a second.
func TestOneTask(t *testing.T) {
	url, end := start(t, "")
	defer end()
	for customer, rate := range map[string]int{"mail": 100, "other": 10} {
		began := time.Now()
		n := send(t, customer, 5, url)
		if most := rate + int(float64(rate)*time.Since(began).Seconds()) + 1; n == 0 || n > most {
			t.Errorf("%s: %d admitted, want at most %d", customer, n, most)
		}
	}
}

// TestTwoTasks: two tasks with a server of Redis admit the limit of a customer together.
func TestTwoTasks(t *testing.T) {
	address := redistest.Start(t).Socket()
	one, end := start(t, address)
	defer end()
	two, endTwo := start(t, address)
	defer endTwo()
	began := time.Now()
	n := 0
	for time.Since(began) < 3*time.Second {
		n += send(t, "mail", 5, one, two)
	}
	// A burst of a second, and that of each task before they know of each other.
	if most := 200 + int(100*time.Since(began).Seconds()); n == 0 || n > most {
		t.Errorf("%d admitted in %v, want at most %d", n, time.Since(began), most)
	}
}

// TestDocumentedAnswer: a rejection has the headers that docs/quota-fleet.md shows, and its body.
func TestDocumentedAnswer(t *testing.T) {
	document, err := os.ReadFile("../../docs/quota-fleet.md")
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(document), "```text\nHTTP/1.1 429")
	shown, _, _ := strings.Cut(rest, "```")
	url, end := start(t, "")
	defer end()
	for range 1000 {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("X-Customer", "me")
		resp, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		text, _ := io.ReadAll(resp.Body)
		resp.Body.Close()
		if resp.StatusCode == http.StatusOK {
			continue
		}
		resp.Header.Del("Date")
		for name := range resp.Header {
			if !strings.Contains(shown, "\n"+name+": ") {
				t.Errorf("%s is not shown", name)
			}
		}
		if n := strings.Count(shown, ": ") - 1; n != len(resp.Header) || !strings.HasSuffix(strings.TrimSpace(shown), strings.TrimSpace(string(text))) {
			t.Errorf("%d headers are shown, the answer has %v and %q", n, resp.Header, text)
		}
		return
	}
	t.Error("nothing was rejected")
}
