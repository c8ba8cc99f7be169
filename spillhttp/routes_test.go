package spillhttp

import (
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/seed90641741/spillway/internal/race"
)

// Routes names the route of a request as the frameworks write it, without an allocation.
func TestRoutes(t *testing.T) {
	key := Routes(func(add func(method, path string)) {
		for _, r := range []string{
			"GET /", "GET /users/:id", "GET /users/new", "GET /users/{id}/posts/{post}", "GET /users/new/drafts", "POST /users",
			"GET /static/*file", "GET /v1/*", "GET /pages/{rest...}", "GET /archive/:year?", "GET /users/:name", "GET /a/:from-:to",
		} {
			method, path, _ := strings.Cut(r, " ")
			add(method, path)
		}
	})
	for _, row := range []struct{ method, path, want string }{
		{"GET", "/", "GET /"},
		{"GET", "/users/7", "GET /users/:id"},
		{"GET", "/users/new", "GET /users/new"},
		{"GET", "/users/new/drafts", "GET /users/new/drafts"},
		{"GET", "/users/new/posts/1", "GET /users/{id}/posts/{post}"},
		{"GET", "/users/7/posts/1", "GET /users/{id}/posts/{post}"},
		{"GET", "/users/7/posts", ""},
		{"GET", "/users/", ""},
		{"GET", "/users", ""},
		{"POST", "/users", "POST /users"},
		{"DELETE", "/users", ""},
		{"GET", "/static/css/a.css", "GET /static/*file"},
		{"GET", "/static/", "GET /static/*file"},
		{"GET", "/v1/x", "GET /v1/*"},
		{"GET", "/pages/a/b", "GET /pages/{rest...}"},
		{"GET", "/archive", "GET /archive/:year?"},
		{"GET", "/archive/2026", "GET /archive/:year?"},
		{"GET", "/a/x-y", "GET /a/:from-:to"},
		{"GET", "/nothing", ""},
		{"GET", "", "GET /"},
		{"GET", "*", ""},
	} {
		r := &http.Request{Method: row.method, URL: &url.URL{Path: row.path}}
		if got := key(r); got != row.want {
			t.Errorf("%s %s: %q, want %q", row.method, row.path, got, row.want)
		}
		if n := testing.AllocsPerRun(10, func() { key(r) }); n != 0 && !race.Enabled {
			t.Errorf("%s %s: %v allocations", row.method, row.path, n)
		}
	}
}
