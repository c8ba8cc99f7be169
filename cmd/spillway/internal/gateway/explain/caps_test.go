package explain

import (
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"github.com/seed90641741/spillway/cmd/spillway/internal/gateway/config"
)

// TestCaps: the explanation has the caps of the listener and the cluster of the request that the limit on open
// files lowers, as configured and in force, and none where there is nothing to tell.
func TestCaps(t *testing.T) {
	c := config.ForUpstream("127.0.0.1:0", "127.0.0.1:1")
	c.Listeners = append(c.Listeners, config.Listener{Name: "other", Address: "127.0.0.1:0"})
	c.Listeners[0].Name, c.Listeners[0].MaxConnections = "main", -1
	c.Clusters = append(c.Clusters, config.Cluster{Name: "other", Endpoints: []string{"127.0.0.1:2"}})
	c.Routes = []config.Route{{Path: "/api/", Cluster: "upstream"}}
	for _, row := range []struct {
		files int
		path  string
		want  []CapFacts
		says  string
	}{
		{0, "/api/", nil, ""},
		{1 << 20, "/api/", []CapFacts{{"listeners[main].max_connections", -1, 262128}}, "or --open-files)\n  listeners[main].max_connections  configured no cap  in force 262128\n\nwhen"},
		{256, "/api/", []CapFacts{
			{"listeners[main].max_connections", -1, 48}, {"listeners[main].max_requests", 10000, 96}, {"clusters[upstream].max_connections", 1024, 24},
		}, "lowered by the limit on open files, 256 (ulimit -n, "},
		{256, "/else", []CapFacts{{"listeners[main].max_connections", -1, 48}, {"listeners[main].max_requests", 10000, 96}}, ""},
	} {
		e, err := Explain(c, Question{Request: httptest.NewRequest("GET", row.path, nil), Files: row.files})
		if err != nil {
			t.Fatal(err)
		}
		if !slices.Equal(e.Caps, row.want) || e.Files != row.files {
			t.Errorf("%d files, %s: %+v, want %+v", row.files, row.path, e.Caps, row.want)
		}
		var text strings.Builder
		if err := e.Write(&text); err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(text.String(), row.says) || row.want == nil && strings.Contains(text.String(), "in force") {
			t.Errorf("%d files, %s: no %q in\n%s", row.files, row.path, row.says, &text)
		}
	}
}
