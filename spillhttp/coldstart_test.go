package spillhttp

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/seed90641741/spillway"
	"github.com/seed90641741/spillway/ingress"
	"github.com/seed90641741/spillway/internal/thorough"
)

// A handler works on for clients that have left: 2 × 50 ms, 40 requests per second. Its clients hang up after a second, and send more. A
// server that starts into that behind a backlog, or is switched from observe to enforce in it, serves 80 % of what it can do 15 s after the
// time that the backlog needs. Half of the requests are SHEDDABLE: the CRITICAL ones are served first.
func TestColdStart(t *testing.T) {
	const capacity = 40
	for name, row := range map[string]struct {
		times, backlog int
		observed, long bool
	}{
		"started":                     {times: 2, backlog: 10},
		"started, 10 times":           {times: 10, backlog: 10, long: true},
		"started, a long backlog":     {times: 2, backlog: 1000, long: true},
		"switched":                    {times: 2, backlog: 10, observed: true},
		"switched, 10 times":          {times: 10, backlog: 10, observed: true, long: true},
		"switched, in a long backlog": {times: 2, backlog: 1000, observed: true, long: true},
	} {
		t.Run(name, func(t *testing.T) {
			if row.long && !thorough.Enabled() {
				t.Skip("it takes a second or two: run it with -tags thorough")
			}
			var h http.Handler
			overPipes(t, func(w http.ResponseWriter, r *http.Request) { h.ServeHTTP(w, r) }, func(t *testing.T, base *http.Transport, _ *pipes) {
				slots := make(chan struct{}, 2)
				var waiting atomic.Int64
				var served [2]atomic.Int64 // SHEDDABLE and CRITICAL
				work := func() {
					waiting.Add(1)
					slots <- struct{}{}               // the work is done although its client has left
					time.Sleep(50 * time.Millisecond) // of the bubble, as all times here
					<-slots
					waiting.Add(-1)
				}
				mode := spillway.ModeEnforce
				if row.observed {
					mode = spillway.ModeObserve
				}
				server := must(ingress.New(ingress.Config{ShedMode: mode}))
				h = must(NewHandler(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
					work()
					fmt.Fprint(w, "ok")
				}), HandlerConfig{Ingress: server}))
				var all sync.WaitGroup
				for range row.backlog {
					all.Go(work)
				}
				client := &http.Client{Transport: base}
				send := func(d time.Duration) {
					for i, end := 0, time.Now().Add(d); time.Now().Before(end); i++ {
						time.Sleep(time.Second / time.Duration(row.times*capacity))
						all.Go(func() { served[i%2].Add(impatient(client, []string{"SHEDDABLE", "CRITICAL"}[i%2])) })
					}
				}
				send(3 * time.Second)
				if err := server.Update(ingress.Config{}); err != nil {
					t.Fatal(err)
				}
				send(3 * time.Second) // clients leave after one: until then a server that has just begun knows nothing
				send(time.Duration(waiting.Load())*time.Second/capacity + 15*time.Second)
				before := [2]int64{served[0].Load(), served[1].Load()}
				send(10 * time.Second)
				sheddable, critical := served[0].Load()-before[0], served[1].Load()-before[1]
				if n := sheddable + critical; n < 10*capacity*8/10 || sheddable > n/10 {
					t.Errorf("%d SHEDDABLE and %d CRITICAL served in 10 s, the handler can do %d: %+v", sheddable, critical, 10*capacity, server.Stats(time.Now()).Concurrency)
				}
				all.Wait()
				for waiting.Load() > 0 {
					time.Sleep(50 * time.Millisecond)
				}
				if err := server.Close(); err != nil {
					t.Error(err)
				}
			})
		})
	}
}

// impatient sends a request whose client hangs up after a second, and returns 1 if it was answered.
func impatient(c *http.Client, class string) int64 {
	ctx, leave := context.WithTimeout(context.Background(), time.Second)
	defer leave()
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://server/", http.NoBody)
	if err != nil {
		return 0
	}
	r.Header.Set("X-Request-Criticality", class)
	answer, err := c.Do(r)
	if err != nil {
		return 0
	}
	defer func() { _ = answer.Body.Close() }()
	if _, err := io.Copy(io.Discard, answer.Body); err != nil || answer.StatusCode != http.StatusOK {
		return 0
	}
	return 1
}
