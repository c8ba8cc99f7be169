package quota

import (
	"math"
	"testing"
	"time"
)

// The first and the last value of each range are allowed, and the values next to them are not.
func TestConfigAtItsBounds(t *testing.T) {
	a := mustLocal(t, LocalConfig{})
	for _, c := range []Config{{BurstSeconds: 0.01}, {BurstSeconds: 3600}, {Cost: 1e6}, {MaxUnlisted: 1e6}} {
		c.Allocator = a
		must(t, c)
	}
	for _, c := range []Config{{BurstSeconds: 0.0099}, {BurstSeconds: 3601}, {Cost: 1e6 + 1}, {Cost: math.NaN()}, {MaxUnlisted: 1e6 + 1}} {
		c.Allocator = a
		if _, err := New(c); err == nil {
			t.Errorf("%+v is valid", c)
		}
	}
	weight := func(w float64) LocalConfig { return LocalConfig{Customers: map[string]Limit{"a": {Weight: w}}} }
	const least = 10 * time.Millisecond
	for _, c := range []LocalConfig{{Interval: least}, {Interval: time.Minute}, weight(0.001), weight(1e6)} {
		mustLocal(t, c)
	}
	for _, c := range []LocalConfig{{Interval: least - 1}, {Interval: time.Minute + 1}, weight(0.0009), weight(1e6 + 1)} {
		if _, err := NewLocal(c); err == nil {
			t.Errorf("%+v is valid", c)
		}
	}
}
