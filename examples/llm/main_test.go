package main

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// A client of the service, with its answer.
type client struct {
	httptest.ResponseRecorder

	sent  time.Time
	first time.Duration // until the first byte; 0: none came
}

func (c *client) Flush() {
	if c.first == 0 {
		c.first = time.Since(c.sent)
	}
}

// ask sends a request whose client leaves when no byte has come after ten seconds, or after an answer of some length.
func ask(h http.Handler, customer, class string, tokens int, stays time.Duration) *client {
	ctx, leave := context.WithCancel(context.Background())
	defer leave()
	c := &client{ResponseRecorder: *httptest.NewRecorder(), sent: time.Now()}
	defer time.AfterFunc(10*time.Second, func() {
		if c.first == 0 {
			leave()
		}
	}).Stop()
	defer time.AfterFunc(stays, leave).Stop()
	r := httptest.NewRequestWithContext(ctx, http.MethodPost, "/generate?max_tokens="+strconv.Itoa(tokens), http.NoBody)
	r.Header.Set("X-Customer", customer)
	r.Header.Set("X-Request-Criticality", class)
	h.ServeHTTP(c, r)
	return c
}

// The service starts into an overload, half of it SHEDDABLE. The model stays busy, CRITICAL requests are served first, and the first byte
// comes soon.
func TestColdStart(t *testing.T) {
	for _, times := range []int{2, 10} {
		synctest.Test(t, func(t *testing.T) {
			h, gates, err := protected(newModel(slots))
			if err != nil {
				t.Fatal(err)
			}
			var served [2]atomic.Int64 // SHEDDABLE and CRITICAL
			var late atomic.Int64
			var all sync.WaitGroup
			began := time.Now()
			for i := 0; time.Since(began) < 5*time.Minute; i++ {
				all.Go(func() {
					c := ask(h, fmt.Sprint("customer ", i%100), []string{"SHEDDABLE", "CRITICAL"}[i%2], 200+i*37%200, time.Hour)
					if c.first > 8*time.Second { // the longest wait, the second that the model takes, and a little more
						late.Add(1)
					}
					if c.first > 0 && time.Since(began) < 5*time.Minute {
						served[i%2].Add(1)
					}
				})
				time.Sleep(30 * time.Second / time.Duration(times*slots))
			}
			all.Wait()
			const capacity = slots * 10 // answers of 30 s, in five minutes
			sheddable, critical := served[0].Load(), served[1].Load()
			if n := sheddable + critical; n < capacity*8/10 || sheddable > n/5 || late.Load() > n/10 {
				t.Errorf("%d times the capacity: %d SHEDDABLE and %d CRITICAL served, %d of them late; the model can do %d", times, sheddable, critical, late.Load(), capacity)
			}
			if err := gates.Close(); err != nil {
				t.Error(err)
			}
		})
	}
}

// A customer pays for the tokens that were generated for it, also when it leaves. Meanwhile each of its requests counts as a usual answer.
func TestQuota(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h, gates, err := protected(newModel(slots))
		if err != nil {
			t.Fatal(err)
		}
		together := func(n int, stays time.Duration) (admitted int64) {
			var all sync.WaitGroup
			var count atomic.Int64
			for range n {
				all.Go(func() {
					if ask(h, "acme", "CRITICAL", estimate, stays).Code == http.StatusOK {
						count.Add(1)
					}
				})
			}
			all.Wait()
			return count.Load()
		}
		// 50 tokens per second, for a minute at once; three quarters of them are for CRITICAL: eight answers of 300.
		for i, step := range []struct {
			stays time.Duration
			want  int64
		}{
			{1500 * time.Millisecond, 8}, // all leave after ten tokens, which have come again meanwhile
			{time.Hour, 8},               // 2400 are used, and 1500 come meanwhile
			{time.Hour, 5},
		} {
			if got := together(20, step.stays); got != step.want {
				t.Errorf("step %d: %d of 20 requests were admitted, want %d", i, got, step.want)
			}
		}
		if err := gates.Close(); err != nil {
			t.Error(err)
		}
	})
}

func TestServe(t *testing.T) {
	t.Parallel()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- serve(ctx, listener) }()
	answer, err := http.Post("http://"+listener.Addr().String()+"/generate?max_tokens=7", "", http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	text, err := io.ReadAll(answer.Body)
	if err != nil || answer.Body.Close() != nil || string(text) != "7 tokens\n" {
		t.Errorf("%q, %v", text, err)
	}
	http.DefaultClient.CloseIdleConnections()
	stop()
	if err := <-ended; err != nil {
		t.Error(err)
	}
}
