package importer

import (
	"fmt"
	"strings"
	"testing"

	"github.com/seed90641741/spillway/internal/race"
)

// TestImportGrowsWithTheDocument compares what it takes to import documents: the double, about twice.
func TestImportGrowsWithTheDocument(t *testing.T) {
	race.SkipOneGoroutine(t)
	for name, part := range map[string]struct{ begin, each, end string }{
		"endpoints": {
			"clusters: [{name: a, load_assignment: {endpoints: [{lb_endpoints: [",
			"{endpoint: {address: {socket_address: {address: 10.0.0.1, port_value: %[1]d}}}},", "]}]}}]",
		},
		"listeners": {
			"clusters: [{name: a, lb_policy: RANDOM}]\nlisteners: [",
			"{name: l%[1]d, address: {socket_address: {address: 10.0.0.1, port_value: %[1]d}}, filter_chains: [{filters: [{typed_config: {'@type': x.HttpConnectionManager}}]}]},", "]",
		},
	} {
		allocations := func(n int) float64 {
			var b strings.Builder
			b.WriteString(part.begin)
			for i := range n {
				fmt.Fprintf(&b, part.each, i+1)
			}
			b.WriteString(part.end)
			return testing.AllocsPerRun(1, func() {
				if _, err := Envoy([]Document{{Name: "envoy.yaml", Text: []byte(b.String())}}, Options{}); err != nil {
					t.Fatal(err)
				}
			})
		}
		if few, many := allocations(100), allocations(200); many > 2.5*few {
			t.Errorf("%v allocations for 100 %s, and %v for 200", few, name, many)
		}
	}
}
