package routes

import (
	"math/rand/v2"
	"net/http"
	"net/url"
	"path"
	"strings"
	"testing"

	"github.com/seed90641741/spillway/cmd/spillway/internal/gateway/config"
	"github.com/seed90641741/spillway/internal/race"
)

// pathRoutes are routes by path.
var pathRoutes = []config.Route{
	{Path: "/healthz", Exempt: true}, {Path: "/health/", Exempt: true, Prefix: true},
	{Path: "/export/all", Exact: true}, {Path: "/export/"}, {Path: "/x/"}, {},
}

// randomPath combines segments as [paths] does, with changes of single bytes.
func randomPath(random *rand.Rand) string {
	segments := []string{
		"", ".", "..", "%2e", "%2E%2e", ".%2e", "...", "..;", ";x", "%2f", "..%2F", "\\", "%5c..", "%252e%252e", "%00", "%c0%ae", "healthz", "health", "export", "all", "x", "%68ealth", "a.b", "é", "+", "~", "*", ":", "@", "&",
	}
	var b strings.Builder
	for range 1 + random.IntN(6) {
		b.WriteString("/" + segments[random.IntN(len(segments))])
	}
	p := b.String()
	if random.IntN(4) == 0 {
		at := 1 + random.IntN(len(p))
		p = p[:at] + string("/.;%\\?#2ef5c~"[random.IntN(13)]) + p[at:]
	}
	return p
}

// servers are models of servers that read the target of a request in different ways.
var servers = map[string]func(t testing.TB, target string, u *url.URL) string{
	"literal": func(_ testing.TB, _ string, u *url.URL) string { return u.Path },
	"clean":   func(_ testing.TB, _ string, u *url.URL) string { return cleaned(u.Path) },
	"RFC 3986": func(_ testing.TB, _ string, u *url.URL) string {
		ref := *u
		ref.Host = "a.test"
		return (&url.URL{Scheme: "http", Host: "a.test"}).ResolveReference(&ref).Path
	},
	"reference": func(_ testing.TB, target string, _ *url.URL) string {
		u, err := (&url.URL{Scheme: "http", Host: "a.test", Path: "/"}).Parse(target)
		if err != nil {
			return ""
		}
		return cleaned(u.Path)
	},
	"backslashes": func(_ testing.TB, _ string, u *url.URL) string {
		return cleaned(strings.ReplaceAll(u.Path, "\\", "/"))
	},
	"parameters": func(_ testing.TB, _ string, u *url.URL) string {
		segments := strings.Split(u.Path, "/")
		for i, s := range segments {
			if s, _, _ := strings.Cut(s, ";"); s == ".." || s == "." {
				segments[i] = s
			}
		}
		return cleaned(strings.Join(segments, "/"))
	},
	"twice": func(_ testing.TB, _ string, u *url.URL) string {
		if again, err := url.PathUnescape(u.Path); err == nil {
			return cleaned(again)
		}
		return cleaned(u.Path)
	},
}

// cleaned is [path.Clean], which leaves a slash at the end.
func cleaned(p string) string {
	if p == "" || p[0] != '/' {
		p = "/" + p
	}
	c := path.Clean(p)
	if last := p[strings.LastIndexByte(p, '/')+1:]; c != "/" && (last == "" || last == "." || last == "..") {
		c += "/"
	}
	return c
}

// model returns the first route that matches a path.
func model(all []*Route, path string, exempt bool) *Route {
	for _, x := range all {
		c := x.Config
		if c.Exempt && !exempt || len(path) < len(c.Path) || path[:len(c.Path)] != c.Path || (c.Exact || c.Exempt && !c.Prefix) && path != c.Path {
			continue
		}
		return x
	}
	return nil
}

// routesAlike fails if a request has a route, and for the path that a server reads another route
// matches. It also fails if a plain path is rejected.
func routesAlike(t testing.TB, target string) (matched *Route, ok bool) {
	t.Helper()
	u, err := url.ParseRequestURI(target)
	if err != nil || !strings.HasPrefix(target, "/") || strings.Contains(target, "?") {
		return nil, true
	}
	s := &Table{paths: true}
	for i := range pathRoutes {
		s.routes = append(s.routes, newRoute(&config.Listener{}, &pathRoutes[i]))
	}
	r := &http.Request{Method: http.MethodGet, URL: u, RequestURI: target}
	if err := s.Admits(r); err != nil {
		if x := s.Match(r); sendable(r) && (plain(target) || x != nil) {
			t.Errorf("%q: %v, and the route %+v", target, err, x)
		}
		return nil, false
	}
	matched = s.Match(r)
	for name, reads := range servers {
		read := reads(t, target, u)
		if want := model(s.routes, read, plain(target)); want != matched {
			t.Errorf("%q has the route %+v, read as %q (%s) it has %+v", target, matched, read, name, want)
		}
	}
	return matched, true
}

func TestRandomPaths(t *testing.T) {
	race.SkipOneGoroutine(t)
	random := rand.New(rand.NewPCG(4, 17))
	exact := newRoute(&config.Listener{}, &pathRoutes[0])
	below := newRoute(&config.Listener{}, &pathRoutes[1])
	exempt, odd, rejected := 0, 0, 0
	for range 15_000 {
		p := randomPath(random)
		same(t, p)
		exempts(t, exact, below, p)
		x, ok := routesAlike(t, p)
		switch {
		case !ok:
			rejected++
		case x != nil && x.Config.Exempt:
			exempt++
		case !plain(p):
			odd++
		}
		if t.Failed() {
			return
		}
	}
	if exempt < 60 || odd < 1000 || rejected < 500 {
		t.Errorf("%d were exempt, %d odd and %d rejected: the test shows little", exempt, odd, rejected)
	}
}

// FuzzRoutes is the same for anything.
func FuzzRoutes(f *testing.F) {
	random := rand.New(rand.NewPCG(5, 17))
	for range 50 {
		f.Add(randomPath(random))
	}
	f.Fuzz(func(t *testing.T, p string) { routesAlike(t, p) })
}

// TestOddPaths has paths that servers read in different ways. Some are sent on, because all readings
// have the same route. The others are rejected.
func TestOddPaths(t *testing.T) {
	s := New(&config.Config{Routes: []config.Route{{Path: "/healthz", Exempt: true}, {Path: "/public/"}, {Path: "/report"}, {Path: "/files/", Methods: []string{"GET"}}}},
		&config.Listener{Boundary: "internal"})
	for target, want := range map[string]error{
		"/files/https://example.com/a.png": nil, "/files//key/.": nil, "/files/a%2Fb//c": nil, "/files/%252e": nil, "/files/a;v=1": nil,
		"/files/a|b%2Fc": nil, "http://a.test/files/x/..": nil, "http://a.test?x": nil, "/admin/..": nil, "/": nil, "*": nil, "/report;s=1": nil,
		"//healthz": nil, "/healthz/.": nil, "/healthz%2f": nil, // not exempt, and of no other route
		"/public/../admin": ErrPath, "/public/%2e%2E/admin": ErrPath, "/public/..%2fadmin": ErrPath, `/public/..\admin`: ErrPath,
		"/public/%2e%2e%5cadmin": ErrPath, "/public/..;/admin": ErrPath, "/public/..;a=b/admin": ErrPath, "/public/%252e%252e%252fadmin": ErrPath,
		"/admin/../public/x": ErrPath, "//public/admin": ErrPath, "//x/report": ErrPath, "//report": ErrPath, "/public%2Fadmin": ErrPath,
		"http://a.test/public/../admin": ErrPath, "/files/x/../../report": ErrPath,
		"/files/" + strings.Repeat("a/", maxOdd) + ".": ErrPath, "/files/" + strings.Repeat("a", maxOdd): nil,
		"/files/x#y": ErrPath, "/files/x?a#b": ErrPath, "//a|b": ErrPath, "http:files": ErrPath, "http:/files/": ErrPath,
	} {
		u, err := url.ParseRequestURI(target)
		if err != nil {
			t.Fatal(err)
		}
		r := &http.Request{Method: http.MethodGet, URL: u, RequestURI: target}
		if got := s.Admits(r); got != want {
			t.Errorf("%q: %v, want %v", target, got, want)
		}
	}
}
