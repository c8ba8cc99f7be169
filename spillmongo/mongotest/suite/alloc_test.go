package suite_test

import (
	"math"
	"runtime"
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/seed90641741/spillway/internal/race"
)

// allocations returns how many f makes for a command, in a hundred of them.
func allocations(t *testing.T, f func() error) float64 {
	t.Helper()
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	for range 100 {
		if err := f(); err != nil {
			t.Fatal(err)
		}
	}
	runtime.ReadMemStats(&after)
	return float64(after.Mallocs-before.Mallocs) / 100
}

// TestAllocations: a command that succeeds at once costs one allocation more than
// without the policy, adaptive retries or not: what stands in its connection. The
// least of several counts is that without what else goes on.
func TestAllocations(t *testing.T) {
	if race.Enabled {
		t.Skip("the race detector allocates")
	}
	least := [len(benchNames)]float64{}
	colls := benchClients(t)
	for round := range 10 {
		for i, coll := range colls {
			n := allocations(t, func() error { return coll.FindOne(t.Context(), bson.D{}).Err() })
			if least[i] = min(least[i], n); round == 0 {
				least[i] = math.Inf(1) // it connected
			}
		}
	}
	for i, n := range least {
		if n > least[0]+1.5 {
			t.Errorf("%s: %.2f allocations, %.2f without a policy", benchNames[i], n, least[0])
		}
	}
}
