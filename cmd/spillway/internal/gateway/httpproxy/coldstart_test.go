package httpproxy

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/seed90641741/spillway/cmd/spillway/internal/gateway/config"
	"github.com/seed90641741/spillway/internal/race"
	"github.com/seed90641741/spillway/internal/thorough"
)

// A service works on for clients that have left: 2 × 20 ms, 100 requests per second. Its clients hang up after half a second, and send
// twice as many. A proxy that starts into that, is switched from observe to enforce in it, or is started again in it, serves 80 % of what
// the service can do once what waits there is done.
func TestColdStart(t *testing.T) {
	if race.Enabled {
		t.Skip("it measures throughput, and the race detector takes most of the processor")
	}
	for name, row := range map[string]struct {
		observed, again, second, long bool
	}{
		"started":          {long: true},
		"switched":         {observed: true},
		"switched, HTTP/2": {observed: true, second: true, long: true},
		"started again":    {again: true, long: true},
	} {
		t.Run(name, func(t *testing.T) {
			if row.long && !thorough.Enabled() {
				t.Skip("it takes more than ten seconds of real time: run it with -tags thorough")
			}
			quiet(t)
			const capacity = 100
			slots := make(chan struct{}, 2)
			var queued atomic.Int64
			address, _ := upstreamAt(t, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				queued.Add(1)
				slots <- struct{}{} // the work is done although its client has left
				<-time.After(20 * time.Millisecond)
				<-slots
				queued.Add(-1)
				fmt.Fprint(w, "ok")
			}))
			in := func(mode config.Mode) *config.Config {
				c := config.ForUpstream("127.0.0.1:0", address)
				c.Listeners[0].Name, c.Mode = "main", mode
				return c
			}
			first := config.Mode("enforce")
			if row.observed {
				first = "observe"
			}
			p, err := Start(context.Background(), in(first), Config{})
			if err != nil {
				t.Fatal(err)
			}
			var url atomic.Value
			at := func() { url.Store("http://" + p.Addr("main").String()) }
			at()
			served, stop := &atomic.Int64{}, make(chan struct{})
			var clients sync.WaitGroup
			x := client(t, row.second)
			clients.Go(func() {
				tick := time.NewTicker(time.Second / (2 * capacity))
				defer tick.Stop()
				for {
					select {
					case <-stop:
						return
					case <-tick.C:
						clients.Go(func() { served.Add(impatient(x, url.Load().(string))) })
					}
				}
			})
			<-time.After(3 * time.Second)
			if row.observed {
				if err := p.Update(in("enforce")); err != nil {
					t.Fatal(err)
				}
				at()
			}
			if row.again {
				old := p
				if p, err = Start(context.Background(), in("enforce"), Config{}); err != nil {
					t.Fatal(err)
				}
				at()
				if err := old.Close(); err != nil {
					t.Error(err)
				}
			}
			<-time.After(time.Duration(queued.Load())*time.Second/capacity + 5*time.Second)
			served.Store(0)
			<-time.After(3 * time.Second)
			if n := served.Load(); n < 3*capacity*8/10 {
				t.Errorf("%d served in 3 s, the service can do %d", n, 3*capacity)
			}
			close(stop)
			clients.Wait()
			if err := p.Close(); err != nil {
				t.Error(err)
			}
		})
	}
}

// impatient sends a request whose client has little patience, and returns 1 if it was answered in time.
func impatient(c *http.Client, url string) int64 {
	ctx, leave := context.WithTimeout(context.Background(), 500*time.Millisecond)
	defer leave()
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, url, http.NoBody)
	if err != nil {
		return 0
	}
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
