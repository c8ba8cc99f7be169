package httpproxy

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/seed90641741/spillway/cmd/spillway/internal/gateway/config"
	"github.com/seed90641741/spillway/cmd/spillway/internal/gateway/gatewaytest"
	"github.com/seed90641741/spillway/internal/race"
	"github.com/seed90641741/spillway/internal/thorough"
)

// A service works on for clients that have left: 2 × 20 ms, 100 requests per second. Its clients hang up after half a second, and send
// more, half of it SHEDDABLE. A proxy that starts into that, is switched from observe to enforce in it, or is started again in it, serves
// 80 % of what the service can do 15 s after what waits there is done, and the CRITICAL requests first.
func TestColdStart(t *testing.T) {
	if race.Enabled {
		t.Skip("it measures throughput, and the race detector takes most of the processor")
	}
	quiet(t)
	for name, row := range map[string]struct {
		observed, again, second, grpc, long bool
		times                               int
		timeout                             string // that clients of gRPC send
	}{
		"started":                 {times: 2, long: true},
		"switched":                {times: 2, observed: true},
		"switched, HTTP/2":        {times: 2, observed: true, second: true, long: true},
		"started again":           {times: 2, again: true, long: true},
		"started, gRPC":           {times: 2, second: true, grpc: true, long: true},
		"started, gRPC, 10 times": {times: 10, second: true, grpc: true, long: true},
		"switched, gRPC":          {times: 2, observed: true, second: true, grpc: true, long: true},
		"switched, gRPC, timeout": {times: 2, observed: true, second: true, grpc: true, timeout: "500m", long: true},
		"started again, gRPC":     {times: 2, again: true, second: true, grpc: true, long: true},
	} {
		t.Run(name, func(t *testing.T) {
			if row.long && !thorough.Enabled() {
				t.Skip("it takes more than ten seconds of real time: run it with -tags thorough")
			}
			pool := gatewaytest.NewPool()
			address, _ := upstreamAt(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				pool.Work()
				if row.grpc {
					echoing(w, r)
					return
				}
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
			x := client(t, row.second)
			stop := pool.Offer(row.times, func(class int) bool {
				return impatient(x, url.Load().(string), []string{"SHEDDABLE", "CRITICAL"}[class], row.grpc, row.timeout)
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
			<-time.After(2 * time.Second) // clients leave after half a second: until then a proxy that has just begun knows nothing
			if err := pool.AwaitProtection(); err != nil {
				t.Error(err)
			}
			stop()
			if err := p.Close(); err != nil {
				t.Error(err)
			}
		})
	}
}

// impatient sends a request whose client has little patience, and reports whether it was answered in time.
func impatient(c *http.Client, url, class string, grpc bool, timeout string) bool {
	ctx, leave := context.WithTimeout(context.Background(), 500*time.Millisecond)
	defer leave()
	var body io.Reader
	if grpc {
		body = strings.NewReader(frame("work"))
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, url+"/a.B/C", body)
	if err != nil {
		return false
	}
	r.Header.Set("X-Request-Criticality", class)
	if grpc {
		r.Header.Set("Content-Type", "application/grpc")
		r.Header.Set("Te", "trailers")
		r.Header["Grpc-Timeout"] = strings.Fields(timeout)
	}
	answer, err := c.Do(r)
	if err != nil {
		return false
	}
	defer func() { _ = answer.Body.Close() }()
	_, err = io.Copy(io.Discard, answer.Body)
	return err == nil && answer.StatusCode == http.StatusOK && (!grpc || answer.Trailer.Get("Grpc-Status") == "0")
}
