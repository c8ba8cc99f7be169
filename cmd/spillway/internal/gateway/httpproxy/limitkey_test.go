package httpproxy

import (
	"net/http"
	"slices"
	"testing"
	"time"

	"github.com/seed90641741/spillway/cmd/spillway/internal/gateway/config"
	"github.com/seed90641741/spillway/internal/admin/accounts"
)

// TestRoutesWaitForTheirCluster: routes without a key share the limit of their cluster, and routes with one have another. In the accounts
// each route has its own place.
func TestRoutesWaitForTheirCluster(t *testing.T) {
	address, _ := upstreamAt(t, http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	c, book := config.ForUpstream("127.0.0.1:0", address), new(accounts.Book)
	c.Routes = []config.Route{{Path: "/a"}, {Path: "/b", Methods: []string{"GET"}, Criticality: "SHEDDABLE"}, {Path: "/cached/", Key: "cache"}, {}}
	p, err := Start(t.Context(), c, Config{Accounts: book})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = p.Close() }()
	for _, path := range []string{"/a", "/b", "/cached/x", "/"} {
		do(t, client(t, false), http.MethodGet, "http://"+p.Addr("").String()+path, "")
	}
	var keys, places []string
	for _, k := range p.Stats(time.Now()).Gates[0].Concurrency.Keys {
		if k.Latency > 0 {
			keys = append(keys, k.Key)
		}
	}
	if slices.Sort(keys); !slices.Equal(keys, []string{"upstream", "upstream: cache"}) {
		t.Errorf("limits of %q", keys)
	}
	for _, x := range book.Places() {
		if x.Cluster != "" {
			places = append(places, x.Route)
		}
	}
	if slices.Sort(places); !slices.Equal(places, []string{"/", "/a", "/b GET", "cache"}) {
		t.Errorf("places of %q", places)
	}
}
