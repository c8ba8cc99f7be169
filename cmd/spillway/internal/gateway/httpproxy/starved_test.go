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

// giveUp ends a process of the test, which then misses its answer and fails.
func giveUp(err error) {
	fmt.Fprintln(os.Stderr, err)
	os.Exit(1)
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
		giveUp(err)
	}
	go func() {
		giveUp(http.Serve(ln, http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
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
	fmt.Fprintln(os.Stdout, ln.Addr())
	for lines := bufio.NewScanner(os.Stdin); lines.Scan(); {
		fmt.Fprintln(os.Stdout, done.Swap(0))
	}
}

// callers offers the pools behind a proxy 2.5 times what they can do, half of it CRITICAL and
// half SHEDDABLE. It waits for 256 answers at most: without a processor it would be busy with calls that it has given up, also when
// the processors are free again. Each line is the address of the proxy from now on. For each it says how many
// requests were answered within a second since the last one, SHEDDABLE and CRITICAL.
func callers() {
	x := http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 2000}, Timeout: 2 * time.Second}
	var good [2]atomic.Int64
	places := make(chan struct{}, 256)
	call := func(url string, pool, class int) {
		defer func() { <-places }()
		r, err := http.NewRequest(http.MethodGet, url+"/"+strconv.Itoa(pool), nil)
		if err != nil {
			giveUp(err)
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
				select {
				case places <- struct{}{}:
					go call(url.Load().(string), i%2, i/2%2)
				default:
				}
			}
		}
	}
	for lines := bufio.NewScanner(os.Stdin); lines.Scan(); {
		url.Store(lines.Text())
		if load != nil {
			go load()
			load = nil
		}
		fmt.Fprintln(os.Stdout, good[0].Swap(0), good[1].Swap(0))
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
	good  [2]float64 // requests answered in time in this phase, SHEDDABLE and CRITICAL
	most  float64    // highest value of a limit
}

// contend starts a proxy whose limits are learnt, or fixed if that is not 0.
func contend(t *testing.T, address, name string, fixed int) *contender {
	t.Helper()
	c := config.ForUpstream("127.0.0.1:0", address)
	c.Mode = "enforce"
	first := &c.Clusters[0]
	first.Throttle.Mode = "off"
	if fixed > 0 {
		first.Shed.MaxInFlight, first.Shed.Fixed = fixed, true
	}
	second := *first
	second.Name = "second"
	c.Routes = []config.Route{{Path: "/1", Cluster: "second"}, {Path: "/", Cluster: first.Name}}
	c.Clusters = append(c.Clusters, second)
	p := start(t, c)
	return &contender{name: name, url: "http://" + p.Addr("").String(), proxy: p}
}

// A starving is the test of two contenders, whose turn is one after the other: the machine is
// not equally fast all the time.
type starving struct {
	*testing.T

	pools, load    *actor
	learnt, static *contender
}

// turn loads a contender for a while.
func (s *starving) turn(c *contender, length time.Duration) {
	var low, high float64
	s.load.ask(c.url, &low, &high)
	for end := time.Now().Add(length); time.Now().Before(end); {
		<-time.After(50 * time.Millisecond)
		for _, g := range c.proxy.Stats(time.Now()).Gates {
			c.most = max(c.most, g.Concurrency.Tightest().Limit)
		}
	}
	s.load.ask(c.url, &low, &high)
	c.good[0], c.good[1] = c.good[0]+low, c.good[1]+high
}

// phase gives each contender its turns. The limits must stay within three times those of 8
// places, and as many requests must be answered in time as with a fixed limit.
func (s *starving) phase(name string, rounds int, length time.Duration) {
	var done float64
	s.pools.ask("", &done)
	for _, c := range []*contender{s.learnt, s.static} {
		c.good, c.most = [2]float64{}, 0
	}
	for range rounds {
		s.turn(s.learnt, length)
		s.turn(s.static, length)
	}
	s.pools.ask("", &done)
	for _, c := range []*contender{s.learnt, s.static} {
		took := float64(rounds) * length.Seconds()
		s.Logf("%-10s %-8s %3.0f/s SHEDDABLE, %3.0f/s CRITICAL in time; limits up to %.1f", name, c.name, c.good[0]/took, c.good[1]/took, c.most)
	}
	ours, best := s.learnt.good[0]+s.learnt.good[1], s.static.good[0]+s.static.good[1]
	s.Logf("%-10s as many as with the fixed limit: %.3f; of what the pools did: %.3f", name, ours/best, (ours+best)/done)
	if ours < 0.9*best {
		s.Errorf("%s: %.0f were answered in time, with a fixed limit %.0f", name, ours, best)
	}
	if s.learnt.most > 3*1.5*8 {
		s.Errorf("%s: a limit went up to %.1f", name, s.learnt.most)
	}
	if s.learnt.good[0] > 0.25*ours {
		s.Errorf("%s: %.0f of %.0f requests that were answered in time are SHEDDABLE", name, s.learnt.good[0], ours)
	}
}

// TestStarvedHost offers two pools behind the proxy 2.5 times what they can do, by class,
// while busy loops take the host's processors away. What then takes longer says nothing of
// the pools. All are processes of their own, as on a host: clients in the process of the
// proxy would have to share what the system gives to it.
func TestStarvedHost(t *testing.T) {
	needMachine(t)
	quiet(t)
	s := starving{T: t}
	s.pools, _ = act(t, "pools")
	var address string
	s.pools.hear(&address)
	s.load, _ = act(t, "callers")
	s.learnt, s.static = contend(t, address, "learnt", 0), contend(t, address, "fixed", 12)
	s.turn(s.learnt, 2*time.Second)
	s.turn(s.static, 2*time.Second)
	s.phase("quiet", 3, time.Second)
	for _, n := range []int{4, 8} {
		var ends []func()
		for range n {
			_, end := act(t, "burner")
			ends = append(ends, end)
		}
		s.phase(strconv.Itoa(n)+" burners", int(starved.Seconds()), time.Second)
		for _, end := range ends {
			end()
		}
		<-time.After(time.Second)
		s.phase("after", 2, time.Second)
	}
}
