package httpproxy

import (
	"context"
	"flag"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/seed90641741/spillway/cmd/spillway/internal/gateway/config"
	"github.com/seed90641741/spillway/internal/freeport"
	"github.com/seed90641741/spillway/internal/race"
	"github.com/seed90641741/spillway/internal/thorough"
)

// soakFor is long in "go test -run Soak -soak 10m -timeout 15m". In 6 s there are as many changes, and streams that end between
// them.
var soakFor = flag.Duration("soak", 6*time.Second, "how long TestSoak lasts")

// TestSoak has clients of all kinds talk through a proxy while endpoints end and come back,
// and the configuration changes. A non-idempotent request is applied at most once; exactly
// once if the answer says so; and not at all if the answer is a rejection. Resource usage must
// not grow.
func TestSoak(t *testing.T) {
	length := *soakFor
	if thorough.Enabled() {
		length = max(length, 10*time.Second)
	}
	quiet(t)
	s := newSoak(t, length)
	ctx, cancel := context.WithTimeout(t.Context(), length+time.Minute)
	defer cancel()
	var all sync.WaitGroup
	all.Go(func() { s.restart(ctx) })
	all.Go(func() { s.reload(ctx) })
	s.clients(ctx, &all)
	s.look(ctx, length)
	cancel()
	all.Wait()
	s.report()
}

// A soak is a proxy, its environment, and the observations.
type soak struct {
	t       *testing.T
	step    time.Duration // between changes
	proxy   *Proxy
	address string
	ups     [2]*restartable
	book    book
	levels  []level

	disturbed      atomic.Int64 // when something was last changed that may cost requests, in nanoseconds since 1970
	served         atomic.Int64
	rejected       atomic.Int64
	failed         atomic.Int64 // while something was changed
	streams, slow  atomic.Int64
	reloads, ended atomic.Int64
}

func newSoak(t *testing.T, length time.Duration) *soak {
	t.Helper()
	s := &soak{t: t, step: min(max(length/12, 250*time.Millisecond), 5*time.Second)}
	for i := range s.ups {
		s.ups[i] = newRestartable(t, &service{book: &s.book})
	}
	s.address = freeport.Address(t)
	s.proxy = start(t, s.config(0))
	return s
}

// config returns the n-th configuration. They differ in what a change replaces: only numbers,
// the upstream, or the listener.
func (s *soak) config(n int) *config.Config {
	c := config.ForUpstream(s.address, s.ups[0].address)
	c.Mode, c.DrainTimeout = "enforce", 5*time.Second
	l, x := &c.Listeners[0], &c.Clusters[0]
	l.Name, l.HeaderTimeout, l.BodyTimeout, l.WriteTimeout = "main", time.Second, time.Second, 2*time.Second
	x.Endpoints = []string{s.ups[0].address, s.ups[1].address}
	x.Health = &config.Health{Interval: 200 * time.Millisecond, Timeout: 5 * time.Second, HealthyThreshold: 1}
	x.Retry.MaxAttempts = 2 + n%2
	if n/2%2 == 1 {
		x.MaxConnections = 500
	}
	if n/4%2 == 1 {
		l.HeaderTimeout = 1100 * time.Millisecond
	}
	return c
}

// reload changes the configuration all the time.
func (s *soak) reload(ctx context.Context) {
	for n := 1; sleep(ctx, s.step); n++ {
		if n%4 == 0 {
			s.disturb()
		}
		if err := s.proxy.Update(s.config(n)); err != nil {
			s.t.Error(err)
		}
		s.reloads.Add(1)
	}
}

// restart stops endpoints while they serve, and starts them again.
func (s *soak) restart(ctx context.Context) {
	sleep(ctx, s.step/2)
	for n := 0; sleep(ctx, s.step); n++ {
		s.disturb()
		u := s.ups[n%len(s.ups)]
		u.stop()
		sleep(ctx, min(s.step/4, 500*time.Millisecond))
		u.start()
		s.disturb()
		s.ended.Add(1)
	}
}

// disturbance is how long requests may fail after a change: a listener that is replaced
// closes its last idle connections after a second or two.
const disturbance = 2500 * time.Millisecond

func (s *soak) disturb() { s.disturbed.Store(time.Now().UnixNano()) }

// calm reports whether nothing was changed for a while.
func (s *soak) calm() bool { return time.Since(time.Unix(0, s.disturbed.Load())) > disturbance }

func sleep(ctx context.Context, d time.Duration) bool {
	select {
	case <-time.After(d):
		return true
	case <-ctx.Done():
		return false
	}
}

// pause waits about d.
func pause(ctx context.Context, d time.Duration) bool {
	return sleep(ctx, d/2+rand.N(d))
}

// A level is a measure that must not grow.
type level struct{ goroutines, files, heap, resident float64 }

func levelNow() level {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	files, _ := os.ReadDir("/proc/self/fd") // none where there is no such thing
	return level{float64(runtime.NumGoroutine()), float64(len(files)), float64(m.HeapAlloc), resident()}
}

// resident returns the bytes of this process that are in memory, 0 where that is not
// known.
func resident() float64 {
	text, err := os.ReadFile("/proc/self/statm")
	if err != nil {
		return 0
	}
	pages, _ := strconv.ParseFloat(strings.Fields(string(text))[1], 64)
	return pages * float64(os.Getpagesize())
}

// look looks at the levels for length, and longer on a machine so busy that some clients have
// done nothing yet.
func (s *soak) look(ctx context.Context, length time.Duration) {
	for began := time.Now(); time.Since(began) < length || !s.allDid(); {
		if !sleep(ctx, length/60) {
			return
		}
		s.levels = append(s.levels, levelNow())
	}
}

// allDid reports whether clients of each kind have had success.
func (s *soak) allDid() bool { return s.served.Load() > 0 && s.streams.Load() > 0 && s.slow.Load() > 0 }

// report fails the test for levels that have grown and requests that were applied too often.
func (s *soak) report() {
	s.t.Logf("served %d, rejected %d, failed while something was changed %d; %d streams, %d slow clients, %d reloads, %d restarts",
		s.served.Load(), s.rejected.Load(), s.failed.Load(), s.streams.Load(), s.slow.Load(), s.reloads.Load(), s.ended.Load())
	for _, g := range s.proxy.Stats(time.Now()).Gates {
		s.t.Logf("in flight at most %.1f, bound %v, latency %.3f s", g.Concurrency.Tightest().Limit, g.Concurrency.Tightest().Limiting(), g.Concurrency.Tightest().BaseLatency.Seconds())
	}
	if !s.allDid() {
		s.t.Error("some have done nothing")
	}
	if s.failed.Load() > s.served.Load()/4 {
		s.t.Error("too many have failed")
	}
	n := len(s.levels)
	if n < 20 {
		return
	}
	// The first third is to warm up. Of the rest, the beginning and the end.
	early, late := s.levels[n/3:n*2/3], s.levels[n*2/3:]
	for _, x := range []struct {
		name       string
		of         func(level) float64
		share, few float64 // allowed growth
	}{
		{"goroutines", func(l level) float64 { return l.goroutines }, 0.2, 30},
		{"descriptors", func(l level) float64 { return l.files }, 0.2, 20},
		{"heap", func(l level) float64 { return l.heap }, 0.1, 1 << 20},
		{"resident memory", func(l level) float64 { return l.resident }, 0.1, 8 << 20},
	} {
		if race.Enabled && x.name == "resident memory" {
			continue // mostly the detector's own, which it never returns
		}
		before, after := middle(early, x.of), middle(late, x.of)
		s.t.Logf("%s: %.0f, later %.0f", x.name, before, after)
		if after > before*(1+x.share)+x.few {
			s.t.Errorf("%s grow from %.0f to %.0f", x.name, before, after)
		}
	}
}

func middle(levels []level, of func(level) float64) float64 {
	values := make([]float64, 0, len(levels))
	for _, l := range levels {
		values = append(values, of(l))
	}
	slices.Sort(values)
	return values[len(values)/2]
}

// restartable is an endpoint that can be ended and started at the same address.
type restartable struct {
	t       *testing.T
	address string
	handler http.Handler
	server  *http.Server
	serving sync.WaitGroup
}

func newRestartable(t *testing.T, h http.Handler) *restartable {
	t.Helper()
	u := &restartable{t: t, address: freeport.Address(t), handler: h}
	u.start()
	t.Cleanup(u.stop)
	return u
}

func (u *restartable) start() {
	var ln net.Listener
	var err error
	for end := time.Now().Add(time.Minute); ; <-time.After(10 * time.Millisecond) {
		if ln, err = (&net.ListenConfig{}).Listen(context.Background(), "tcp", u.address); err == nil || time.Now().After(end) {
			break
		}
	}
	if err != nil {
		u.t.Error(err)
		return
	}
	server := &http.Server{Handler: u.handler, Protocols: new(http.Protocols)}
	server.Protocols.SetHTTP1(true)
	server.Protocols.SetUnencryptedHTTP2(true)
	u.server = server
	u.serving.Go(func() { _ = server.Serve(ln) })
}

func (u *restartable) stop() {
	_ = u.server.Close()
	u.serving.Wait()
}
