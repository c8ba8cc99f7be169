package spillrlqs

import (
	"context"
	"errors"
	"flag"
	"net"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/test/bufconn"

	"github.com/seed90641741/spillway"
	"github.com/seed90641741/spillway/quota"
	"github.com/seed90641741/spillway/quota/fleet"
)

// measure asks for figures that need an idle machine.
var measure = flag.Bool("measure", false, "measure in real time, on an idle machine")

// mail is one customer with a limit.
func mail(rate float64) Config {
	return Config{Fleet: fleet.Config{
		Tasks: 3, Limits: quota.LocalConfig{Customers: map[string]quota.Limit{"mail": {Rate: rate}}},
	}}
}

// start runs a Server until the test ends and returns a channel to it, over memory.
func start(t *testing.T, c Config) (*Server, *grpc.ClientConn) {
	t.Helper()
	l := bufconn.Listen(1 << 20)
	return serve(t, c, l), dial(t, func(ctx context.Context, _ string) (net.Conn, error) { return l.DialContext(ctx) })
}

func serve(t *testing.T, c Config, l net.Listener) *Server {
	t.Helper()
	s, err := New(c)
	if err != nil {
		t.Fatal(err)
	}
	g := grpc.NewServer()
	s.Register(g)
	ctx, cancel := context.WithCancel(context.Background())
	var done sync.WaitGroup
	done.Go(func() { s.Run(ctx) })
	done.Go(func() { _ = g.Serve(l) })
	t.Cleanup(func() {
		g.Stop()
		cancel()
		done.Wait()
	})
	return s
}

func dial(t *testing.T, dialer func(context.Context, string) (net.Conn, error)) *grpc.ClientConn {
	t.Helper()
	cc, err := grpc.NewClient("passthrough:///server", grpc.WithTransportCredentials(insecure.NewCredentials()), grpc.WithContextDialer(dialer))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cc.Close() })
	return cc
}

// long skips a test that is slow with the race detector.
func long(t *testing.T) {
	t.Helper()
	if testing.Short() {
		t.Skip("takes seconds with the race detector")
	}
}

// inBubble runs f in virtual time.
func inBubble(t *testing.T, f func(*testing.T)) { synctest.Test(t, f) }

// within fails the test if a figure is not from least to most.
func within(t *testing.T, what string, x, least, most float64) {
	t.Helper()
	t.Logf("%s: %.4g", what, x)
	if !(x >= least && x <= most) {
		t.Errorf("%s is %.4g, want %.4g to %.4g", what, x, least, most)
	}
}

// three drives three envoys with demand that is uneven: CRITICAL is below the limit of 1000/s, and
// SHEDDABLE above it.
func three(t *testing.T, d time.Duration, refills bool, channels ...*grpc.ClientConn) *tally {
	t.Helper()
	y := &tally{began: time.Now(), cells: map[int]map[string]*[2]float64{}}
	var done sync.WaitGroup
	for i, demand := range [][2]float64{{600, 600}, {150, 300}, {50, 20}} {
		e := newEnvoy(t, t.Context(), channels[i%len(channels)], uint64(i))
		e.refills = refills
		done.Go(func() {
			e.drive(y, d, func(time.Duration) []flow {
				return []flow{{"mail", "CRITICAL", demand[0]}, {"mail", "SHEDDABLE", demand[1]}}
			})
			e.mu.Lock()
			defer e.mu.Unlock()
			if e.expired > 0 {
				t.Errorf("envoy %d: %d requests after the assignment had expired", i, e.expired)
			}
		})
	}
	done.Wait()
	return y
}

// check asserts the limit within 3 % from one second to another, all of CRITICAL, and no second
// above a bound.
func (y *tally) check(t *testing.T, a, b int, bound float64) {
	t.Helper()
	all, _ := y.sum(a, b, "")
	within(t, "of the limit", all/1000, 0.97, 1.03)
	c, denied := y.sum(a, b, "CRITICAL")
	within(t, "CRITICAL", c/(c+denied), 0.995, 1)
	least, most := 1000., 0.
	for k := a; k < b; k++ {
		all, _ := y.sum(k, k+1, "")
		least, most = min(least, all), max(most, all)
	}
	within(t, "least second", least/1000, 0.5, 1)
	within(t, "most second", most/1000, 1, bound)
}

func TestEnvoysShareALimit(t *testing.T) {
	long(t)
	for name, row := range map[string]struct {
		refills bool
		bound   float64
	}{"1.33 and later": {false, 1.35}, "before 1.33": {true, 1.6}} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T) {
				_, cc := start(t, mail(1000))
				three(t, 60*time.Second, row.refills, cc).check(t, 20, 60, row.bound)
			})
		})
	}
}

// Envoys that report less often than the server syncs keep their demand in between.
func TestReportsAreRarerThanSyncs(t *testing.T) {
	long(t)
	inBubble(t, func(t *testing.T) {
		c := mail(1000)
		c.Fleet.Interval = 200 * time.Millisecond
		_, cc := start(t, c)
		three(t, 60*time.Second, false, cc).check(t, 20, 60, 1.35)
	})
}

// Two servers with one board hold their Envoys to one limit.
func TestServersShareABoard(t *testing.T) {
	long(t)
	inBubble(t, func(t *testing.T) {
		c := mail(1000)
		c.Board = fleet.NewMemory(time.Now)
		_, one := start(t, c)
		_, two := start(t, c)
		three(t, 60*time.Second, false, one, two).check(t, 20, 60, 1.35)
	})
}

// All Envoys have SHEDDABLE demand alone, and then one of them has CRITICAL, too.
func TestCriticalComesToAnother(t *testing.T) {
	long(t)
	inBubble(t, func(t *testing.T) {
		_, cc := start(t, mail(1000))
		y := &tally{began: time.Now(), cells: map[int]map[string]*[2]float64{}}
		var done sync.WaitGroup
		for i := range 3 {
			e := newEnvoy(t, t.Context(), cc, uint64(i))
			done.Go(func() {
				e.drive(y, 60*time.Second, func(at time.Duration) []flow {
					all := []flow{{"mail", "SHEDDABLE", 700}}
					if i == 0 && at > 20*time.Second {
						all = append(all, flow{"mail", "CRITICAL", 800})
					}
					return all
				})
			})
		}
		done.Wait()
		all, _ := y.sum(40, 60, "")
		within(t, "of the limit", all/1000, 0.94, 1.04)
		c, denied := y.sum(25, 60, "CRITICAL")
		within(t, "CRITICAL", c/(c+denied), 0.99, 1)
	})
}

// The board is lost: what was assigned goes on, and then each Envoy has its part of the limit.
func TestBoardIsLost(t *testing.T) {
	long(t)
	inBubble(t, func(t *testing.T) {
		c := mail(1000)
		board := &losable{Board: fleet.NewMemory(time.Now)}
		c.Board = board
		_, cc := start(t, c)
		time.AfterFunc(20*time.Second, func() { board.lost.Store(true) })
		y := three(t, 100*time.Second, false, cc)
		all, _ := y.sum(20, 30, "")
		within(t, "of the limit while the last levels hold", all/1000, 0.75, 1.1)
		all, _ = y.sum(80, 100, "")
		within(t, "of the limit after Grace", all/1000, 0.5, 1)
		c1, denied := y.sum(80, 100, "CRITICAL")
		within(t, "CRITICAL after Grace", c1/(c1+denied), 0.5, 1)
	})
}

// losable is a board that can be lost.
type losable struct {
	fleet.Board

	lost atomic.Bool
}

func (l *losable) Sync(ctx context.Context, s fleet.Said) (fleet.Heard, error) {
	if l.lost.Load() {
		<-ctx.Done()
		return fleet.Heard{}, ctx.Err()
	}
	return l.Board.Sync(ctx, s)
}

// Over a real socket, in real time.
func TestOverASocket(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	c := mail(1000)
	c.Fleet.Interval = 200 * time.Millisecond
	s := serve(t, c, l)
	cc := dial(t, func(ctx context.Context, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, "tcp", l.Addr().String())
	})
	if *measure {
		y := three(t, 25*time.Second, false, cc)
		y.check(t, 10, 25, 1.35)
		t.Logf("%+v", s.Stats(time.Now()))
		return
	}
	conn := connect(t, t.Context(), cc)
	if err := conn.Send(reports(usage(1, "customer", "mail"))); err != nil {
		t.Fatal(err)
	}
	m, err := conn.Recv()
	if err != nil {
		t.Fatal(err)
	}
	if len(m.GetBucketAction()) != 1 || rateOf(m.GetBucketAction()[0].GetQuotaAssignmentAction().GetRateLimitStrategy().GetTokenBucket()) < 1 {
		t.Errorf("%v, want one assignment", m)
	}
}

func TestConfigOutOfRangeNamesTheField(t *testing.T) {
	for path, change := range map[string]func(*Config){
		"TTL":              func(c *Config) { c.TTL = 1500 * time.Millisecond },
		"Idle":             func(c *Config) { c.Idle = time.Second },
		"MaxStreams":       func(c *Config) { c.MaxStreams = -1 },
		"MaxBuckets":       func(c *Config) { c.MaxBuckets = 1e8 },
		"MaxStreamBuckets": func(c *Config) { c.MaxStreamBuckets = -1 },
		"Fleet.Tasks":      func(c *Config) { c.Fleet.Tasks = -1 },
		"Fleet.Interval":   func(c *Config) { c.Fleet.Interval = time.Hour },
	} {
		c := mail(1000)
		change(&c)
		_, err := New(c)
		e, ok := errors.AsType[*spillway.FieldError](err)
		if !ok || e.Path != path {
			t.Errorf("%s: %v", path, err)
		}
	}
}
