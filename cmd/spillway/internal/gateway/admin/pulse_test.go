package admin

import (
	"testing"
	"time"
)

func TestPulse(t *testing.T) {
	var p pulse
	for _, passed := range []time.Duration{beat, beat + beat/4, beat - 1, 0, -time.Hour} {
		if p.beaten(passed); p.read() != 0 {
			t.Errorf("%v is a stall", passed)
		}
	}
	p.beaten(beat + 300*time.Millisecond)
	p.beaten(beat + 200*time.Millisecond)
	if got := p.read(); got != 500*time.Millisecond || p.read() != 0 {
		t.Errorf("%v", got)
	}
}
