package load

import (
	"testing"
	"time"

	"github.com/seed90641741/spillway"
)

const ms = time.Millisecond

func TestQuantile(t *testing.T) {
	upTo := func(n int) []time.Duration {
		var s []time.Duration
		for i := n; i >= 1; i-- { // out of order
			s = append(s, time.Duration(i)*ms)
		}
		return s
	}
	for _, row := range []struct {
		samples []time.Duration
		q, want float64
	}{
		{upTo(1), 0.50, 1},
		{upTo(1), 0.99, 1},
		{upTo(2), 0.50, 1},
		{upTo(3), 0.50, 2},
		{upTo(99), 0.99, 99},
		{upTo(100), 0.99, 99},
		{upTo(101), 0.99, 100},
		{upTo(1000), 0.99, 990},
		{upTo(1000), 0, 1},
		{upTo(1000), 1, 1000},
	} {
		if got := Quantile(row.samples, row.q); *got != row.want {
			t.Errorf("quantile %v of %d samples = %v, want %v", row.q, len(row.samples), *got, row.want)
		}
	}
	if got := Quantile(nil, 0.5); got != nil {
		t.Errorf("quantile of nothing = %v, want nil", *got)
	}
}

// TestClass: classes have their shares, and a class without a share is never drawn.
func TestClass(t *testing.T) {
	for _, row := range []struct {
		mix  []float64
		at   float64
		want spillway.Criticality
	}{
		{[]float64{1, 1, 1, 1}, 0, spillway.Sheddable},
		{[]float64{1, 1, 1, 1}, 0.26, spillway.SheddablePlus},
		{[]float64{1, 1, 1, 1}, 0.99, spillway.CriticalPlus},
		{[]float64{0, 3, 1, 0}, 0, spillway.SheddablePlus},
		{[]float64{0, 3, 1, 0}, 0.74, spillway.SheddablePlus},
		{[]float64{0, 3, 1, 0}, 0.76, spillway.Critical},
		{[]float64{0, 0.1, 0.2, 0}, 1, spillway.Critical}, // as sums may be rounded
	} {
		if got := ClassOf(row.mix, row.at); got != row.want {
			t.Errorf("%v of %v is %v, want %v", row.at, row.mix, got, row.want)
		}
	}
}
