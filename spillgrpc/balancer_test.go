package spillgrpc

import (
	"encoding/json"
	"errors"
	"math/rand/v2"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"google.golang.org/grpc/balancer"
	"google.golang.org/grpc/balancer/base"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/connectivity"
	"google.golang.org/grpc/resolver"
	"google.golang.org/grpc/status"

	"github.com/seed90641741/spillway"
	"github.com/seed90641741/spillway/inflight"
)

// limits are the limits of all channels of the tests; each test uses clusters with other
// names.
var limits inflight.Registry

func init() { balancer.Register(NewBalancer(&limits)) } //nolint:gochecknoinits // as grpc wants it

// pickerFunc is a picker made of a func.
type pickerFunc func(balancer.PickInfo) (balancer.PickResult, error)

func (f pickerFunc) Pick(i balancer.PickInfo) (balancer.PickResult, error) { return f(i) }

// subConn is a connection whose methods are not called.
type subConn struct{ balancer.SubConn }

// counting is a picker that counts what it has handed out and not got back, as
// least_request does.
type counting struct {
	picks, out atomic.Int64
}

func (c *counting) Pick(balancer.PickInfo) (balancer.PickResult, error) {
	c.picks.Add(1)
	c.out.Add(1)
	return balancer.PickResult{SubConn: &subConn{}, Done: func(balancer.DoneInfo) { c.out.Add(-1) }}, nil
}

func TestParseConfig(t *testing.T) {
	for _, row := range []struct {
		text, child string
		want        string // of the error
	}{
		{`{}`, "round_robin", ""},
		{`{"cluster":"orders","edsServiceName":"eu","maxConcurrentRequests":500,"later":1}`, "round_robin", ""},
		{`{"childPolicy":[{"no_such_policy":{}},{"pick_first":{}}]}`, "pick_first", ""},
		{`{"childPolicy":[]}`, "round_robin", ""},
		{`{"maxConcurrentRequests":null}`, "round_robin", ""},
		{`[]`, "", "array"},
		{`{"cluster":1}`, "", "cluster is of the JSON type number, must be string"},
		{`{"maxConcurrentRequests":-1}`, "", "maxConcurrentRequests is number -1, must be a whole number from 0 to 4294967295"},
		{`{"maxConcurrentRequests":"many"}`, "", "maxConcurrentRequests is string, must be a whole number"},
		{`{"maxConcurrentRequests":5000000000}`, "", "must be a whole number from 0 to 4294967295"},
		{`{"childPolicy":[{}]}`, "", "childPolicy: entry 0 has 0 policies, must have one"},
		{`{"childPolicy":[{"a":{}},{"b":{}}]}`, "", "childPolicy: none of a, b is registered"},
		{`{"childPolicy":[{"pick_first":{"shuffleAddressList":1}}]}`, "", "childPolicy: pick_first: "},
	} {
		c, err := builder{}.ParseConfig(json.RawMessage(row.text))
		if (err == nil) != (row.want == "") || err != nil && !strings.Contains(err.Error(), row.want) {
			t.Errorf("%s: error %v, want %q", row.text, err, row.want)
			continue
		}
		if err == nil && c.(*parsedConfig).builder.Name() != row.child {
			t.Errorf("%s: child %s, want %s", row.text, c.(*parsedConfig).builder.Name(), row.child)
		}
	}
}

func TestServiceConfig(t *testing.T) {
	text := must(BalancerConfig{Cluster: "orders", MaxConcurrentRequests: new(uint32(500))}.ServiceConfig())
	const want = `{"loadBalancingConfig":[{"spillway_max_requests":{"cluster":"orders","maxConcurrentRequests":500}}]}`
	if text != want {
		t.Errorf("%s, want %s", text, want)
	}
	if _, err := (BalancerConfig{ChildPolicy: []map[string]json.RawMessage{{"x": json.RawMessage("{")}}}).ServiceConfig(); err == nil {
		t.Error("a child policy that is no JSON was taken")
	}
}

// TestPick expects what each pick does to the limit, and to what the child counts. The picks are
// of no call, so they have no context, also where some client sends hedges.
func TestPick(t *testing.T) {
	defer hedging.Store(hedging.Swap(true))
	l := must(inflight.New(inflight.Config{MaxInFlight: 1}))
	child := &counting{}
	p := &picker{child: child, limiter: l, drops: &drops{cluster: "orders"}, ready: true}
	first, err := p.Pick(balancer.PickInfo{})
	if err != nil {
		t.Fatal(err)
	}
	_, err = p.Pick(balancer.PickInfo{})
	if status.Code(err) != codes.Unavailable || !errors.Is(err, spillway.ErrRejected) || !strings.Contains(err.Error(), "cluster orders: ") {
		t.Errorf("the second pick: %v", err)
	}
	if _, again := p.Pick(balancer.PickInfo{}); again != err {
		t.Error("drops of one limit are not one error")
	}
	if n := child.picks.Load(); n != 1 {
		t.Errorf("the child was asked %d times, want 1: the limit was full", n)
	}
	first.Done(balancer.DoneInfo{})
	first.Done(balancer.DoneInfo{})
	if s := l.Stats(time.Now()); s.InFlight != 0 || s.SurplusTotal != 0 || s.RejectedTotal != 2 {
		t.Errorf("%+v, want nothing in flight, no surplus and 2 drops", s)
	}
	if third, err := p.Pick(balancer.PickInfo{}); err != nil {
		t.Error(err)
	} else {
		third.Done(balancer.DoneInfo{})
	}
}

// TestPickUncounted expects picks that lead to no stream to leave the limit alone,
// even where it is full.
func TestPickUncounted(t *testing.T) {
	l := must(inflight.New(inflight.Config{MaxInFlight: 1}))
	l.TryAcquire()
	broken := errors.New("broken")
	for _, row := range []struct {
		name string
		err  error
	}{{"queued", balancer.ErrNoSubConnAvailable}, {"failed", broken}, {"nothing", nil}} {
		p := &picker{limiter: l, drops: &drops{}, child: pickerFunc(func(balancer.PickInfo) (balancer.PickResult, error) {
			return balancer.PickResult{}, row.err
		})}
		if _, err := p.Pick(balancer.PickInfo{}); err != row.err {
			t.Errorf("%s: %v, want %v", row.name, err, row.err)
		}
	}
	if s := l.Stats(time.Now()); s.InFlight != 1 || s.RejectedTotal != 0 {
		t.Errorf("%+v, want 1 in flight and no drops", s)
	}
}

// TestPickDiscarded expects the child to get back a pick that finds no place.
func TestPickDiscarded(t *testing.T) {
	l := must(inflight.New(inflight.Config{MaxInFlight: 1}))
	l.TryAcquire()
	child := &counting{}
	p := &picker{child: child, limiter: l, drops: &drops{}} // not ready: it asks the child first
	if _, err := p.Pick(balancer.PickInfo{}); !errors.Is(err, spillway.ErrRejected) {
		t.Errorf("error %v, want a drop", err)
	}
	if child.picks.Load() != 1 || child.out.Load() != 0 {
		t.Errorf("the child has handed out %d, of which %d are out; want 1 and 0", child.picks.Load(), child.out.Load())
	}
}

// TestPickConcurrent has many pick at once, and expects never more than the limit
// that was in force, and nothing left.
func TestPickConcurrent(t *testing.T) {
	const limit, goroutines, rounds = 4, 16, 3000
	l := must(inflight.New(inflight.Config{MaxInFlight: limit}))
	child := &counting{}
	p := &picker{child: child, limiter: l, drops: &drops{}, ready: true}
	var now, high, served atomic.Int64
	var all sync.WaitGroup
	for g := range goroutines {
		all.Go(func() {
			random := rand.New(rand.NewPCG(uint64(g), 1))
			for range rounds {
				r, err := p.Pick(balancer.PickInfo{})
				if err != nil {
					continue
				}
				served.Add(1)
				raise(&high, now.Add(1))
				for range random.IntN(100) {
					now.Load()
				}
				now.Add(-1)
				r.Done(balancer.DoneInfo{})
			}
		})
	}
	all.Wait()
	s := l.Stats(time.Now())
	if high.Load() > limit || s.InFlight != 0 || s.SurplusTotal != 0 || child.out.Load() != 0 {
		t.Errorf("up to %d at once of %d, %+v, %d out", high.Load(), limit, s, child.out.Load())
	}
	if s.RejectedTotal+uint64(served.Load()) != goroutines*rounds {
		t.Errorf("%d drops and %d served of %d", s.RejectedTotal, served.Load(), goroutines*rounds)
	}
}

// channel is what a policy sees of a channel.
type channel struct {
	balancer.ClientConn

	states []balancer.State
}

func (c *channel) UpdateState(s balancer.State) { c.states = append(c.states, s) }

// childBuilder makes children that record the updates that they receive.
type childBuilder struct {
	name  string
	built []*fakeChild
}

type fakeChild struct {
	cc     balancer.ClientConn
	told   []string
	config any
}

func (b *childBuilder) Name() string { return b.name }

func (b *childBuilder) Build(cc balancer.ClientConn, _ balancer.BuildOptions) balancer.Balancer {
	c := &fakeChild{cc: cc}
	b.built = append(b.built, c)
	return c
}

func (c *fakeChild) UpdateClientConnState(s balancer.ClientConnState) error {
	c.config = s.BalancerConfig
	c.told = append(c.told, "update")
	return nil
}
func (c *fakeChild) ResolverError(error) { c.told = append(c.told, "error") }
func (c *fakeChild) UpdateSubConnState(balancer.SubConn, balancer.SubConnState) {
	c.told = append(c.told, "subconn")
}
func (c *fakeChild) Close()    { c.told = append(c.told, "close") }
func (c *fakeChild) ExitIdle() { c.told = append(c.told, "idle") }

func (c *fakeChild) ready() {
	c.cc.UpdateState(balancer.State{ConnectivityState: connectivity.Ready, Picker: &counting{}})
}

// TestBalancer plays the life of a policy: configs that change the limit, the
// cluster and the child.
func TestBalancer(t *testing.T) {
	var shared inflight.Registry
	one, two := &childBuilder{name: "one"}, &childBuilder{name: "two"}
	cc := &channel{}
	b := NewBalancer(&shared).Build(cc, balancer.BuildOptions{Target: resolver.Target{}})
	update := func(child balancer.Builder, c BalancerConfig) {
		t.Helper()
		if err := b.UpdateClientConnState(balancer.ClientConnState{BalancerConfig: &parsedConfig{BalancerConfig: c, builder: child}}); err != nil {
			t.Fatal(err)
		}
	}
	limit := func(cluster string, want int) {
		t.Helper()
		if got := shared.Stats(time.Now())[inflight.Key{Cluster: cluster}].MaxInFlight; got != want {
			t.Errorf("the limit of %s is %d, want %d", cluster, got, want)
		}
	}
	pick := func() (balancer.PickResult, error) {
		return cc.states[len(cc.states)-1].Picker.Pick(balancer.PickInfo{})
	}
	b.ResolverError(errors.New("no such host"))
	if len(cc.states) != 1 || cc.states[0].ConnectivityState != connectivity.TransientFailure {
		t.Fatalf("%+v: an error before the first config must fail calls", cc.states)
	}

	update(one, BalancerConfig{Cluster: "a", MaxConcurrentRequests: new(uint32(7))})
	limit("a", 7)
	one.built[0].ready()
	held, err := pick()
	if err != nil {
		t.Fatal(err)
	}
	if n := shared.Stats(time.Now())[inflight.Key{Cluster: "a"}].InFlight; n != 1 {
		t.Errorf("%d in flight, want 1", n)
	}

	// What was set from Go stays until the config changes.
	l, release := shared.Share(inflight.Key{Cluster: "a"})
	l.SetMaxInFlight(3)
	update(one, BalancerConfig{Cluster: "a", MaxConcurrentRequests: new(uint32(7))})
	limit("a", 3)
	update(one, BalancerConfig{Cluster: "a", MaxConcurrentRequests: new(uint32(8))})
	limit("a", 8)
	release()

	// Another cluster has its own count, at once.
	states := len(cc.states)
	update(one, BalancerConfig{Cluster: "b", MaxConcurrentRequests: new(uint32(0))})
	if len(cc.states) == states {
		t.Error("the channel was not told of the other limit")
	}
	if _, err := pick(); !errors.Is(err, spillway.ErrRejected) {
		t.Errorf("a limit of 0: %v", err)
	}
	held.Done(balancer.DoneInfo{})
	if _, ok := shared.Stats(time.Now())[inflight.Key{Cluster: "a"}]; ok {
		t.Error("the limit of a is still held")
	}

	// Another child takes over, and the old one has nothing more to say.
	update(two, BalancerConfig{Cluster: "b"})
	states = len(cc.states)
	one.built[0].ready()
	if len(cc.states) != states {
		t.Error("a child that was replaced was heard")
	}
	two.built[0].ready()
	if len(cc.states) != states+1 {
		t.Error("the new child was not heard")
	}
	b.ResolverError(errors.New("no such host"))
	b.ExitIdle()
	updater(b).UpdateSubConnState(nil, balancer.SubConnState{})
	b.Close()
	b.ExitIdle()
	if got := strings.Join(one.built[0].told, " "); got != strings.Repeat("update ", 4)+"close" {
		t.Errorf("the first child was told %s", got)
	}
	if got := strings.Join(two.built[0].told, " "); got != "update error idle subconn close" {
		t.Errorf("the second child was told %s", got)
	}
	if n := len(shared.Stats(time.Now())); n != 0 {
		t.Errorf("%d limits are held after Close", n)
	}
	if err := b.UpdateClientConnState(balancer.ClientConnState{}); !errors.Is(err, balancer.ErrBadResolverState) {
		t.Errorf("without a config: %v", err)
	}
}

// opener is a channel that opens connections.
type opener struct {
	channel

	opened []*opened
}

type opened struct {
	balancer.SubConn

	listen   func(balancer.SubConnState)
	shutdown int
}

func (o *opened) Connect()  {}
func (o *opened) Shutdown() { o.shutdown++ }

func (c *opener) NewSubConn(_ []resolver.Address, opts balancer.NewSubConnOptions) (balancer.SubConn, error) {
	o := &opened{listen: opts.StateListener}
	c.opened = append(c.opened, o)
	return o, nil
}

// TestReplacedChildLeavesNoConnections replaces a policy of package base, which
// leaves its connections to the channel when it is closed, as most of others do.
func TestReplacedChildLeavesNoConnections(t *testing.T) {
	var pickers int
	child := base.NewBalancerBuilder("base", pickerBuilder(func(base.PickerBuildInfo) balancer.Picker { pickers++; return &counting{} }), base.Config{})
	two := &childBuilder{name: "two"}
	cc := &opener{}
	b := NewBalancer(nil).Build(cc, balancer.BuildOptions{})
	update := func(child balancer.Builder, addresses ...resolver.Address) {
		t.Helper()
		if err := b.UpdateClientConnState(balancer.ClientConnState{
			BalancerConfig: &parsedConfig{builder: child}, ResolverState: resolver.State{Addresses: addresses},
		}); err != nil {
			t.Fatal(err)
		}
	}
	update(child, resolver.Address{Addr: "a"}, resolver.Address{Addr: "b"})
	before := pickers
	cc.opened[0].listen(balancer.SubConnState{ConnectivityState: connectivity.Ready})
	if pickers == before {
		t.Error("the child does not hear of its connections")
	}
	update(child, resolver.Address{Addr: "a"})
	cc.opened[1].listen(balancer.SubConnState{ConnectivityState: connectivity.Shutdown})
	old := b.(*limiting).child
	update(two)
	before = pickers
	for i, o := range cc.opened {
		if o.shutdown != 1 {
			t.Errorf("connection %d was shut down %d times, want once", i, o.shutdown)
		}
	}
	cc.opened[0].listen(balancer.SubConnState{ConnectivityState: connectivity.Ready})
	if pickers != before {
		t.Error("a child that was replaced goes on to pick")
	}
	if sc, err := old.NewSubConn(nil, balancer.NewSubConnOptions{}); err == nil || sc != nil || cc.opened[len(cc.opened)-1].shutdown != 1 {
		t.Errorf("a child that was replaced has opened a connection: %v, %v", sc, err)
	}

	// A child may listen in the old way.
	//lint:ignore SA1019 it is the one way to a connection
	sc, err := two.built[0].cc.NewSubConn(nil, balancer.NewSubConnOptions{}) //nolint:staticcheck // it is the one way to a connection
	if err != nil {
		t.Fatal(err)
	}
	below := sc.(*connection).SubConn.(*opened)
	below.listen(balancer.SubConnState{})
	if got := strings.Join(two.built[0].told, " "); got != "update subconn" {
		t.Errorf("the child was told %s", got)
	}
	b.Close()
	if n := below.shutdown; n != 1 {
		t.Errorf("a connection was shut down %d times by Close, want once", n)
	}
}

type pickerBuilder func(base.PickerBuildInfo) balancer.Picker

func (f pickerBuilder) Build(i base.PickerBuildInfo) balancer.Picker { return f(i) }

// FuzzParseConfig expects every config to be taken or rejected with an error.
func FuzzParseConfig(f *testing.F) {
	f.Add(`{"cluster":"orders","maxConcurrentRequests":500,"childPolicy":[{"round_robin":{}}]}`)
	f.Add(`{"childPolicy":[{"spillway_max_requests":{"childPolicy":[{"pick_first":{}}]}}]}`)
	f.Add(`{"childPolicy":[null]}`)
	f.Fuzz(func(t *testing.T, text string) {
		c, err := builder{}.ParseConfig(json.RawMessage(text))
		if err == nil && c.(*parsedConfig).builder == nil {
			t.Errorf("%q: taken without a child", text)
		}
	})
}
