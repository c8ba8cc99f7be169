package kinds

import (
	"testing"

	"github.com/seed90641741/spillway/internal/telemetry"
)

// TestReasonWords: each kind that the page shows has words.
func TestReasonWords(t *testing.T) {
	for k := range telemetry.Kind(telemetry.Kinds) {
		if Shown(k) && Words(k) == "" {
			t.Errorf("%s %s has no words", k.Policy(), k.Reason())
		}
	}
}
