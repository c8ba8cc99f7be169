package httpproxy

import (
	"net/http"
	"strings"
	"testing"

	"github.com/seed90641741/spillway/cmd/spillway/internal/gateway/config"
	"github.com/seed90641741/spillway/cmd/spillway/internal/gateway/headers"
)

// TestRequestID: the upstream and the client get the same id, once. At an edge it is that of the client
// only if the configuration trusts it. What the upstream says of the id is not passed on.
func TestRequestID(t *testing.T) {
	quiet(t)
	var got []string
	upstream := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		got = r.Header[headers.RequestID]
		w.Header()[headers.RequestID] = []string{"other", "another"}
		if r.URL.Path == "/early" {
			w.Header().Set("Link", "</a.css>")
			w.WriteHeader(http.StatusEarlyHints)
		}
		w.WriteHeader(http.StatusOK)
	})
	for _, row := range []struct {
		boundary        string
		preserve, kept  bool
		path, came, why string
	}{
		{boundary: "edge", path: "/", came: "id-1"},
		{boundary: "edge", path: "/early", came: "id-1"},
		{boundary: "edge", path: "/"},
		{boundary: "edge", preserve: true, path: "/", came: "id-1", kept: true},
		{boundary: "edge", preserve: true, path: "/", came: "two words"},
		{boundary: "internal", path: "/", came: "id-1", kept: true},
		{boundary: "internal", path: "/"},
	} {
		url, _ := front(t, upstream, func(c *config.Config) {
			l := &c.Listeners[0]
			l.Boundary, l.Peers, l.PreserveRequestID = row.boundary, []string{"127.0.0.0/8"}, row.preserve
		})
		for _, second := range []bool{false, true} {
			got = nil
			var send []string
			if row.came != "" {
				send = []string{headers.RequestID, row.came}
			}
			resp, _ := do(t, client(t, second), http.MethodGet, url+row.path, "", send...)
			back := resp.Header[headers.RequestID]
			if len(got) != 1 || len(back) != 1 || got[0] != back[0] || (got[0] == row.came) != row.kept || len(got[0]) != 36 && !row.kept {
				t.Errorf("%+v, HTTP/2 %v: %q is sent, %q is returned", row, second, got, back)
			}
		}
	}
}

// TestRequestIDOfRejections: an answer of the proxy itself has an id, too, and so has one of a gate.
func TestRequestIDOfRejections(t *testing.T) {
	quiet(t)
	address := closedAddress(t)
	c := config.ForUpstream("127.0.0.1:0", address)
	c.Mode = "enforce"
	c.Routes = []config.Route{{Path: "/api/", Customer: config.Customer{Header: "X-Customer", Trusted: true}}}
	c.Clusters[0].Quota = &config.Quota{DefaultLimit: config.Limit{Rate: 0.001}}
	p := start(t, c)
	statuses := make(map[int]int)
	for _, path := range []string{"/none", "/api/a", "/api/b", "/api/c", "/api/d"} {
		resp, _ := do(t, client(t, false), http.MethodGet, "http://"+p.Addr("").String()+path, "", headers.RequestID, "mine", "X-Customer", "acme")
		statuses[resp.StatusCode]++
		if id := resp.Header[headers.RequestID]; len(id) != 1 || len(id[0]) != 36 || strings.Contains(id[0], "mine") {
			t.Errorf("%s: %d with the id %q", path, resp.StatusCode, id)
		}
	}
	if statuses[http.StatusNotFound] != 1 || statuses[http.StatusTooManyRequests] == 0 || statuses[http.StatusBadGateway] == 0 {
		t.Errorf("statuses: %v, want one of each kind", statuses)
	}
}
