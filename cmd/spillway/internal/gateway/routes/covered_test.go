package routes

import (
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/url"
	"testing"

	"github.com/seed90641741/spillway/cmd/spillway/internal/gateway/config"
	"github.com/seed90641741/spillway/internal/race"
)

// TestRoutesThatAreNeverUsed compares the warnings with what random requests meet: a route
// with a warning meets none.
func TestRoutesThatAreNeverUsed(t *testing.T) {
	race.SkipOneGoroutine(t)
	random := rand.New(rand.NewPCG(7, 7))
	one := func(all ...string) string { return all[random.IntN(len(all))] }
	warned := 0
	for range 2000 {
		l := config.Listener{Name: "a", Address: "127.0.0.1:0"}
		c := &config.Config{Listeners: []config.Listener{l}, Clusters: []config.Cluster{{Name: "x", Endpoints: []string{"127.0.0.1:1"}}}}
		for range 2 {
			r := config.Route{Cluster: "x", Path: one("/", "/", "/a", "/a/", "/a/b"), Host: one("", "", "x.test", "X.test", "*.test", "*.x.test", "y.x.test")}
			switch random.IntN(4) {
			case 0:
				r.Exact = true
			case 1:
				r.Exempt = true
			}
			if random.IntN(3) == 0 {
				r.Methods = []string{one("GET", "PUT"), "HEAD"}
			}
			if random.IntN(3) == 0 {
				r.Headers = map[string]string{one("x-a", "X-A", "X-B"): one("*", "1", "2")}
			}
			c.Routes = append(c.Routes, r)
		}
		if len(c.Warnings()) == 0 {
			continue
		}
		warned++
		table := New(c, &l)
		for range 100 {
			r := &http.Request{
				Method: one("GET", "PUT", "HEAD"), URL: &url.URL{Path: one("/", "/a", "/a/", "/a/b", "/a/b/c", "/ab"), RawPath: ""},
				Host: one("x.test", "y.x.test:80", "z.y.x.test", "test", "z"), Header: http.Header{"X-A": {one("1", "2")}, "X-B": {one("1", "3")}},
			}
			if m := table.Match(r); m != nil && m.Index == 1 {
				t.Fatalf("%s %s%s reaches the second of %s", r.Method, r.Host, r.URL.Path, fmt.Sprintf("%+v", c.Routes))
			}
		}
	}
	if warned < 50 || warned > 1000 {
		t.Errorf("%d of 2000 were warned of: the test shows little", warned)
	}
}
