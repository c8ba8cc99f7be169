package throttle_test

import (
	"math"
	"testing"
	"time"

	"github.com/seed90641741/spillway/throttle"
)

// The first and the last value of each range are allowed, and the values next to them are not.
func TestConfigAtItsBounds(t *testing.T) {
	for _, c := range []throttle.Config{
		{K: math.Nextafter(1, 2)}, {K: 100}, {Window: time.Second}, {Window: time.Hour},
		{ProbeInterval: time.Millisecond}, {Window: time.Minute, ProbeInterval: time.Minute},
	} {
		must(t, c)
	}
	for _, c := range []throttle.Config{
		{K: 1}, {K: math.Nextafter(100, 101)}, {Window: time.Second - 1}, {Window: time.Hour + 1},
		{ProbeInterval: time.Millisecond - 1}, {Window: time.Minute, ProbeInterval: time.Minute + 1},
	} {
		if _, err := throttle.New(c); err == nil {
			t.Errorf("%+v is valid", c)
		}
	}
}
