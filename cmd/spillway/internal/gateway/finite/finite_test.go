package finite

import (
	"math"
	"testing"
)

func TestNumber(t *testing.T) {
	for _, row := range []struct{ v, want float64 }{
		{0, 0}, {-1.5, -1.5}, {math.MaxFloat64, math.MaxFloat64}, {-math.MaxFloat64, -math.MaxFloat64},
		{math.Inf(1), 0}, {math.Inf(-1), 0}, {math.NaN(), 0},
	} {
		if got := Number(row.v); got != row.want {
			t.Errorf("Number(%v) is %v, want %v", row.v, got, row.want)
		}
	}
}
