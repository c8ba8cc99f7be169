package reach

import (
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"testing"
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
		for i, got := range Covered(routes) {
			want := slices.IndexFunc(routes[:i], func(r Route) bool { return r.covers(&routes[i]) })
			if got != want {
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

// TestManyRoutes counts how often routes are compared that differ in one condition: not each with each.
func TestManyRoutes(t *testing.T) {
	const n = 2000
	for _, form := range []Route{{Path: "/p%d/"}, {Host: "h%d.test"}, {Headers: map[string]string{"X-Tenant": "t%d"}}, {Path: "/"}} {
		routes := make([]Route, n)
		for i := range routes {
			named := func(text string) string { return strings.Replace(text, "%d", strconv.Itoa(i), 1) }
			routes[i] = Route{Path: named(form.Path), Host: named(form.Host), Headers: make(map[string]string)}
			for name, value := range form.Headers {
				routes[i].Headers[name] = named(value)
			}
		}
		if _, compared := search(routes); compared > n {
			t.Errorf("%+v: %d comparisons of %d routes", form, compared, n)
		}
	}
}
