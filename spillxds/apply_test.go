package spillxds

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	discoveryv3 "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	"google.golang.org/grpc"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/anypb"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/seed90641741/spillway/inflight"
)

// offline returns a Client that has no connection, and its clusters of those names.
func offline(t testing.TB, config Config, names ...string) (*Client, map[string]*shared) {
	t.Helper()
	if config.Bootstrap == nil {
		config.Bootstrap = new(Bootstrap)
	}
	config, err := config.withDefaults()
	if err != nil {
		t.Fatal(err)
	}
	c := &Client{config: config, registry: config.Registry}
	c.table = newTable(c)
	all := map[string]*shared{}
	for _, name := range names {
		if all[name], err = c.table.hold(inflight.Key{Cluster: name}); err != nil {
			t.Fatal(err)
		}
	}
	return c, all
}

// TestBootstrapSaysThatDeletionsAreIgnored has what an operator says of the control
// plane (gRFC A53) win over what the program would do.
func TestBootstrapSaysThatDeletionsAreIgnored(t *testing.T) {
	for features, want := range map[string]int{`["xds_v3", "ignore_resource_deletion"]`: 7, `["xds_v3"]`: inflight.DefaultMaxInFlight} {
		b, err := ParseBootstrap([]byte(`{"xds_servers": [{"server_uri": "x", "channel_creds": [{"type": "insecure"}], "server_features": ` + features + `}]}`))
		if err != nil {
			t.Fatal(err)
		}
		c, all := offline(t, Config{Bootstrap: b, Deleted: DefaultLimit}, "users")
		c.table.apply(&answer{complete: true, resources: []named{{body: resourceOf(t, "users", 7)}}})
		c.table.apply(&answer{complete: true})
		if got := all["users"].limiter.Stats(time.Now()).MaxInFlight; got != want {
			t.Errorf("%s: a limit of %d after deletion, want %d", features, got, want)
		}
	}
}

// resourceOf is a Cluster: one that is not valid if limit is negative.
func resourceOf(t testing.TB, name string, limit int) *anypb.Any {
	t.Helper()
	threshold := &clusterv3.CircuitBreakers_Thresholds{MaxRequests: wrapperspb.UInt32(uint32(limit))}
	if limit < 0 {
		threshold.Priority = 77
	}
	return packed(t, &clusterv3.Cluster{Name: name, CircuitBreakers: &clusterv3.CircuitBreakers{
		Thresholds: []*clusterv3.CircuitBreakers_Thresholds{threshold},
	}})
}

// model is the table as one map, written down from the rules.
type model struct {
	limits  map[string]int
	exists  map[string]bool
	deleted Deleted
}

type item struct {
	name  string // "" for one that cannot be read
	limit int    // negative: not valid
}

func (m *model) apply(items []item, removed []string, complete bool) {
	count, nameless := map[string]int{}, false
	for _, i := range items {
		count[i.name]++
		nameless = nameless || i.name == ""
	}
	for _, i := range items {
		if _, ours := m.limits[i.name]; ours && i.limit >= 0 && count[i.name] == 1 {
			m.limits[i.name], m.exists[i.name] = i.limit, true
		}
	}
	for name := range m.limits {
		if complete && !nameless && count[name] == 0 {
			removed = append(removed, name)
		}
	}
	for _, name := range removed {
		if m.exists[name] && m.deleted == DefaultLimit {
			m.limits[name] = inflight.DefaultMaxInFlight
		}
		if _, ours := m.limits[name]; ours {
			m.exists[name] = false
		}
	}
}

func TestModelOfTheTable(t *testing.T) {
	names := []string{"a", "b", "c", "d"}
	for seed := range uint64(200) {
		rng := rand.New(rand.NewPCG(seed, 7))
		deleted := Deleted(seed % 2)
		c, all := offline(t, Config{Deleted: deleted}, names[:3]...)
		m := model{map[string]int{"a": 1024, "b": 1024, "c": 1024}, map[string]bool{}, deleted}
		for step := range 50 {
			var items []item
			a := &answer{typeURL: clusterType, version: fmt.Sprint(step), complete: rng.IntN(2) == 0}
			for range rng.IntN(5) {
				i := item{names[rng.IntN(4)], rng.IntN(2000) - 400}
				n := named{body: resourceOf(t, i.name, i.limit)}
				if a.complete && rng.IntN(10) == 0 {
					i.name, n.body = "", &anypb.Any{TypeUrl: clusterType, Value: []byte{0xff}}
				}
				if !a.complete {
					n.name = i.name
				}
				items, a.resources = append(items, i), append(a.resources, n)
			}
			if !a.complete && rng.IntN(4) == 0 {
				a.removed = []string{names[rng.IntN(4)]}
			}
			_, errs := c.table.apply(a)
			m.apply(items, a.removed, a.complete)
			for name, want := range m.limits {
				if got := all[name].limiter.Stats(time.Now()).MaxInFlight; got != want {
					t.Fatalf("seed %d, step %d: %s has %d, want %d after %v, removed %v", seed, step, name, got, want, items, a.removed)
				}
			}
			if accepted := c.table.acceptedVersion() == a.version; accepted != (len(errs) == 0 && a.complete) {
				t.Fatalf("seed %d, step %d: accepted %v with errors %v", seed, step, accepted, errs)
			}
		}
		if n := len(c.table.known); n != 3 {
			t.Fatalf("seed %d: %d clusters are known, want the 3 that were asked for", seed, n)
		}
	}
}

func TestWildcardIsBounded(t *testing.T) {
	for _, complete := range []bool{true, false} {
		c, _ := offline(t, Config{Wildcard: true, MaxClusters: 10})
		for i := range 100 {
			name := fmt.Sprint(i)
			a := &answer{complete: false, resources: []named{{name, "1", resourceOf(t, name, i)}}}
			c.table.apply(a)
		}
		if n := len(c.table.known); n != 10 {
			t.Errorf("%d clusters known, want 10", n)
		}
		s, err := c.table.hold(inflight.Key{Cluster: "7"}) // it is known, so its limit is
		if err != nil || s.limiter.Stats(time.Now()).MaxInFlight != 7 {
			t.Errorf("%v: %+v", err, s)
		}
		c.table.apply(&answer{complete: complete, removed: []string{"0", "1", "2"}})
		if n, want := len(c.table.known), map[bool]int{true: 1, false: 7}[complete]; n != want {
			t.Errorf("%d clusters known after removals, want %d", n, want)
		}
	}
}

// TestWildcardForgetsWhatDoesNotExist takes clusters by names that anybody may have made up, and gives them up again.
// They must not use up the places of the clusters that the control plane has.
func TestWildcardForgetsWhatDoesNotExist(t *testing.T) {
	c, _ := offline(t, Config{Wildcard: true, MaxClusters: 10, Reports: Never})
	for i := range 100 {
		name := fmt.Sprint("nobody-", i)
		s, err := c.table.hold(inflight.Key{Cluster: name})
		if err != nil {
			t.Fatal(err)
		}
		switch now := time.Now(); i % 3 {
		case 0: // it has not come in time
			c.table.await(now, time.Second)
			c.table.overdue(now.Add(time.Second), ErrNotFound)
		case 1: // it came, and was removed while it was held
			c.table.apply(&answer{resources: []named{{name, "1", resourceOf(t, name, 7)}}})
			c.table.apply(&answer{removed: []string{name}})
		}
		c.table.drop(s)
	}
	if n := len(c.table.known); n != 0 {
		t.Errorf("%d clusters are known that neither exist nor are held", n)
	}
	c.table.apply(&answer{resources: []named{{"users", "1", resourceOf(t, "users", 7)}}})
	s, err := c.table.hold(inflight.Key{Cluster: "users"})
	if err != nil {
		t.Fatal(err)
	}
	if got := s.limiter.Stats(time.Now()).MaxInFlight; got != 7 {
		t.Errorf("a cluster that exists has the limit %d, want 7", got)
	}
	c.table.drop(s)
	if n := len(c.table.known); n != 1 {
		t.Errorf("%d clusters are known, want the one that exists: it is not sent again", n)
	}
}

// fake is a stream that was read before.
type fake struct {
	grpc.ClientStream

	message []byte
}

func (f *fake) Recv() (*discoveryv3.DiscoveryResponse, error) {
	m := new(discoveryv3.DiscoveryResponse)
	return m, proto.Unmarshal(f.message, m)
}

func (f *fake) Send(*discoveryv3.DiscoveryRequest) error { return nil }

type fakeDelta struct{ fake }

func (f *fakeDelta) Recv() (*discoveryv3.DeltaDiscoveryResponse, error) {
	m := new(discoveryv3.DeltaDiscoveryResponse)
	return m, proto.Unmarshal(f.message, m)
}

func (f *fakeDelta) Send(*discoveryv3.DeltaDiscoveryRequest) error { return nil }

// FuzzResponse applies responses of either form and any content. A limit may only
// become what a resource of that name says, and everything that is applied must
// be valid by itself.
func FuzzResponse(f *testing.F) {
	for _, limit := range []int{5, 5000, -1} {
		a := resourceOf(f, "users", limit)
		for _, resources := range [][]*anypb.Any{{a}, {a, a}, {a, resourceOf(f, "cart", 9)}, {{TypeUrl: clusterType, Value: []byte{255}}, a}} {
			text, _ := proto.Marshal(&discoveryv3.DiscoveryResponse{VersionInfo: "2", TypeUrl: clusterType, Resources: resources})
			f.Add(text, false)
		}
		text, _ := proto.Marshal(&discoveryv3.DeltaDiscoveryResponse{
			TypeUrl: clusterType, Resources: []*discoveryv3.Resource{{Name: "users", Version: "2", Resource: a}}, RemovedResources: []string{"users"},
		})
		f.Add(text, true)
	}
	f.Fuzz(func(t *testing.T, message []byte, incremental bool) {
		c, all := offline(t, Config{}, "users")
		c.table.apply(&answer{complete: true, version: "1", resources: []named{{body: resourceOf(t, "users", 7)}}})
		var s stream = world{&fake{message: message}}
		if incremental {
			s = delta{&fakeDelta{fake{message: message}}}
		}
		a, err := s.recv()
		if err != nil {
			return
		}
		_, errs := c.table.apply(a)
		_ = rejection(errs)
		got := all["users"].limiter.Stats(time.Now()).MaxInFlight
		if got == 7 {
			return
		}
		for _, n := range a.resources {
			if name, limit := naive(n.body); name == "users" && int(min(limit, 1<<31-1)) == got {
				return
			}
		}
		t.Fatalf("the limit has become %d", got)
	})
}

// BenchmarkApply is a response in which one cluster of a thousand has changed.
func BenchmarkApply(b *testing.B) {
	var names []string
	var resources []named
	for i := range 1000 {
		names = append(names, fmt.Sprint("cluster-", i))
		resources = append(resources, named{body: resourceOf(b, names[i], i)})
	}
	c, _ := offline(b, Config{}, names...)
	changed := [2]*anypb.Any{resourceOf(b, names[7], 1), resourceOf(b, names[7], 2)}
	a := &answer{complete: true, resources: resources}
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		a.resources[7].body = changed[i%2]
		c.table.apply(a)
	}
}
