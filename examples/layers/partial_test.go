package layers

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"net"
	"net/http"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/balancer"
	"google.golang.org/grpc/resolver"
	"google.golang.org/grpc/resolver/manual"

	"github.com/seed90641741/spillway"
	"github.com/seed90641741/spillway/egress"
	"github.com/seed90641741/spillway/ingress"
	"github.com/seed90641741/spillway/shed"
	"github.com/seed90641741/spillway/spillgrpc"
	"github.com/seed90641741/spillway/spillhttp"
)

func init() { balancer.Register(spillgrpc.NewBalancer(nil)) } //nolint:gochecknoinits // as grpc wants it

const (
	tasks = 4
	slots = 16 // calls that a task serves at once; the others wait in it
	mean  = 20 * time.Millisecond
	// capacity is how many calls all tasks can serve in a second.
	capacity = tasks * slots / 0.02
)

// A task serves some calls at once. It is protected as other servers are, and does not
// know how many.
type task struct {
	slots         chan time.Time // the free ones, each with when it was to be free
	served, asked atomic.Int64
}

func newTask() *task {
	x := &task{slots: make(chan time.Time, slots)}
	for range slots {
		x.slots <- time.Time{}
	}
	return x
}

// weaken leaves a task a quarter of its capacity, from now on.
func (x *task) weaken() {
	for range slots - slots/4 {
		<-x.slots
	}
}

func (x *task) work(ctx context.Context) error {
	x.asked.Add(1)
	begin := time.Now()
	select {
	case free := <-x.slots:
		if free.After(begin) { // a timer that is late costs no capacity
			begin = free
		}
	case <-ctx.Done():
		return ctx.Err()
	}
	end := begin.Add(mean/2 + rand.N(mean))
	time.Sleep(time.Until(end))
	x.slots <- end
	x.served.Add(1)
	return nil
}

// protection is that of a task. A call that another task can serve at once is better
// rejected soon than kept waiting; what these tasks do needs no processor.
var protection = ingress.Config{
	Shed:      shed.Config{MaxWait: 15 * time.Millisecond},
	Trust:     ingress.Trust{Boundary: ingress.Internal},
	ProxyOnly: true,
}

// A measured load is what its clients saw.
type measured struct {
	calls, served int
	attempts      atomic.Int64
	mu            sync.Mutex
	latencies     []time.Duration
	failures      map[string]int // by their text
}

func (m *measured) success() float64       { return float64(m.served) / float64(m.calls) }
func (m *measured) amplification() float64 { return float64(m.attempts.Load()) / float64(m.calls) }

// good reports whether nearly all calls were served, for few attempts more.
func (m *measured) good() bool { return m.success() >= 0.995 && m.amplification() <= 1.1 }

func (m *measured) p99() time.Duration { return m.quantile(0.99) }

func (m *measured) quantile(q float64) time.Duration {
	if len(m.latencies) == 0 {
		return 0
	}
	slices.Sort(m.latencies)
	return m.latencies[int(float64(len(m.latencies))*q)]
}

func (m *measured) String() string {
	text := fmt.Sprintf("%d calls, success %.4f, amplification %.3f, p50 %v, p99 %v", m.calls, m.success(), m.amplification(),
		m.quantile(0.5).Round(100*time.Microsecond), m.p99().Round(100*time.Microsecond))
	for _, failure := range slices.Sorted(maps.Keys(m.failures)) {
		text += fmt.Sprintf("\n%6d × %s", m.failures[failure], failure)
	}
	return text
}

// offer makes calls at random times, without waiting for their ends, and then waits for them.
func (m *measured) offer(rate float64, d time.Duration, call func() error) {
	var all sync.WaitGroup
	start := time.Now()
	for next := time.Duration(0); next < d; next += time.Duration(rand.ExpFloat64() / rate * float64(time.Second)) {
		if wait := next - time.Since(start); wait > 0 {
			time.Sleep(wait)
		}
		m.calls++
		all.Go(func() {
			begun := time.Now()
			err := call()
			m.mu.Lock()
			defer m.mu.Unlock()
			if err != nil {
				if m.failures == nil {
					m.failures = make(map[string]int)
				}
				m.failures[err.Error()]++
				return
			}
			m.served++
			m.latencies = append(m.latencies, time.Since(begun))
		})
	}
	all.Wait()
}

// A system connects a caller to tasks.
type system func(t *testing.T, n *network, all []*task, attempts *atomic.Int64) caller

// A caller makes calls, and says how its policies stand.
type caller struct {
	call  func() error
	stats func() map[string]egress.Stats
}

// standing is how the policies of a caller stand, for a test that has failed.
func (c *caller) standing() string {
	text := ""
	for backend, s := range c.stats() {
		throttled := s.Throttle[spillway.Critical.Index()]
		text += fmt.Sprintf("\n%s: throttle %+v, in flight %+v", backend, throttled, s.Inflight)
	}
	return text
}

// overGRPC calls tasks by the round_robin of grpc, under the balancer that skips tasks
// which have rejected calls, until the time that they gave has passed.
func overGRPC(t *testing.T, n *network, all []*task, attempts *atomic.Int64) caller {
	t.Helper()
	var addresses []resolver.Address
	for _, x := range all {
		address := n.serveGRPC(&service{unary: x.work}, spillgrpc.ServerConfig{Ingress: newIngress(t, protection)})
		addresses = append(addresses, resolver.Address{Addr: address})
	}
	r := manual.NewBuilderWithScheme("tasks")
	r.InitialState(resolver.State{Addresses: addresses})
	client := must(spillgrpc.NewClient(spillgrpc.ClientConfig{Classify: idempotent}))
	cc := n.channel("tasks:///", append(client.DialOptions(),
		grpc.WithResolvers(r),
		grpc.WithDefaultServiceConfig(must(spillgrpc.BalancerConfig{Cluster: t.Name()}.ServiceConfig())),
		grpc.WithChainUnaryInterceptor(func(ctx context.Context, method string, req, reply any, cc *grpc.ClientConn, invoke grpc.UnaryInvoker, opts ...grpc.CallOption) error {
			attempts.Add(1)
			return invoke(ctx, method, req, reply, cc, opts...)
		}))...)
	return caller{func() error { return call(context.Background(), cc) }, client.Stats}
}

// behindAddress calls tasks by HTTP/1.1 behind one address, whose balancer passes each
// connection on to the next task, and knows nothing of requests.
func behindAddress(t *testing.T, n *network, all []*task, attempts *atomic.Int64) caller {
	t.Helper()
	var addresses []string
	for _, x := range all {
		h := must(spillhttp.NewHandler(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if x.work(r.Context()) != nil {
				w.WriteHeader(http.StatusInternalServerError)
			}
		}), spillhttp.HandlerConfig{Ingress: newIngress(t, protection)}))
		addresses = append(addresses, n.serve(h))
	}
	virtual := n.balance(addresses)
	base := n.transport()
	client := must(spillhttp.NewTransport(spillhttp.TransportConfig{Base: counting{base, attempts}, Egress: egress.Config{}}))
	return caller{func() error {
		code, err := get(context.Background(), client, virtual)
		if err == nil && code != http.StatusOK {
			err = errors.New(http.StatusText(code))
		}
		return err
	}, client.Stats}
}

// counting counts requests.
type counting struct {
	next http.RoundTripper
	n    *atomic.Int64
}

// RoundTrip implements [http.RoundTripper].
func (c counting) RoundTrip(r *http.Request) (*http.Response, error) {
	c.n.Add(1)
	return c.next.RoundTrip(r)
}

// balance passes connections to a new address on to others, in turn.
func (n *network) balance(to []string) (address string) {
	n.t.Helper()
	l, address := n.listen(false)
	var running sync.WaitGroup
	running.Go(func() {
		for i := 0; ; i++ {
			c, err := l.Accept()
			if err != nil {
				return
			}
			running.Go(func() { n.pass(c, to[i%len(to)]) })
		}
	})
	n.t.Cleanup(func() {
		_ = l.Close()
		running.Wait()
	})
	return address
}

// pass copies what comes by a connection to another one, and back, until one end closes.
func (n *network) pass(c net.Conn, to string) {
	defer c.Close()
	up, err := n.dial(context.Background(), to)
	if err != nil {
		return
	}
	defer up.Close()
	var both sync.WaitGroup
	both.Go(func() {
		_, _ = io.Copy(up, c)
		_ = up.Close()
	})
	_, _ = io.Copy(c, up)
	_ = c.Close()
	both.Wait()
}

// try offers the load to a system, in which one task may be weak.
func try(t *testing.T, sockets, weak bool, how system) *measured {
	t.Helper()
	n := newNetwork(t, sockets)
	var all []*task
	for range tasks {
		all = append(all, newTask())
	}
	var attempts atomic.Int64
	client := how(t, n, all, &attempts)
	rate, warm, long := 0.7*capacity, 2*time.Second, 3*time.Second
	if sockets {
		warm, long = 5*time.Second, 20*time.Second
	}
	offer := func(d time.Duration) *measured {
		m, before := new(measured), attempts.Load()
		m.offer(rate, d, client.call)
		m.attempts.Store(attempts.Load() - before)
		return m
	}
	well := offer(warm)
	if weak {
		all[0].weaken()
	}
	soon, standing := offer(warm), client.standing()
	m := offer(long)
	shares := ""
	for _, x := range all {
		shares += fmt.Sprintf(" [began %d, served %d]", x.asked.Load(), x.served.Load())
	}
	t.Logf("weak %v: %v;%s", weak, m, shares)
	if !m.good() {
		t.Logf("while all tasks were well: %v\nright after: %v%s\nat the end:%s", well, soon, standing, client.standing())
	}
	return m
}

// TestOneOfFourIsWeak has one of four tasks at a quarter of its capacity: nearly all calls
// are served, for few attempts more. The load is 70 % of what all tasks could do. With sockets
// the latency is about that without any overload, too.
func TestOneOfFourIsWeak(t *testing.T) {
	for name, how := range map[string]system{"gRPC round_robin": overGRPC, "HTTP behind one address": behindAddress} {
		t.Run(name, func(t *testing.T) {
			run := func(t *testing.T) {
				t.Helper()
				got := try(t, *measure, true, how)
				if !got.good() {
					t.Errorf("with a weak task: %v", got)
				}
				if !*measure {
					return
				}
				if calm := try(t, true, false, how); got.p99() > calm.p99()+20*time.Millisecond {
					t.Errorf("with a weak task: %v; without: %v", got, calm)
				}
			}
			if *measure {
				run(t)
			} else {
				synctest.Test(t, run)
			}
		})
	}
}
