package ingress

import (
	"testing"
	"time"
)

// TestIdle: a wait for an idle moment ends, also after a rest, and each ends at once when closed.
func TestIdle(t *testing.T) {
	i, err := newIdle()
	if err != nil {
		t.Fatal(err)
	}
	begin := time.Now()
	for range 100 {
		i.wait()
		i.rest()
	}
	if took := time.Since(begin); took < 100*takeOver {
		t.Errorf("100 rests took %v", took)
	}
	if err := i.close(); err != nil {
		t.Fatal(err)
	}
	i.wait()
	i.rest()
}
