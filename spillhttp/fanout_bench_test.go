//go:build unix

package spillhttp

import (
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"os/exec"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/seed90641741/spillway/ingress"
	"github.com/seed90641741/spillway/shed"
)

// BenchmarkFanOut sends requests at four fifths of what a server with one processor can serve;
// every hundredth request starts 300 goroutines. It reports the number of rejections, which
// should be zero: run it with -benchtime 10000x.
func BenchmarkFanOut(b *testing.B) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	const work, share = time.Millisecond, 0.8
	for _, goroutines := range []int{0, 300} {
		b.Run(fmt.Sprint(goroutines), func(b *testing.B) {
			var n atomic.Int64
			h := mustHandler(b, http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
				if n.Add(1)%100 == 0 {
					fanOut(goroutines)
				}
				burn(work)
			}), ingress.Config{}, HandlerConfig{})
			server := &http.Server{ErrorLog: quiet, Handler: h}
			l := must(net.Listen("tcp", "127.0.0.1:0"))
			var served sync.WaitGroup
			served.Go(func() { _ = h.Serve(server, l) })
			ctx, cancel := context.WithCancel(b.Context())
			defer cancel()
			c := exec.CommandContext(ctx, must(os.Executable()), "-test.run=^TestPace$")
			c.Env = append(os.Environ(), fmt.Sprint(pacing, "=", l.Addr(), " ", b.N, " ", work.Seconds()/share))
			if out, err := c.CombinedOutput(); err != nil {
				b.Errorf("%v: %s", err, out)
			}
			b.ReportMetric(float64(rejectedIn(h.ingress.Stats(time.Now()).Shed)), "rejected")
			server.Close()
			served.Wait()
		})
	}
}

func rejectedIn(s shed.Stats) (n uint64) {
	for _, c := range s.Classes {
		n += c.RejectedTotal
	}
	return n
}

// fanOut calls n backends that answer in a millisecond each.
func fanOut(n int) {
	var all sync.WaitGroup
	for range n {
		all.Go(func() {
			<-time.After(time.Millisecond)
			burn(2 * time.Microsecond)
		})
	}
	all.Wait()
}

// burn keeps a processor busy.
func burn(d time.Duration) {
	n := 0
	for start := time.Now(); time.Since(start) < d; {
		n++
	}
}

const pacing = "SPILLHTTP_PACE"

// TestPace are the clients of BenchmarkFanOut.
func TestPace(t *testing.T) {
	var addr string
	var n int
	var gap float64
	if _, err := fmt.Sscan(os.Getenv(pacing), &addr, &n, &gap); err != nil {
		t.Skip("only if BenchmarkFanOut asks for it")
	}
	client := &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 1000}}
	var all sync.WaitGroup
	for next := time.Now(); n > 0; n-- {
		next = next.Add(time.Duration(rand.ExpFloat64() * gap * float64(time.Second)))
		<-time.After(time.Until(next))
		all.Go(func() {
			r := must(http.NewRequestWithContext(context.Background(), http.MethodGet, "http://"+addr, nil))
			resp, err := client.Do(r)
			if err != nil {
				t.Error(err)
				return
			}
			_, _ = io.Copy(io.Discard, resp.Body)
			resp.Body.Close()
		})
	}
	all.Wait()
}
