package routes

import (
	"math/rand/v2"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"

	"github.com/seed90641741/spillway/cmd/spillway/internal/gateway/config"
)

// failing returns the fields of a route that a request is not as: a model of miss.
func failing(c *config.Route, r *http.Request) map[string]bool {
	all := make(map[string]bool)
	if c.Exact && r.URL.Path != c.Path || len(r.URL.Path) < len(c.Path) || r.URL.Path[:len(c.Path)] != c.Path {
		all["path"] = true
	}
	name := strings.ToLower(strings.TrimSuffix(r.Host, ":8080"))
	if c.Host != "" && c.Host != name && !(c.Host[0] == '*' && strings.HasSuffix(name, c.Host[1:]) && name != c.Host[1:]) {
		all["host"] = true
	}
	if len(c.Methods) > 0 {
		all["methods"] = true
		for _, m := range c.Methods {
			if m == r.Method {
				delete(all, "methods")
			}
		}
	}
	for name, want := range c.Headers {
		has := false
		for _, v := range r.Header.Values(name) {
			has = has || v == want || want == "*"
		}
		if !has {
			all["headers."+name] = true
		}
	}
	return all
}

// TestRoutesAgainstAModel matches random requests with random routes.
func TestRoutesAgainstAModel(t *testing.T) {
	random := rand.New(rand.NewPCG(9, 9))
	one := func(all ...string) string { return all[random.IntN(len(all))] }
	matched := 0
	for range 500 {
		s, l := &Table{}, &config.Listener{Name: "a"}
		for range 1 + random.IntN(5) {
			c := &config.Route{Path: one("", "/", "/a", "/a/", "/ab"), Host: one("", "x.test", "*.x.test"), Headers: map[string]string{}}
			c.Exact = c.Path != "" && random.IntN(3) == 0
			if random.IntN(2) == 0 {
				c.Methods = []string{one("GET", "PUT"), "HEAD"}
			}
			for range random.IntN(3) {
				c.Headers[one("x-a", "X-B")] = one("*", "1", "2")
			}
			s.routes = append(s.routes, newRoute(l, c))
		}
		for range 20 {
			r := &http.Request{
				Method: one("GET", "PUT", "POST"), URL: &url.URL{Path: one("/", "/a", "/a/b", "/abc", "/b")},
				Host: one("x.test", "X.test:8080", "y.x.test", "z"), Header: http.Header{},
			}
			for range random.IntN(3) {
				r.Header.Add(one("X-A", "X-B"), one("1", "2", "3"))
			}
			got, want := s.Match(r), slices.IndexFunc(s.routes, func(x *Route) bool { return len(failing(x.Config, r)) == 0 })
			if (got == nil) != (want < 0) || got != nil && got != s.routes[want] {
				t.Fatalf("%+v: %+v, want route %d", r, got, want)
			}
			if got != nil {
				matched++
			}
			for _, x := range s.routes {
				bad := failing(x.Config, r)
				if field := x.Miss(r, Path(r), Host(r)); field == "" != (len(bad) == 0) || field != "" && !bad[field] {
					t.Fatalf("%+v, %+v: missed by %q, want one of %v", x.Config, r, field, bad)
				}
			}
		}
	}
	if matched < 1000 || matched > 9000 {
		t.Errorf("%d of 10000 matched: the test shows little", matched)
	}
}
