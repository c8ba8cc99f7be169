package spillxds_test

import (
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	discoveryv3 "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	"google.golang.org/protobuf/types/known/anypb"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/seed90641741/spillway/spillxds"
)

// TestNamelessIsNoDeletion has resources in a response that cannot even be named:
// what is absent may be just these.
func TestNamelessIsNoDeletion(t *testing.T) {
	played(t, spillxds.Config{Deleted: spillxds.DefaultLimit}, func(t *testing.T, s *script, c *spillxds.Client) {
		users := must(c.Cluster(key("users")))
		st := <-s.streams
		<-st.requests
		st.send(answer("1", "a", cluster("users", 10)))
		<-st.requests
		r := answer("2", "b")
		r.Resources = []*anypb.Any{{TypeUrl: clusterType, Value: []byte{0xff, 0xff}}}
		st.send(r)
		is(t, <-st.requests, "1/b/users!")
		limit(t, users, 10)
		st.send(answer("3", "c"))
		is(t, <-st.requests, "3/c/users")
		limit(t, users, 1024)
	})
}

// TestHeartbeats has resources that live for a time only, and are kept alive by
// responses with their names and nothing else, as go-control-plane sends them.
func TestHeartbeats(t *testing.T) {
	beat := func(version, nonce string, names ...string) *discoveryv3.DiscoveryResponse {
		r := answer(version, nonce)
		for _, name := range names {
			r.Resources = append(r.Resources, must(anypb.New(&discoveryv3.Resource{Name: name, Ttl: durationpb.New(time.Minute)})))
		}
		return r
	}
	played(t, spillxds.Config{Deleted: spillxds.DefaultLimit}, func(t *testing.T, s *script, c *spillxds.Client) {
		users, cart := must(c.Cluster(key("users"))), must(c.Cluster(key("cart")))
		st := <-s.streams
		awaitNames(st, 2)
		st.send(answer("1", "a", cluster("users", 10), cluster("cart", 20)))
		is(t, <-st.requests, "1/a/cart,users")
		st.send(beat("1", "b", "users")) // which says nothing of others
		is(t, <-st.requests, "1/b/cart,users")
		limit(t, users, 10)
		limit(t, cart, 20)
		st.send(answer("2", "c", cluster("cart", 21)))
		is(t, <-st.requests, "2/c/cart,users")
		limit(t, users, 1024)
	})
	played(t, spillxds.Config{Incremental: true}, func(t *testing.T, s *script, c *spillxds.Client) {
		users := must(c.Cluster(key("users")))
		st := <-s.streams
		<-st.deltas
		st.sendDiff(diff("1", "a", nil, cluster("users", 10)))
		isDiff(t, <-st.deltas, "a///")
		r := diff("1", "b", nil)
		r.Resources = []*discoveryv3.Resource{{Name: "users", Version: "1", Ttl: durationpb.New(time.Minute)}}
		st.sendDiff(r)
		isDiff(t, <-st.deltas, "b///")
		limit(t, users, 10)
	})
}

// TestVersionIsOfWhatIsHeld opens a stream for a cluster that was not there when the
// last version was: with that version a control plane may think that it has it.
func TestVersionIsOfWhatIsHeld(t *testing.T) {
	played(t, spillxds.Config{}, func(t *testing.T, s *script, c *spillxds.Client) {
		users := must(c.Cluster(key("users")))
		st := <-s.streams
		<-st.requests
		st.send(answer("1", "a", cluster("users", 10)))
		is(t, <-st.requests, "1/a/users")
		users.Close()
		synctest.Wait()
		must(c.Cluster(key("cart")))
		st = <-s.streams
		is(t, <-st.requests, "//cart@n1")
		st.send(answer("1", "a", bad("cart")))
		is(t, <-st.requests, "1/a/cart!") // accepted last, as ever
	})
}

// TestLargeResponse has more clusters than fit into what gRPC takes by default.
func TestLargeResponse(t *testing.T) {
	played(t, spillxds.Config{}, func(t *testing.T, s *script, c *spillxds.Client) {
		users := must(c.Cluster(key("users")))
		st := <-s.streams
		<-st.requests
		all := []*clusterv3.Cluster{cluster("users", 10)}
		for i := range 100 {
			other := cluster(fmt.Sprint("other-", i), 1)
			other.AltStatName = strings.Repeat("x", 64<<10)
			all = append(all, other)
		}
		st.send(answer("1", "a", all...))
		is(t, <-st.requests, "1/a/users")
		limit(t, users, 10)
	})
}

func TestOddResponses(t *testing.T) {
	played(t, spillxds.Config{}, func(t *testing.T, s *script, c *spillxds.Client) {
		users := must(c.Cluster(key("users")))
		st := <-s.streams
		<-st.requests
		st.send(&discoveryv3.DiscoveryResponse{TypeUrl: "type.googleapis.com/else", Nonce: "z"}) // nobody asked
		wrapped := answer("1", "a")
		wrapped.Resources = []*anypb.Any{must(anypb.New(&discoveryv3.Resource{Name: "users", Resource: must(anypb.New(cluster("users", 10)))}))}
		st.send(wrapped)
		is(t, <-st.requests, "1/a/users")
		limit(t, users, 10)
		st.send(answer("2", "b", cluster("users", 20), cluster("users", 30)))
		is(t, <-st.requests, "1/b/users!")
		limit(t, users, 10) // neither
		time.Sleep(time.Second)
		st.send(answer("3", "c", cluster("other", 30), cluster("users", 11)))
		is(t, <-st.requests, "3/c/users")
		limit(t, users, 11)
		var many []*clusterv3.Cluster
		for i := range 1000 {
			many = append(many, bad(fmt.Sprint("secret-", i)))
		}
		st.send(answer("4", "d", many...))
		r := <-st.requests
		if n := len(r.GetErrorDetail().GetMessage()); n > 2100 {
			t.Errorf("an error detail of %d bytes", n)
		}
		if got := c.Stats(time.Now()); got.IgnoredTotal != 1 || got.AcceptedTotal != 2 || got.RejectedTotal != 2 || got.NACKsTotal != 2 {
			t.Errorf("stats: %+v", got)
		}
	})
}
