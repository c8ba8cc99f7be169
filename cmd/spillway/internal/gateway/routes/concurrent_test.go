package routes

import (
	"fmt"
	"net/http"
	"net/url"
	"sync"
	"testing"

	"github.com/seed90641741/spillway/cmd/spillway/internal/gateway/config"
)

// TestRequestsShareATable: many requests ask one table at once, and change themselves only.
func TestRequestsShareATable(t *testing.T) {
	l := &config.Listener{Name: "a", Boundary: "internal"}
	c := &config.Config{}
	for i := range 8 {
		c.Routes = append(c.Routes, config.Route{
			Path: fmt.Sprintf("/%d/", i), Host: "*.example.com", Methods: []string{http.MethodGet},
			Headers: map[string]string{"x-a": "*"}, Customer: config.Customer{Header: "x-team"},
		})
	}
	table := New(c, l)
	var all sync.WaitGroup
	for i := range 8 {
		all.Go(func() {
			for _, path := range []string{"/%d/a", "/%d/a%%2fb", "/%d/a;x"} {
				target := fmt.Sprintf(path, i)
				u, err := url.ParseRequestURI(target)
				if err != nil {
					t.Error(err)
					return
				}
				team := fmt.Sprint("team", i)
				r := &http.Request{Method: http.MethodGet, URL: u, RequestURI: target, Host: "API.example.com:80",
					Header: http.Header{"X-A": {"1"}, "X-Team": {team}, "Upgrade": {"h2c"}, "Http2-Settings": {"x"}}}
				x := table.Match(r)
				if err := table.Admits(r); x == nil || x.Index != i || err != nil || x.Customer(r) != team {
					t.Errorf("%s has the route %+v, %v", target, x, err)
					return
				}
				if x.Upgrade(r); r.Header["Upgrade"] != nil || r.Header["Http2-Settings"] != nil {
					t.Errorf("%s: headers %v", target, r.Header)
				}
			}
		})
	}
	all.Wait()
}
