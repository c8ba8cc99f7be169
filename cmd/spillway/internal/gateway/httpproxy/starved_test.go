package httpproxy

import (
	"flag"
	"net/http"
	"os"
	"os/exec"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/seed90641741/spillway/cmd/spillway/internal/gateway/config"
)

var starved = flag.Duration("starved", 4*time.Second, "how long the burners of TestStarvedHost run, each time")

// TestMain burns a processor, where TestStarvedHost has asked for it, until its input ends.
func TestMain(m *testing.M) {
	if os.Getenv("SPILLWAY_TEST_BURN") == "" {
		os.Exit(m.Run())
	}
	go func() {
		_, _ = os.Stdin.Read(make([]byte, 1))
		os.Exit(0)
	}()
	for x := 1; ; x++ {
		if x == 0 {
			os.Exit(1)
		}
	}
}

// burn starts busy loops in processes of their own, and returns how to end them.
func burn(t *testing.T, n int) (stop func()) {
	t.Helper()
	var ends []func()
	for range n {
		c := exec.Command(os.Args[0])
		c.Env = append(os.Environ(), "SPILLWAY_TEST_BURN=1", "GOMAXPROCS=2")
		in, err := c.StdinPipe()
		if err == nil {
			err = c.Start()
		}
		if err != nil {
			t.Fatal(err)
		}
		ends = append(ends, func() { _ = in.Close(); _ = c.Wait() })
	}
	return sync.OnceFunc(func() {
		for _, end := range ends {
			end()
		}
	})
}

// pooled is two pools of 8 places of 20 ms, by the first letter of the path.
type pooled struct {
	places [2]chan struct{}
	done   [2]atomic.Int64
}

func (p *pooled) ServeHTTP(_ http.ResponseWriter, r *http.Request) {
	i, _ := strconv.Atoi(r.URL.Path[1:2])
	p.places[i] <- struct{}{}
	<-time.After(20 * time.Millisecond)
	<-p.places[i]
	p.done[i].Add(1)
}

// TestStarvedHost offers two pools behind the proxy 2.5 times what they can do, by class,
// while busy loops take the host's processors away. What then takes longer says nothing of
// the pools: their limits must stay, and what they can still do be answered in time.
func TestStarvedHost(t *testing.T) {
	needMachine(t)
	quiet(t)
	up := &pooled{places: [2]chan struct{}{make(chan struct{}, 8), make(chan struct{}, 8)}}
	url, p := front(t, up, func(c *config.Config) {
		c.Mode = "enforce"
		second := c.Clusters[0]
		second.Name = "second"
		c.Clusters = append(c.Clusters, second)
		c.Routes = []config.Route{{Path: "/1", Cluster: "second"}, {Path: "/", Cluster: c.Clusters[0].Name}}
		for i := range c.Clusters {
			c.Clusters[i].Throttle.Mode = "off"
		}
	})
	x := client(t, false)
	x.Transport.(*http.Transport).MaxIdleConnsPerHost = 2000
	x.Timeout = 2 * time.Second
	var good [2]atomic.Int64 // by class
	var load sync.WaitGroup
	stop := make(chan struct{})
	call := func(i int) {
		class := i / 2 % 2
		r, _ := http.NewRequest(http.MethodGet, url+"/"+strconv.Itoa(i%2), nil)
		r.Header.Set("X-Request-Criticality", []string{"SHEDDABLE", "CRITICAL"}[class])
		begin := time.Now()
		resp, err := x.Do(r)
		if err != nil {
			return
		}
		_ = resp.Body.Close()
		if resp.StatusCode == http.StatusOK && time.Since(begin) < time.Second {
			good[class].Add(1)
		}
	}
	load.Go(func() {
		for i, begin := 0, time.Now(); ; {
			select {
			case <-stop:
				return
			case <-time.After(5 * time.Millisecond):
			}
			for due := int(time.Since(begin).Seconds() * 2000); i < due; i++ {
				load.Go(func() { call(i) })
			}
		}
	})
	// phase returns the share of what the pools did that was in time, and the extremes of
	// the limits.
	phase := func(name string, length time.Duration) (ratio, most float64) {
		for i := range good {
			good[i].Store(0)
		}
		done := up.done[0].Load() + up.done[1].Load()
		least := 1e9
		for end := time.Now().Add(length); time.Now().Before(end); {
			<-time.After(100 * time.Millisecond)
			for _, g := range p.Stats(time.Now()).Gates {
				k := g.Concurrency.Tightest()
				if !k.Limiting() {
					most = 1e9
				}
				least, most = min(least, max(k.Limit, float64(k.InFlight))), max(most, k.Limit)
			}
		}
		low, high := good[0].Load(), good[1].Load()
		ratio = float64(low+high) / float64(up.done[0].Load()+up.done[1].Load()-done)
		t.Logf("%-12s in time %.3f of what the pools did; %.0f/s SHEDDABLE, %.0f/s CRITICAL; limits %.1f to %.1f",
			name, ratio, float64(low)/length.Seconds(), float64(high)/length.Seconds(), least, most)
		return ratio, most
	}
	phase("cold", 3*time.Second)
	before, _ := phase("quiet", *starved)
	for _, n := range []int{4, 8} {
		end := burn(t, n)
		ratio, most := phase(strconv.Itoa(n)+" burners", *starved)
		end()
		if ratio < 0.9*before {
			t.Errorf("with %d burners %.3f of what the pools did was in time, without %.3f", n, ratio, before)
		}
		if most > 3*8*1.5 {
			t.Errorf("with %d burners a limit went up to %.1f", n, most)
		}
		<-time.After(time.Second)
		if ratio, _ := phase("after", 2*time.Second); ratio < 0.9*before {
			t.Errorf("a second after %d burners %.3f of what the pools did was in time, before %.3f", n, ratio, before)
		}
	}
	close(stop)
	load.Wait()
}
