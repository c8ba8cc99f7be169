package load

import (
	"math"
	"testing"
	"time"
)

// The first and the last value of each range are allowed, and the values next to them are not.
func TestConfigAtItsBounds(t *testing.T) {
	const least = 10 * time.Millisecond
	for _, c := range []Config{
		{Interval: least}, {Interval: 10 * time.Second}, {Smoothing: least}, {Smoothing: time.Minute},
		{Reference: Thresholds{1, 2, 3, math.MaxFloat32}},
	} {
		must(t, c)
	}
	for _, c := range []Config{
		{Interval: least - 1}, {Interval: 10*time.Second + 1}, {Smoothing: least - 1}, {Smoothing: time.Minute + 1},
		{Reference: Thresholds{1, 2, 2, 3}}, {Reference: Thresholds{0, 1, 2, 3}}, {Reference: Thresholds{1, 2, 3, math.Inf(1)}},
	} {
		if _, err := newMeter(c, nothing); err == nil {
			t.Errorf("%+v is valid", c)
		}
	}
	if got := Measure(Measures).String(); got != "Measure(7)" {
		t.Errorf("the measure after the last one is %q", got)
	}
}
