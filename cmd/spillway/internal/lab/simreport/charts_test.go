package simreport

import (
	"strings"
	"testing"

	"github.com/seed90641741/spillway/sim"
)

func TestMillis(t *testing.T) {
	for v, want := range map[float64]string{0: "0 ms", 8.25: "8.25 ms", 999: "999 ms", 1000: "1 s", 20_000: "20 s", 90_000: "90 s", 120_000: "2 min", 600_000: "10 min"} {
		if got := millis(v); got != want {
			t.Errorf("%g ms: %s, want %s", v, got, want)
		}
	}
}

// TestShade: windows are shaded, but for one that is all of the run.
func TestShade(t *testing.T) {
	f := frame{length: 100, top: 1, step: 1}
	if f.shade([]sim.Span{{Name: "all", From: 0, To: 100}}); f.b.Len() != 0 {
		t.Error(f.b.String())
	}
	f.shade([]sim.Span{{Name: "<outage>", From: 50, To: 75}})
	if got := f.b.String(); !strings.Contains(got, `x="307.0" y="8.0" width="122.5"`) || !strings.Contains(got, "&lt;outage&gt;") {
		t.Error(got)
	}
}
