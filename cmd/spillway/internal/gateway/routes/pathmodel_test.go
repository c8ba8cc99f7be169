package routes

import (
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"net/url"
	"path"
	"strings"
	"testing"

	"github.com/seed90641741/spillway/cmd/spillway/internal/gateway/config"
)

// pathRoutes are routes by path, each with the pattern of [http.ServeMux] that means the same.
var pathRoutes = []struct {
	route   config.Route
	pattern string
}{
	{config.Route{Path: "/healthz", Exempt: true}, "/healthz"},
	{config.Route{Path: "/health/", Exempt: true, Prefix: true}, "/health/"},
	{config.Route{Path: "/export/all", Exact: true}, "/export/all"},
	{config.Route{Path: "/export/"}, "/export/"},
	{config.Route{Path: "/x/"}, "/x/"},
	{config.Route{}, "/"},
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

// routesAlike fails if the route of a path is another one than [http.ServeMux] chooses for the
// path that is sent on, or if that is not what [path.Clean] makes of it.
func routesAlike(t testing.TB, escaped string) (matched *Route) {
	t.Helper()
	u, err := url.ParseRequestURI(escaped)
	if err != nil || !strings.HasPrefix(u.Path, "/") {
		return nil
	}
	s, m := &Table{paths: true}, http.NewServeMux()
	for i := range pathRoutes {
		s.routes = append(s.routes, newRoute(&config.Listener{}, &pathRoutes[i].route))
		m.HandleFunc(pathRoutes[i].pattern, func(http.ResponseWriter, *http.Request) {})
	}
	r := httptest.NewRequest(http.MethodGet, "/", nil) // nothing is waited for
	r.URL = u
	r = straighten(r)
	matched = s.Match(r)
	_, pattern := m.Handler(r)
	if pattern == r.URL.Path+"/" {
		pattern = "/" // net/http redirects to the pattern
	}
	for i, x := range s.routes {
		if x != matched {
			continue
		}
		// A path that servers read in different ways is not exempt, but only that.
		if want := pathRoutes[i].pattern; pattern != want && (x.Config.Exempt || plain(r.URL)) {
			t.Errorf("%q, sent on as %q, meets the route %q, by net/http %q", escaped, r.URL.EscapedPath(), want, pattern)
		}
	}
	if sent := r.URL.EscapedPath(); !strings.Contains(escaped, "%") {
		want := path.Clean(u.Path)
		if got := strings.TrimSuffix(r.URL.Path, "/"); got != strings.TrimSuffix(want, "/") {
			t.Errorf("%q is sent on as %q, path.Clean makes it %q", escaped, sent, want)
		}
	}
	return matched
}

func TestRandomPaths(t *testing.T) {
	random := rand.New(rand.NewPCG(4, 17))
	exact := newRoute(&config.Listener{}, &pathRoutes[0].route)
	below := newRoute(&config.Listener{}, &pathRoutes[1].route)
	exempt := 0
	for range 15_000 {
		p := randomPath(random)
		same(t, p)
		exempts(t, exact, below, p)
		if x := routesAlike(t, p); x != nil && x.Config.Exempt {
			exempt++
		}
		if t.Failed() {
			return
		}
	}
	if exempt < 60 {
		t.Errorf("only %d were exempt: the test shows little", exempt)
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
