package spillmongo

import (
	"slices"
	"testing"

	"go.mongodb.org/mongo-driver/v2/version"
)

// TestDriverVersion fails for a driver that this package was not tested with. If
// all other tests pass with it, the list in seam.go is what has to change.
func TestDriverVersion(t *testing.T) {
	if !slices.Contains(knownDrivers, version.Driver) {
		t.Errorf("the seam is not known to fit version %s of the driver, only %q: read seam.go, run the tests, and add it", version.Driver, knownDrivers)
	}
}
