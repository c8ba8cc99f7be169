package elapsed_test

import (
	"math"
	"testing"
	"time"

	"github.com/seed90641741/spillway/internal/elapsed"
)

func TestClockNeverGoesBack(t *testing.T) {
	for _, t0 := range []time.Time{{}, time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)} {
		neverBack(t, t0)
	}
}

func neverBack(t *testing.T, t0 time.Time) {
	t.Helper()
	var c elapsed.Clock
	for i, row := range []struct{ at, want time.Duration }{
		{0, 0}, {-time.Hour, 0}, {time.Second, time.Second}, {time.Second - 1, time.Second}, {time.Second, time.Second},
		{time.Second + 1, time.Second + 1}, {-time.Hour, time.Second + 1}, {time.Hour, time.Hour},
	} {
		if got := c.See(t0.Add(row.at)); got != row.want {
			t.Errorf("row %d: %v, want %v", i, got, row.want)
		}
	}
	if got := c.Time(time.Minute); !got.Equal(t0.Add(time.Minute)) {
		t.Errorf("Time: %v", got)
	}
}

func TestWeight(t *testing.T) {
	for _, row := range []struct {
		passed, tau time.Duration
		want        float64
	}{
		{0, time.Second, 0}, {time.Second, time.Second, 1 - 1/math.E}, {2 * time.Second, time.Second, 1 - 1/(math.E*math.E)},
		{time.Hour, time.Millisecond, 1}, {time.Nanosecond, time.Second, 1e-9},
	} {
		if got := elapsed.Weight(row.passed, row.tau); math.Abs(got-row.want) > 1e-15 {
			t.Errorf("Weight(%v, %v) = %v, want %v", row.passed, row.tau, got, row.want)
		}
	}
}

func TestTrim(t *testing.T) {
	v := 1.0
	for range 10_000 {
		v = elapsed.Trim(v * 0.99)
	}
	if v != 0 {
		t.Errorf("an average that only falls ends at %g", v)
	}
	for _, v := range []float64{-1, 0, 1e-9, 1, math.MaxFloat64} {
		if got := elapsed.Trim(v); got != max(v, 0) {
			t.Errorf("Trim(%g) = %g", v, got)
		}
	}
}
