package httpproxy

import (
	"net/http"
	"testing"
	"time"

	"github.com/seed90641741/spillway/cmd/spillway/internal/gateway/config"
)

// TestWork: the limit on new connections counts the requests of all gates. Where no shedder enforces there is no
// such limit, as no processor is said to be used.
func TestWork(t *testing.T) {
	for _, mode := range []config.Mode{"enforce", "observe"} {
		url, p := front(t, http.NotFoundHandler(), func(c *config.Config) {
			c.Mode = mode
			second := c.Clusters[0]
			second.Name = "second"
			c.Clusters = append(c.Clusters, second)
			c.Routes = append(c.Routes, config.Route{Path: "/second", Cluster: "second"}, config.Route{Path: "/", Cluster: c.Clusters[0].Name})
		})
		for _, path := range []string{"/second", "/second", "/upstream", "/"} {
			do(t, client(t, false), http.MethodGet, url+path, "")
		}
		for _, l := range p.listeners {
			busy := func() bool {
				_, cpu := l.work(time.Now())
				return cpu > 0
			}
			if mode == "enforce" {
				until(t, "the processor time is known", busy)
			}
			if begun, _ := l.work(time.Now()); begun != 4 || mode == "observe" && busy() {
				t.Errorf("%s: %d have begun, busy: %t", mode, begun, busy())
			}
		}
	}
}
