package simreport

import (
	"math"
	"slices"
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

func TestTicks(t *testing.T) {
	for length, want := range map[float64][]float64{
		40: {0, 10, 20, 30, 40}, 130: {0, 50, 100}, 10: {0, 2, 4, 6, 8, 10}, 3600: {0, 1000, 2000, 3000}, 1: {0, 0.2, 0.4, 0.6, 0.8, 1}, 45: {0, 10, 20, 30, 40}, 0: {0},
		6: {0, 2, 4, 6}, 60: {0, 20, 40, 60}, 99: {0, 20, 40, 60, 80},
	} {
		got := ticks(length)
		for i := range got {
			got[i] = math.Round(got[i]*1000) / 1000
		}
		if !slices.Equal(got, want) {
			t.Errorf("%g: %g, want %g", length, got, want)
		}
	}
}
