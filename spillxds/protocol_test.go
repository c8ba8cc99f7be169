package spillxds_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	discoveryv3 "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/anypb"

	"github.com/seed90641741/spillway/spillxds"
)

const clusterType = "type.googleapis.com/envoy.config.cluster.v3.Cluster"

// answer is a response of clusters.
func answer(version, nonce string, clusters ...*clusterv3.Cluster) *discoveryv3.DiscoveryResponse {
	r := &discoveryv3.DiscoveryResponse{VersionInfo: version, Nonce: nonce, TypeUrl: clusterType}
	for _, c := range clusters {
		r.Resources = append(r.Resources, must(anypb.New(c)))
	}
	return r
}

// awaitNames waits for a request for n resources: a stream may begin before all of them are asked for.
func awaitNames(st *conversation, n int) {
	for {
		if r := <-st.requests; len(r.GetResourceNames()) == n {
			return
		}
	}
}

// is fails if a request is not as described: version/nonce/names, with ! for a
// NACK and @ for a node.
func is(t *testing.T, r *discoveryv3.DiscoveryRequest, want string) {
	t.Helper()
	got := fmt.Sprintf("%s/%s/%s", r.GetVersionInfo(), r.GetResponseNonce(), strings.Join(r.GetResourceNames(), ","))
	if r.GetErrorDetail() != nil {
		got += "!"
	}
	if r.GetNode() != nil {
		got += "@" + r.GetNode().GetId()
	}
	if got != want || r.GetTypeUrl() != clusterType {
		t.Errorf("request %s, want %s", got, want)
	}
}

func TestStateOfTheWorld(t *testing.T) {
	played(t, spillxds.Config{}, func(t *testing.T, s *script, c *spillxds.Client) {
		users := must(c.Cluster(key("users")))
		st := <-s.streams
		first := <-st.requests
		is(t, first, "//users@n1")
		if n := first.GetNode(); n.GetCluster() != "c1" || n.GetMetadata().GetFields()["k"].GetStringValue() != "v" || n.GetUserAgentName() == "" {
			t.Errorf("node: %v", n)
		}
		st.send(answer("1", "a", cluster("users", 10)))
		is(t, <-st.requests, "1/a/users")
		limit(t, users, 10)

		cart := must(c.Cluster(key("cart"))) // a new subscription repeats version and nonce
		is(t, <-st.requests, "1/a/cart,users")
		st.send(answer("2", "b", cluster("users", 11), bad("cart")))
		is(t, <-st.requests, "1/b/cart,users!") // the version accepted last
		limit(t, users, 11)                     // applied all the same
		limit(t, cart, 1024)

		time.Sleep(10 * time.Second)
		st.send(answer("3", "c", cluster("users", 11), cluster("cart", 5)))
		is(t, <-st.requests, "3/c/cart,users")
		limit(t, cart, 5)

		cart.Close()
		is(t, <-st.requests, "3/c/users")

		time.Sleep(2 * time.Second)
		st.end <- status.Error(codes.Unavailable, "going away")
		st = <-s.streams // a stream that had worked is replaced at once
		is(t, <-st.requests, "3//users@n1")
		synctest.Wait()
		if n := len(st.requests); n != 0 {
			t.Errorf("%d further requests", n)
		}
		limit(t, users, 11)
	})
}

// limit waits for all goroutines of the bubble and looks at the limit.
func limit(t *testing.T, c *spillxds.Cluster, want int) {
	t.Helper()
	synctest.Wait()
	if got := c.Limiter().Stats(time.Now()).MaxInFlight; got != want {
		t.Errorf("max_requests is %d, want %d", got, want)
	}
}

// diff is an incremental response; clusters have the version of the response.
func diff(version, nonce string, removed []string, clusters ...*clusterv3.Cluster) *discoveryv3.DeltaDiscoveryResponse {
	r := &discoveryv3.DeltaDiscoveryResponse{SystemVersionInfo: version, Nonce: nonce, TypeUrl: clusterType, RemovedResources: removed}
	for _, c := range clusters {
		r.Resources = append(r.Resources, &discoveryv3.Resource{Name: c.GetName(), Version: version, Resource: must(anypb.New(c))})
	}
	return r
}

// isDiff is as is: nonce/subscribe/unsubscribe/versions.
func isDiff(t *testing.T, r *discoveryv3.DeltaDiscoveryRequest, want string) {
	t.Helper()
	var versions []string
	for name, version := range r.GetInitialResourceVersions() {
		versions = append(versions, name+"="+version)
	}
	slices.Sort(versions)
	got := fmt.Sprintf("%s/%s/%s/%s", r.GetResponseNonce(), strings.Join(r.GetResourceNamesSubscribe(), ","),
		strings.Join(r.GetResourceNamesUnsubscribe(), ","), strings.Join(versions, ","))
	if r.GetErrorDetail() != nil {
		got += "!"
	}
	if r.GetNode() != nil {
		got += "@" + r.GetNode().GetId()
	}
	if got != want {
		t.Errorf("request %s, want %s", got, want)
	}
}

func TestIncremental(t *testing.T) {
	played(t, spillxds.Config{Incremental: true}, func(t *testing.T, s *script, c *spillxds.Client) {
		users := must(c.Cluster(key("users")))
		st := <-s.streams
		isDiff(t, <-st.deltas, "/users//@n1")
		st.sendDiff(diff("1", "a", nil, cluster("users", 10)))
		isDiff(t, <-st.deltas, "a///")
		cart := must(c.Cluster(key("cart"))) // no nonce: it answers nothing
		isDiff(t, <-st.deltas, "/cart//")
		st.sendDiff(diff("2", "b", nil, bad("cart"), cluster("users", 11)))
		isDiff(t, <-st.deltas, "b///!")
		limit(t, users, 11)
		limit(t, cart, 1024)
		wrong := diff("3", "c", nil, cluster("users", 99))
		wrong.Resources[0].Name = "cart"
		time.Sleep(time.Second)
		st.sendDiff(wrong)
		isDiff(t, <-st.deltas, "c///!")
		limit(t, users, 11)
		limit(t, cart, 1024)
		st.sendDiff(diff("4", "d", nil, cluster("cart", 4)))
		isDiff(t, <-st.deltas, "d///")
		limit(t, cart, 4)
		time.Sleep(2 * time.Second)
		st.end <- errors.New("broken")
		st = <-s.streams
		isDiff(t, <-st.deltas, "/cart,users//cart=4,users=2@n1")
		st.sendDiff(diff("5", "e", []string{"users"}))
		isDiff(t, <-st.deltas, "e///")
		limit(t, users, 11)
		if err := users.Ready(t.Context()); !errors.Is(err, spillxds.ErrNotFound) {
			t.Errorf("Ready after removal: %v", err)
		}
		users.Close()
		isDiff(t, <-st.deltas, "//users/")
	})
}

// TestNACKsAreDamped sends a response that is not valid again right after it was
// rejected, as go-control-plane does.
func TestNACKsAreDamped(t *testing.T) {
	played(t, spillxds.Config{}, func(t *testing.T, s *script, c *spillxds.Client) {
		users := must(c.Cluster(key("users")))
		st := <-s.streams
		<-st.requests
		start := time.Now()
		var at []time.Duration
		for n := 0; len(at) < 10; n++ {
			st.send(answer(fmt.Sprint(n/2), fmt.Sprint(n), bad("users")))
			is(t, <-st.requests, fmt.Sprintf("/%d/users!", n))
			at = append(at, time.Since(start))
		}
		want := []time.Duration{0, 250, 750, 1750, 3750, 7750, 11750, 15750, 19750, 23750}
		for i := range want {
			want[i] *= time.Millisecond
		}
		if !slices.Equal(at, want) {
			t.Errorf("NACKs at %v,\nwant %v", at, want)
		}
		// A better response is accepted at once, though a NACK is pending.
		st.send(answer("9", "pending", bad("users")))
		synctest.Wait()
		before := time.Now()
		st.send(answer("10", "good", cluster("users", 3)))
		is(t, <-st.requests, "10/good/users")
		if d := time.Since(before); d != 0 {
			t.Errorf("accepted after %v", d)
		}
		limit(t, users, 3)
		time.Sleep(time.Minute)
		if n := len(st.requests); n != 0 {
			t.Errorf("%d requests after the last response", n)
		}
		// After an ACK, the next NACK goes out at once; a subscription takes a
		// pending one along.
		st.send(answer("11", "x", bad("users")))
		is(t, <-st.requests, "10/x/users!")
		st.send(answer("11", "y", bad("users")))
		synctest.Wait()
		must(c.Cluster(key("cart")))
		is(t, <-st.requests, "10/y/cart,users!")
	})
}

func TestBackoff(t *testing.T) {
	played(t, spillxds.Config{}, func(t *testing.T, s *script, c *spillxds.Client) {
		must(c.Cluster(key("users")))
		base := float64(time.Second)
		for n := range 14 {
			st := <-s.streams
			<-st.requests
			start := time.Now()
			st.end <- status.Error(codes.Unavailable, "no")
			s.streams <- <-s.streams
			got := float64(time.Since(start))
			if want := min(base, float64(120*time.Second)); got < 0.79*want || got > 1.21*want {
				t.Errorf("wait %d: %v, want %v ± 20 %%", n, time.Duration(got), time.Duration(want))
			}
			base *= 1.6
		}
		// A response resets it, but a server that ends each stream at once is not
		// called in a loop.
		for range 3 {
			st := <-s.streams
			<-st.requests
			st.send(answer("1", "a", cluster("users", 1)))
			<-st.requests
			start := time.Now()
			st.end <- errors.New("restart")
			s.streams <- <-s.streams
			if d := time.Since(start); d < 800*time.Millisecond || d > 1200*time.Millisecond {
				t.Errorf("wait of %v after a stream that worked for no time", d)
			}
		}
	})
}

func TestDoesNotExistTimer(t *testing.T) {
	var kinds []string
	config := spillxds.Config{Observer: func(e spillxds.Event) { kinds = append(kinds, e.Kind.String()+" "+e.Cluster) }}
	played(t, config, func(t *testing.T, s *script, c *spillxds.Client) {
		users := must(c.Cluster(key("users")))
		st := <-s.streams
		<-st.requests
		time.Sleep(14 * time.Second)
		st.end <- errors.New("broken") // before the time is up: it proves nothing
		st = <-s.streams
		<-st.requests
		time.Sleep(14 * time.Second)
		if state := ready(users); !errors.Is(state, context.Canceled) {
			t.Errorf("after 14 s: %v", state)
		}
		time.Sleep(1001 * time.Millisecond)
		synctest.Wait()
		if state := ready(users); !errors.Is(state, spillxds.ErrNotFound) {
			t.Errorf("after 15 s: %v", state)
		}
		cart := must(c.Cluster(key("cart")))
		<-st.requests
		st.send(answer("1", "a", bad("cart"))) // it is bad, so it exists
		<-st.requests
		time.Sleep(time.Minute)
		if state := ready(cart); !errors.Is(state, context.Canceled) {
			t.Errorf("a bad resource: %v", state)
		}
		limit(t, users, 1024)
	})
	want := []string{"connected ", "disconnected ", "connected ", "not found users", "rejected "}
	if !slices.Equal(kinds, want) {
		t.Errorf("events %q, want %q", kinds, want)
	}
}

// TestSilenceIsNotHeld has a control plane that is silent on a cluster until that counts as one that does not exist. The next
// stream must not begin with a version that says that the client has the answer: some control planes then send none.
func TestSilenceIsNotHeld(t *testing.T) {
	played(t, spillxds.Config{}, func(t *testing.T, s *script, c *spillxds.Client) {
		must(c.Cluster(key("users")))
		st := <-s.streams
		<-st.requests
		st.send(answer("1", "a", cluster("users", 10)))
		<-st.requests
		cart := must(c.Cluster(key("cart")))
		is(t, <-st.requests, "1/a/cart,users")
		time.Sleep(15001 * time.Millisecond)
		synctest.Wait()
		if err := ready(cart); !errors.Is(err, spillxds.ErrNotFound) {
			t.Fatalf("after 15 s: %v", err)
		}
		st.end <- errors.New("broken")
		st = <-s.streams
		is(t, <-st.requests, "//cart,users@n1")
		st.send(answer("1", "b", cluster("users", 10), cluster("cart", 5)))
		is(t, <-st.requests, "1/b/cart,users")
		limit(t, cart, 5)
	})
}

// TestDoesNotExistTimerOfWildcard takes a cluster after all existing ones have
// come, for which nothing has to be sent.
func TestDoesNotExistTimerOfWildcard(t *testing.T) {
	played(t, spillxds.Config{Wildcard: true}, func(t *testing.T, s *script, c *spillxds.Client) {
		st := <-s.streams
		<-st.requests
		st.send(answer("1", "a", cluster("users", 10)))
		<-st.requests
		nobody := must(c.Cluster(key("nobody")))
		time.Sleep(14 * time.Second)
		if err := ready(nobody); !errors.Is(err, context.Canceled) {
			t.Errorf("after 14 s: %v", err)
		}
		time.Sleep(1001 * time.Millisecond)
		synctest.Wait()
		if err := ready(nobody); !errors.Is(err, spillxds.ErrNotFound) {
			t.Errorf("after 15 s: %v", err)
		}
	})
}

// ready returns what Ready says now.
func ready(c *spillxds.Cluster) error {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	return c.Ready(ctx)
}

// TestUnreachable has a control plane to which there is no connection, which is
// told, with the reason, and not again and again.
func TestUnreachable(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var mu sync.Mutex
		var told []spillxds.Event
		client := must(spillxds.New(spillxds.Config{
			Reports: spillxds.Always,
			Bootstrap: must(spillxds.ParseBootstrap([]byte(`{
				"xds_servers": [{"server_uri": "passthrough:///plane", "channel_creds": [{"type": "insecure"}]}]}`))),
			Observer: func(e spillxds.Event) {
				mu.Lock()
				defer mu.Unlock()
				told = append(told, e)
			},
			DialOptions: []grpc.DialOption{grpc.WithContextDialer(func(context.Context, string) (net.Conn, error) {
				return nil, errors.New("certificate has expired")
			})},
		}))
		must(client.Cluster(key("users")))
		time.Sleep(time.Hour)
		client.Close()
		count := map[spillxds.Kind]int{}
		for _, e := range told {
			count[e.Kind]++
			if e.Err == nil || !strings.Contains(e.Err.Error(), "certificate has expired") {
				t.Errorf("%v: %v", e.Kind, e.Err)
			}
		}
		for _, kind := range []spillxds.Kind{spillxds.Disconnected, spillxds.ReportingStopped} {
			if n := count[kind]; n < 1 || n > 60 {
				t.Errorf("%v was told %d times in an hour", kind, n)
			}
		}
	})
}

func TestNothingIsAskedForWithoutClusters(t *testing.T) {
	var kinds []spillxds.Kind
	config := spillxds.Config{Observer: func(e spillxds.Event) { kinds = append(kinds, e.Kind) }}
	played(t, config, func(t *testing.T, s *script, c *spillxds.Client) {
		time.Sleep(time.Minute)
		if len(s.streams) != 0 || len(s.reports) != 0 {
			t.Error("a stream without a subscription")
		}
		users := must(c.Cluster(key("users")))
		st := <-s.streams
		is(t, <-st.requests, "//users@n1")
		users.Close() // an empty subscription would ask for everything
		time.Sleep(time.Minute)
		if n := len(st.requests); n != 0 {
			t.Errorf("%d requests when the last cluster was given up", n)
		}
		must(c.Cluster(key("cart")))
		is(t, <-(<-s.streams).requests, "//cart@n1")
	})
	if want := []spillxds.Kind{spillxds.Connected, spillxds.Disconnected, spillxds.Connected}; !slices.Equal(kinds, want) {
		t.Errorf("events %v, want %v", kinds, want)
	}
}

// TestClusterTakenAgain gives a cluster up and takes it again before the stream has
// seen either: it stays subscribed to, so that the control plane says nothing new.
func TestClusterTakenAgain(t *testing.T) {
	for _, config := range []spillxds.Config{{Reports: spillxds.Never}, {Reports: spillxds.Never, Incremental: true}} {
		updated, goOn := make(chan bool), make(chan bool)
		config.Observer = func(e spillxds.Event) {
			if e.Kind == spillxds.Updated {
				updated <- true // the stream waits for its Observer
				<-goOn
			}
		}
		played(t, config, func(t *testing.T, s *script, c *spillxds.Client) {
			updated, goOn = make(chan bool), make(chan bool) // of this bubble
			users := must(c.Cluster(key("users")))
			st := <-s.streams
			if config.Incremental {
				<-st.deltas
				st.sendDiff(diff("1", "a", nil, cluster("users", 10)))
			} else {
				<-st.requests
				st.send(answer("1", "a", cluster("users", 10)))
			}
			<-updated
			users.Close()
			users = must(c.Cluster(key("users")))
			goOn <- true
			limit(t, users, 10)
			if err := ready(users); err != nil {
				t.Errorf("incremental %v: Ready: %v", config.Incremental, err)
			}
			users.Close()
			synctest.Wait()
			if n := len(s.streams); n != 0 {
				t.Errorf("%d further streams", n)
			}
		})
	}
}
