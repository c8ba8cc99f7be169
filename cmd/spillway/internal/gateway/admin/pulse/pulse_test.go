package pulse

import (
	"testing"
	"time"
)

func TestPulse(t *testing.T) {
	var p Pulse
	for _, passed := range []time.Duration{Beat, Beat + Beat/4, Beat - 1, 0, -time.Hour} {
		if p.Beaten(passed); p.Read() != 0 {
			t.Errorf("%v is a stall", passed)
		}
	}
	p.Beaten(Beat + 300*time.Millisecond)
	p.Beaten(Beat + 200*time.Millisecond)
	if got := p.Read(); got != 500*time.Millisecond || p.Read() != 0 {
		t.Errorf("%v", got)
	}
}
