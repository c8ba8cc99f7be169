package httpproxy

import (
	"fmt"
	"math/rand/v2"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/seed90641741/spillway/cmd/spillway/internal/gateway/config"
)

// clientAt is a client with its own address.
func clientAt(t *testing.T, second bool, address string) *http.Client {
	t.Helper()
	c := client(t, second)
	tr := c.Transport.(*http.Transport)
	tr.MaxIdleConnsPerHost = 1000
	tr.DialContext = (&net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(address)}}).DialContext
	return c
}

// A crowdCaller sends requests at random times with a given rate, without waiting for answers.
type crowdCaller struct {
	client  *http.Client
	rate    float64
	header  func() string // X-Customer; nil: none
	offered atomic.Int64
	served  atomic.Int64
}

func (c *crowdCaller) share() float64 {
	return float64(c.served.Load()) / float64(max(1, c.offered.Load()))
}

// run sends requests for a while. The first two seconds do not count.
func (c *crowdCaller) run(url string, d time.Duration) {
	var all sync.WaitGroup
	begin, due := time.Now(), 0.0
	for due < d.Seconds() {
		due += rand.ExpFloat64() / c.rate
		<-time.After(time.Until(begin.Add(time.Duration(due * float64(time.Second)))))
		all.Go(func() { c.ask(url, due > 2) })
	}
	all.Wait()
}

func (c *crowdCaller) ask(url string, counts bool) {
	r, _ := http.NewRequest(http.MethodGet, url, nil) // the client has a timeout
	if c.header != nil {
		r.Header.Set("X-Customer", c.header())
	}
	resp, err := c.client.Do(r)
	if err == nil {
		_ = resp.Body.Close()
	}
	if counts {
		c.offered.Add(1)
		if err == nil && resp.StatusCode == http.StatusOK {
			c.served.Add(1)
		}
	}
}

// TestGreedyAddress: one address asks for ten times what the upstream can do, with many
// connections or with many streams of one, and with a new name in each bare header. Twenty
// other addresses ask for 60 % of it. In the short form it is three times.
func TestGreedyAddress(t *testing.T) {
	if testing.Short() {
		t.Skip("takes seconds")
	}
	for _, second := range []bool{false, true} {
		t.Run(fmt.Sprint("HTTP/2 ", second), func(t *testing.T) {
			if !second && !*measure {
				t.Skip("a busy machine does not keep up with the connections")
			}
			const capacity = 4 / 0.02 // of small
			url, p := front(t, &small{places: make(chan struct{}, 4)}, func(c *config.Config) {
				c.Mode = "enforce"
				c.Clusters[0].Throttle.Mode = "off"
				c.Clusters[0].Shed.MaxInFlight = 6
			})
			excess := 3.0
			if *measure {
				excess = 10
			}
			greedy := &crowdCaller{client: clientAt(t, second, "127.0.0.2"), rate: excess * capacity}
			greedy.header = func() string { return fmt.Sprint(rand.Uint64()) }
			callers := []*crowdCaller{greedy}
			for i := range 20 {
				callers = append(callers, &crowdCaller{client: clientAt(t, second, fmt.Sprint("127.0.1.", i+1)), rate: 0.03 * capacity})
			}
			var all sync.WaitGroup
			for _, c := range callers {
				all.Go(func() { c.run(url, longer(4*time.Second, 12*time.Second)) })
			}
			all.Wait()
			var honest crowdCaller
			for _, c := range callers[1:] {
				honest.offered.Add(c.offered.Load())
				honest.served.Add(c.served.Load())
			}
			t.Logf("honest %.3f, greedy %.3f; %+v", honest.share(), greedy.share(), p.Stats(time.Now()).Gates[0].Shed)
			// On a busy machine all clients lose some requests: the others must still be better
			// off.
			if n := honest.served.Load() + greedy.served.Load(); !*measure && float64(n) < 2*capacity/4 {
				t.Skipf("the machine is too busy: %d requests served in two seconds", n)
			}
			if want := 0.98; *measure && honest.share() < want {
				t.Errorf("%.3f of the honest requests served, want %.2f", honest.share(), want)
			}
			if honest.share() < 2*greedy.share() {
				t.Errorf("%.3f of the honest requests served, and %.3f of those of the greedy caller", honest.share(), greedy.share())
			}
		})
	}
}
