package httpproxy

import (
	"io"
	"net/http"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/seed90641741/spillway/cmd/spillway/internal/gateway/config"
)

// small is an upstream that processes few requests at a time. Other requests wait.
type small struct {
	places        chan struct{}
	waiting, most atomic.Int64
	done          atomic.Int64
}

func (s *small) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	raise(&s.most, s.waiting.Add(1))
	s.places <- struct{}{}
	s.waiting.Add(-1)
	<-time.After(20 * time.Millisecond)
	<-s.places
	s.done.Add(1)
	_, _ = io.WriteString(w, "done")
}

// TestCapacityIsFound offers an upstream with four slots three times its capacity. The gate
// must find by itself that few concurrent requests are enough, and reject the others, the
// least critical ones first.
func TestCapacityIsFound(t *testing.T) {
	if testing.Short() {
		t.Skip("takes seconds")
	}
	quiet(t)
	s := &small{places: make(chan struct{}, 4)} // 200 a second
	url, p := front(t, s, func(c *config.Config) {
		c.Mode = "enforce"
		c.Clusters[0].Throttle.Mode = "off"
	})
	x := client(t, false)
	x.Transport.(*http.Transport).MaxIdleConnsPerHost = 1000
	stop := make(chan struct{})
	var load sync.WaitGroup
	var served, rejected [2]atomic.Int64
	call := func(i int) {
		class := []string{"SHEDDABLE", "CRITICAL"}[i]
		switch resp, _ := do(t, x, http.MethodGet, url, "", "X-Request-Criticality", class); {
		case resp.StatusCode == http.StatusOK:
			served[i].Add(1)
		case resp.Header.Get("X-Envoy-Overloaded") != "true" || resp.StatusCode != http.StatusServiceUnavailable:
			t.Errorf("answered %s, %v", resp.Status, resp.Header)
		default:
			rejected[i].Add(1)
		}
	}
	load.Go(func() { // open loop: what waits holds no arrival back
		ticks := time.NewTicker(10 * time.Millisecond)
		defer ticks.Stop()
		for {
			select {
			case <-stop:
				return
			case <-ticks.C:
				for i := range 6 {
					load.Go(func() { call(i % 2) })
				}
			}
		}
	})
	most, windows := int64(200), 0
	for ; most > 100 && windows < 5; windows++ { // others want the machine, too
		<-time.After(1500 * time.Millisecond)
		most = s.most.Swap(0)
	}
	stats := p.Stats(time.Now())
	close(stop)
	load.Wait()
	t.Logf("%d windows: %d done, in the last at most %d waiting; served %d and %d, rejected %d and %d; in flight %.1f of %.1f",
		windows, s.done.Load(), most, served[0].Load(), served[1].Load(), rejected[0].Load(), rejected[1].Load(),
		float64(stats.Gates[0].Concurrency.Shared.InFlight), stats.Gates[0].Concurrency.Tightest().Limit)
	if most > 100 {
		t.Errorf("%d requests waited at the upstream: its capacity was not found", most)
	}
	if rejected[0].Load() == 0 || served[0].Load() > served[1].Load() {
		t.Errorf("served %d sheddable and %d critical requests", served[0].Load(), served[1].Load())
	}
}
