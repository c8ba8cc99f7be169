package admin

import (
	"testing"
	"time"

	"github.com/seed90641741/spillway"
)

func TestStall(t *testing.T) {
	for _, passed := range []time.Duration{beat, beat + beat/4, beat - 1, 0, -time.Hour} {
		if stall(passed) != 0 {
			t.Errorf("%v is a stall", passed)
		}
	}
	if got := stall(beat + 300*time.Millisecond); got != 300*time.Millisecond {
		t.Errorf("%v", got)
	}
}

// TestStalled: a sample has the stalls since the sample before.
func TestStalled(t *testing.T) {
	s := newScene(spillway.ModeObserve)
	s.sampler.stalled += stall(beat + 300*time.Millisecond)
	s.sampler.stalled += stall(beat + 200*time.Millisecond)
	for _, want := range []time.Duration{500 * time.Millisecond, 0} {
		if s.second(); s.sampler.ago(0).stalled != want {
			t.Errorf("%v, want %v", s.sampler.ago(0).stalled, want)
		}
	}
}
