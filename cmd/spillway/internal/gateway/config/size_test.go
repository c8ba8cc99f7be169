package config

import (
	"fmt"
	"strings"
	"testing"

	"github.com/seed90641741/spillway/internal/race"
)

// TestCheckGrowsWithTheFile compares what it takes to check files of clusters: the double, about twice.
// A proxy checks its file while it serves.
func TestCheckGrowsWithTheFile(t *testing.T) {
	race.SkipOneGoroutine(t)
	allocations := func(n int) float64 {
		var b strings.Builder
		b.WriteString("listeners: [{address: 127.0.0.1:0}]\nroutes:\n")
		for i := range n {
			fmt.Fprintf(&b, "- {path: /c%d/, cluster: c%d}\n", i, i)
		}
		b.WriteString("clusters:\n")
		for i := range n {
			fmt.Fprintf(&b, "- {name: c%d, endpoints: [127.0.0.1:1]}\n", i)
		}
		c := parse(t, b.String())
		return testing.AllocsPerRun(1, func() { _ = c.Check() })
	}
	if few, many := allocations(25), allocations(50); many > 2.5*few {
		t.Errorf("%v allocations to check 25 clusters, and %v to check 50", few, many)
	}
}
