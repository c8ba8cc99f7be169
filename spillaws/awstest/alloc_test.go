package awstest

import (
	"testing"

	"github.com/aws/smithy-go/middleware"

	"github.com/seed90641741/spillway/internal/race"
)

// TestAllocations compares the retry loop with that of the SDK's own retryer.
func TestAllocations(t *testing.T) {
	if race.Enabled {
		t.Skip("the race detector allocates")
	}
	inBothBehaviours(t, func(t *testing.T) {
		for failures, fewer := range []float64{1, 18} {
			allocs := make(map[string]float64)
			for _, l := range loops() {
				if failures > 0 && l.name == "none" {
					continue
				}
				allocs[l.name] = testing.AllocsPerRun(100, func() {
					h := middleware.DecorateHandler(&service{failures: failures}, l.stack())
					if _, _, err := h.Handle(t.Context(), nil); err != nil {
						t.Fatal(err)
					}
				})
			}
			if got, limit := allocs["spillway"], allocs["sdk"]-fewer; got > limit {
				t.Errorf("%d retries: %v allocations, want at most %v", failures, got, limit)
			}
			if got, limit := allocs["sdk-with-our-budget"], allocs["sdk"]; got > limit {
				t.Errorf("%d retries: %v allocations with our budget, want at most %v", failures, got, limit)
			}
		}
	})
}
