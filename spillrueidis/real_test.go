package spillrueidis

import (
	"context"
	"crypto/tls"
	"errors"
	"flag"
	"net"
	"sync"
	"testing"
	"time"

	"github.com/redis/rueidis"

	"github.com/seed90641741/spillway"
	"github.com/seed90641741/spillway/egress"
	"github.com/seed90641741/spillway/internal/redistest"
)

// options returns the options of a client of a server that a test has started.
func options(p *redistest.Process) rueidis.ClientOption {
	return rueidis.ClientOption{
		InitAddress:       []string{p.Socket()},
		RingScaleEachConn: 8, // a backlog of 256 commands takes 1.3 s
		DialCtxFn: func(ctx context.Context, address string, d *net.Dialer, _ *tls.Config) (net.Conn, error) {
			return d.DialContext(ctx, "unix", address)
		},
	}
}

func newClient(t *testing.T, p *redistest.Process, c egress.Config) *Client {
	t.Helper()
	client, err := NewClient(options(p), c)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(client.Close)
	return client
}

// A cached value is returned also while commands are rejected, and informs no policy.
func TestCache(t *testing.T) {
	p := redistest.Start(t)
	client := newClient(t, p, egress.Config{MaxInFlight: 1})
	if err := errors.Join(client.set(t.Context(), "a"), client.set(t.Context(), "b")); err != nil {
		t.Fatal(err)
	}
	backend := p.Socket()
	requests := func() float64 { return client.Stats(time.Now())[backend].Throttle[spillway.Critical.Index()].Requests }
	fetch := func(key string) rueidis.RedisResult {
		return client.DoCache(t.Context(), client.B().Get().Key(key).Cache(), time.Minute)
	}
	multi := func(keys ...string) []rueidis.RedisResult {
		var all []rueidis.CacheableTTL
		for _, key := range keys {
			all = append(all, rueidis.CT(client.B().Get().Key(key).Cache(), time.Minute))
		}
		return client.DoMultiCache(t.Context(), all...)
	}
	before := requests()
	for range 10 {
		if v, err := fetch("a").ToString(); v != "v" || err != nil {
			t.Fatal(v, err)
		}
	}
	for _, r := range append(multi("a"), multi()...) {
		if v, err := r.ToString(); v != "v" || err != nil || !r.IsCacheHit() {
			t.Error(v, err)
		}
	}
	if n := requests() - before; n != 1 {
		t.Errorf("11 calls of one value are %v requests", n)
	}
	release := occupy(t, client)
	if v, err := fetch("a").ToString(); v != "v" || err != nil {
		t.Errorf("cached: %q, %v", v, err)
	}
	if err := fetch("b").Error(); !errors.Is(err, spillway.ErrRejected) {
		t.Errorf("not cached: %v", err)
	}
	mixed := multi("a", "b")
	if v, err := mixed[0].ToString(); v != "v" || err != nil || !errors.Is(mixed[1].Error(), spillway.ErrRejected) {
		t.Errorf("%q, %v and %v", v, err, mixed[1].Error())
	}
	if all := multi("b"); !errors.Is(all[0].Error(), spillway.ErrRejected) {
		t.Error(all)
	}
	release()
	if v, err := fetch("b").ToString(); v != "v" || err != nil {
		t.Errorf("after a rejection: %q, %v", v, err)
	}
}

// occupy takes the only place in flight until release is called.
func occupy(t *testing.T, c *Client) (release func()) {
	t.Helper()
	held, done := make(chan struct{}), make(chan struct{})
	entered := make(chan struct{})
	go func() {
		defer close(done)
		_ = c.policies(slots).Do(t.Context(), spillway.Call{}, func(context.Context, *egress.Attempt) error {
			close(entered)
			<-held
			return nil
		})
	}()
	<-entered
	return func() { close(held); <-done }
}

// TestRestart kills the server while callers write, and starts it again, at the same time with
// the policies and without. No acknowledged write is lost, none is made twice, and callers
// write again within a second. From the kill on, callers with the policies write no less than
// the others.
func TestRestart(t *testing.T) {
	if testing.Short() {
		t.Skip("takes seconds")
	}
	p := redistest.Start(t)
	own := newClient(t, p, egress.Config{})
	plain, err := rueidis.NewClient(options(p))
	if err != nil {
		t.Fatal(err)
	}
	defer plain.Close()
	incr := func(c rueidis.Client) func(context.Context, string) error {
		return func(ctx context.Context, key string) error {
			return c.Do(ctx, c.B().Incr().Key(key).Build()).Error()
		}
	}
	with, without := &redistest.Writer{Name: "with", Incr: incr(own)}, &redistest.Writer{Name: "without", Incr: incr(plain)}
	p.Restart(t, with, without)
	for _, w := range []*redistest.Writer{with, without} {
		w.Check(t, func(key string) (int64, error) {
			n, err := plain.Do(t.Context(), plain.B().Get().Key(key).Build()).AsInt64()
			if rueidis.IsRedisNil(err) {
				err = nil
			}
			return n, err
		})
	}
	writes, back := with.Since()
	other, otherBack := without.Since()
	if *measure && back-otherBack > time.Second {
		t.Errorf("the first write is %v later than without the policies", back-otherBack)
	}
	if *measure && writes*10 < other*8 { // on a quiet machine they differ by some percent in both directions
		t.Errorf("since the kill %d writes were served, and %d without the policies", writes, other)
	}
}

// A load is what callers offer to a server, and what they get.
type load struct {
	client                 rueidis.Client
	every, lasts, patience time.Duration

	mu              sync.Mutex
	offered, served int
	longest         time.Duration // a caller waited
}

// run offers the load, and closes the client a second later: some callers of rueidis wait until
// then. A late timer makes up for what it missed.
func (l *load) run(ctx context.Context) {
	var all sync.WaitGroup
	begun := time.Now()
	tick := time.NewTicker(l.every)
	defer tick.Stop()
	for time.Since(begun) < l.lasts {
		for l.offered < int(time.Since(begun)/l.every) {
			l.offered++
			all.Go(func() { l.call(ctx) })
		}
		<-tick.C
	}
	<-time.After(time.Second)
	l.client.Close()
	all.Wait()
}

func (l *load) call(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, l.patience)
	defer cancel()
	begun := time.Now()
	err := l.client.Do(ctx, l.client.B().Arbitrary("DEBUG", "SLEEP", "0.005").Build()).Error()
	l.mu.Lock()
	defer l.mu.Unlock()
	l.longest = max(l.longest, time.Since(begun))
	if err == nil {
		l.served++
	}
}

// measure is for what needs an idle machine: how much is served beside a client without the policies.
var measure = flag.Bool("measure", false, "compare with a client without the policies, on an idle machine")

// TestOverload offers ten times what a server can do to two of them, at the same time: with the
// policies and without. A command has the server sleep for 5 ms, so that none takes the processor
// from another.
func TestOverload(t *testing.T) {
	if !*measure {
		t.Skip("compares what is served, which needs an idle machine: run with -measure")
	}
	own := newClient(t, redistest.Start(t, "--enable-debug-command", "yes"), egress.Config{MaxInFlight: 20})
	plain, err := rueidis.NewClient(options(redistest.Start(t, "--enable-debug-command", "yes")))
	if err != nil {
		t.Fatal(err)
	}
	with, without := load{client: own}, load{client: plain}
	var both sync.WaitGroup
	for _, l := range []*load{&with, &without} {
		l.every, l.lasts, l.patience = 500*time.Microsecond, 3*time.Second, 250*time.Millisecond
		both.Go(func() { l.run(t.Context()) })
	}
	both.Wait()
	for _, l := range []*load{&with, &without} {
		t.Logf("%d of %d calls served, the longest took %v", l.served, l.offered, l.longest)
	}
	if with.served < 2*without.served {
		t.Error("the policies do not serve twice as much")
	}
}
