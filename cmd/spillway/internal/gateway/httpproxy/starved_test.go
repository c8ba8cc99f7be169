package httpproxy

import (
	"bufio"
	"errors"
	"flag"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/seed90641741/spillway/cmd/spillway/internal/gateway/config"
)

var starved = flag.Duration("starved", 5*time.Second, "how long TestStarvedHost loads each proxy, each time")

// TestMain is also what TestStarvedHost starts as processes of their own.
func TestMain(m *testing.M) {
	switch os.Getenv("SPILLWAY_TEST_ROLE") {
	case "burner":
		burner()
	case "pools":
		pools()
	case "callers":
		callers()
	default:
		os.Exit(m.Run())
	}
}

// burner burns a processor until its input ends.
func burner() {
	go func() {
		for x := 1; ; x++ {
			if x == 0 {
				os.Exit(1)
			}
		}
	}()
	_, _ = io.Copy(io.Discard, os.Stdin)
}

// pools serves two pools of 8 places of 20 ms, by the first letter of the path. It says its
// address, and for each line how many requests it has served since the last one.
func pools() {
	places := [2]chan struct{}{make(chan struct{}, 8), make(chan struct{}, 8)}
	var done atomic.Int64
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		panic(err)
	}
	go func() {
		panic(http.Serve(ln, http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
			i, _ := strconv.Atoi(r.URL.Path[1:2])
			select {
			case places[i] <- struct{}{}:
			case <-r.Context().Done():
				return
			}
			<-time.After(20 * time.Millisecond)
			<-places[i]
			done.Add(1)
		})))
	}()
	fmt.Println(ln.Addr())
	for lines := bufio.NewScanner(os.Stdin); lines.Scan(); {
		fmt.Println(done.Swap(0))
	}
}

// callers offers the pools behind a proxy 2.5 times what they can do, half of it CRITICAL and
// half SHEDDABLE. Each line is the address of the proxy from now on. For each it says how many
// requests were answered within a second since the last one, SHEDDABLE and CRITICAL.
func callers() {
	x := http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 2000}, Timeout: 2 * time.Second}
	var good [2]atomic.Int64
	call := func(url string, pool, class int) {
		r, err := http.NewRequest(http.MethodGet, url+"/"+strconv.Itoa(pool), nil)
		if err != nil {
			panic(err)
		}
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
	var url atomic.Value
	load := func() {
		for i, begin := 0, time.Now(); ; <-time.After(5 * time.Millisecond) {
			for due := int(time.Since(begin).Seconds() * 2000); i < due; i++ {
				go call(url.Load().(string), i%2, i/2%2)
			}
		}
	}
	for lines := bufio.NewScanner(os.Stdin); lines.Scan(); {
		url.Store(lines.Text())
		if load != nil {
			go load()
			load = nil
		}
		fmt.Println(good[0].Swap(0), good[1].Swap(0))
	}
}

// An actor is a process that answers lines.
type actor struct {
	t   *testing.T
	in  io.WriteCloser
	out *bufio.Reader
}

// act starts an actor. It ends with the test, or before.
func act(t *testing.T, role string) (a *actor, end func()) {
	t.Helper()
	c := exec.Command(os.Args[0])
	c.Env, c.Stderr = append(os.Environ(), "SPILLWAY_TEST_ROLE="+role, "GOMAXPROCS=2"), os.Stderr
	in, err := c.StdinPipe()
	out, err2 := c.StdoutPipe()
	if err = errors.Join(err, err2); err == nil {
		err = c.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	end = sync.OnceFunc(func() { _ = in.Close(); _ = c.Wait() })
	t.Cleanup(end)
	return &actor{t, in, bufio.NewReader(out)}, end
}

// hear reads numbers that an actor says.
func (a *actor) hear(to ...any) {
	a.t.Helper()
	if _, err := fmt.Fscanln(a.out, to...); err != nil {
		a.t.Fatal(err)
	}
}

// ask sends a line and reads the numbers that are the answer.
func (a *actor) ask(line string, to ...any) {
	a.t.Helper()
	if _, err := fmt.Fprintln(a.in, line); err != nil {
		a.t.Fatal(err)
	}
	a.hear(to...)
}

// A contender is a proxy in front of the pools.
type contender struct {
	name  string
	url   string
	proxy *Proxy
	good  float64 // requests answered in time, of all turns of a phase
	done  float64 // by the pools, likewise
	most  float64 // value of a limit
}

// contend starts a proxy whose limits are learnt, or fixed if that is not 0.
func contend(t *testing.T, address, name string, fixed int) *contender {
	c := config.ForUpstream("127.0.0.1:0", address)
	c.Mode = "enforce"
	c.Clusters[0].Throttle.Mode = "off"
	if fixed > 0 {
		c.Clusters[0].Shed.MaxInFlight, c.Clusters[0].Shed.Fixed = fixed, true
	}
	second := c.Clusters[0]
	second.Name = "second"
	c.Clusters = append(c.Clusters, second)
	c.Routes = []config.Route{{Path: "/1", Cluster: "second"}, {Path: "/", Cluster: c.Clusters[0].Name}}
	p := start(t, c)
	return &contender{name: name, url: "http://" + p.Addr("").String(), proxy: p}
}

// TestStarvedHost offers two pools behind the proxy 2.5 times what they can do, by class,
// while busy loops take the host's processors away. What then takes longer says nothing of
// the pools: their limits must stay, and as many requests be answered in time as with the
// best fixed limit, in front of which the same load is in turns.
func TestStarvedHost(t *testing.T) {
	needMachine(t)
	quiet(t)
	pools, _ := act(t, "pools")
	var address string
	pools.hear(&address)
	load, _ := act(t, "callers")
	both := []*contender{contend(t, address, "adaptive", 0), contend(t, address, "fixed", 12)}

	// turn loads one of them for a while.
	turn := func(c *contender, length time.Duration) {
		var low, high, done float64
		load.ask(c.url, &low, &high)
		pools.ask("", &done)
		c.most = 0
		for end := time.Now().Add(length); time.Now().Before(end); {
			<-time.After(100 * time.Millisecond)
			for _, g := range c.proxy.Stats(time.Now()).Gates {
				c.most = max(c.most, g.Concurrency.Tightest().Limit)
			}
		}
		load.ask(c.url, &low, &high)
		pools.ask("", &done)
		c.good, c.done = c.good+low+high, c.done+done
		t.Logf("%-9s %4.0f/s SHEDDABLE, %4.0f/s CRITICAL in time, %4.0f/s by the pools; limits up to %.1f",
			c.name, low/length.Seconds(), high/length.Seconds(), done/length.Seconds(), c.most)
	}
	for _, c := range both {
		turn(c, 3*time.Second)
	}
	for _, n := range []int{0, 4, 0, 8, 0} {
		t.Logf("with %d burners:", n)
		var ends []func()
		for range n {
			_, end := act(t, "burner")
			ends = append(ends, end)
		}
		for _, c := range both {
			c.good, c.done = 0, 0
		}
		for range 2 {
			for _, c := range both {
				turn(c, *starved)
				if c.most > 3*8*1.5 && c.proxy == both[0].proxy {
					t.Errorf("with %d burners a limit went up to %.1f", n, c.most)
				}
			}
		}
		for _, end := range ends {
			end()
		}
		if ours, best := both[0].good, both[1].good; ours < 0.9*best {
			t.Errorf("with %d burners %.0f were answered in time, with a fixed limit %.0f", n, ours, best)
		}
	}
	var low, high float64
	load.ask(strings.Replace(both[0].url, "http:", "none:", 1), &low, &high)
}
