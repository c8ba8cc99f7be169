package balance

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/seed90641741/spillway/internal/race"
)

// TestSubsetOfEndpointsThatChange: of 10,000 endpoints 1 % are replaced. Of its 20 endpoints, a
// client keeps most.
func TestSubsetOfEndpointsThatChange(t *testing.T) {
	race.SkipOneGoroutine(t)
	random := rand.New(rand.NewPCG(8, 9))
	name := func() string {
		return fmt.Sprintf("10.%d.%d.%d:80", random.IntN(256), random.IntN(256), random.IntN(256))
	}
	var all []string
	for range 10000 {
		all = append(all, name())
	}
	before := slices.Clone(all)
	for range 100 {
		all[random.IntN(len(all))] = name()
	}
	kept := 0
	const clients, size = 50, 20
	for i := range uint64(clients) {
		now := Subset(all, i*37, size)
		for _, x := range Subset(before, i*37, size) {
			if slices.Contains(now, x) {
				kept++
			}
		}
	}
	if share := float64(kept) / (clients * size); share < 0.6 {
		t.Errorf("%.2f of the endpoints are kept", share)
	} else {
		t.Logf("%.2f of the endpoints are kept", share)
	}
}
