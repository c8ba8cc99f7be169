package config

import (
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/seed90641741/spillway/internal/race"
)

// TestCoveredAsByEachPair compares the search with a look at all pairs, for routes that often cover one another.
func TestCoveredAsByEachPair(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	one := func(of ...string) string { return of[random.IntN(len(of))] }
	some := func(of ...string) (chosen []string) {
		for _, x := range of {
			if random.IntN(4) == 0 {
				chosen = append(chosen, x)
			}
		}
		return chosen
	}
	yes, found := func() bool { return random.IntN(5) == 0 }, 0
	for range 500 {
		routes := make([]Route, 12)
		for i := range routes {
			r := &routes[i]
			r.Host = one("", "", "*.a.test", "*.test", "X.a.test", "x.A.test", "y.x.a.test", "*.x.a.test", "b")
			r.Path = one("", "/", "/a", "/a/", "/a/b", "/b/")
			r.Exact, r.Exempt = yes() && r.Path != "", yes() && r.Path != ""
			r.Methods, r.Listeners = some("GET", "PUT"), some("edge", "mesh")
			r.Headers = make(map[string]string)
			for _, name := range some("X-A", "x-b") {
				r.Headers[name] = one("*", "1", "2")
			}
		}
		c := covered{routes: routes, byPath: make(map[string]map[selector][]int)}
		for i := range routes {
			want := slices.IndexFunc(routes[:i], func(r Route) bool { return r.covers(&routes[i]) })
			if got := c.cover(i); got != want {
				t.Fatalf("%+v is covered by %d, want %d of %+v", routes[i], got, want, routes[:i])
			}
			if want >= 0 {
				found++
			}
		}
	}
	if found < 500 {
		t.Errorf("only %d were covered", found)
	}
}

// TestManyRoutes compares what it takes to look at 2000 routes and at eight times as many: about eight times as much.
// If each was compared with each, or with each cluster, it would be 64 times.
func TestManyRoutes(t *testing.T) {
	race.SkipOneGoroutine(t)
	for _, form := range []Route{{Path: "/p%d/"}, {Host: "h%d.test"}, {Headers: map[string]string{"X-Tenant": "t%d"}}, {Path: "/", Cluster: "c%d"}} {
		took := func(n int) time.Duration {
			c := &Config{Routes: make([]Route, n), Clusters: make([]Cluster, n)}
			for i := range n {
				named := func(text string) string { return strings.Replace(text, "%d", strconv.Itoa(i), 1) }
				r := &c.Routes[i]
				r.Path, r.Host, r.Cluster = named(form.Path), named(form.Host), named(form.Cluster)
				for name, value := range form.Headers {
					r.Headers = map[string]string{name: named(value)}
				}
				c.Clusters[i].Name = named("c%d")
			}
			least := time.Hour
			for range 5 {
				start := time.Now()
				k := &checker{config: c, graph: newGraph(c)}
				earlier := covered{routes: c.Routes, byPath: make(map[string]map[selector][]int)}
				for i := range n {
					k.references("", &c.Routes[i])
					k.limitKeys(c.Clusters[i].Name)
					earlier.cover(i)
				}
				least = min(least, time.Since(start))
			}
			return least
		}
		if few, many := took(2000), took(16000); many > 30*few {
			t.Errorf("%+v: %v for 2000 routes, and %v for 16000", form, few, many)
		}
	}
}
