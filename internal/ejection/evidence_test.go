package ejection

import (
	"testing"

	"github.com/seed90641741/spillway"
)

// Denormal numbers are slow to compute with, and a count that only fades would stay one.
func TestEvidenceOfAQuietClassEnds(t *testing.T) {
	var e Evidence
	e.Rejected(0, spillway.Critical, 0)
	e.Served(0, spillway.Critical, 1)
	for i := range 100_000 {
		e.Served(int64(i)*int64(recentTime/100), spillway.Sheddable, 1)
	}
	if class := spillway.Critical.Index(); e.served[class] != 0 || e.rejected[class] != 0 {
		t.Errorf("served %g, rejected %g", e.served[class], e.rejected[class])
	}
}
